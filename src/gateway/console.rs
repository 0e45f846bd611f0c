//! The console over HTTP: the clients that can see it, the links and sessions that identify browsers, and the stream of
//! events that keeps a page up to date. It costs nothing while no page is open.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use actix_web::body::BodyStream;
use actix_web::http::StatusCode;
use actix_web::http::header::{COOKIE, SET_COOKIE};
use actix_web::{HttpResponse, HttpResponseBuilder, web};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::head::Head;
use super::{Gateway, members};
use crate::access::User;
use crate::config::ConsoleAccess;
use crate::console::{self, ConsolePart, Link, Links};
use crate::limits;
use crate::overview::{Overview, Rates};
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

/// The reason why a request from another machine is refused.
const NOT_VISIBLE: &str = "the console cannot be seen from where this request comes: see the flag --console";

/// The state of the console: its links and sessions, and a bound on its streams.
#[derive(Debug)]
pub(super) struct Console {
    access: ConsoleAccess,
    /// The address at which clients reach this server.
    address: IpAddr,
    links: Links,
    /// One permit for each stream of events that may still be opened.
    streams: Arc<Semaphore>,
}

impl Console {
    pub(super) fn new(access: ConsoleAccess, address: IpAddr) -> Self {
        let streams = Arc::new(Semaphore::new(limits::CONSOLE_STREAMS));
        Self { access, address, links: Links::default(), streams }
    }

    /// Returns whether the client of a request can see the console.
    fn is_visible_to(&self, head: &Head<'_>) -> bool {
        let peer = head.request().ok().and_then(|request| request.peer_addr());
        is_visible(self.access, self.address, peer.map(|peer| peer.ip()))
    }
}

/// Returns whether a client at the address `from` can see the console. A client on this machine that connects to the
/// server's address `own` has the address `own` itself. `from` is `None` if the client has left.
fn is_visible(access: ConsoleAccess, own: IpAddr, from: Option<IpAddr>) -> bool {
    let is_near = |from: IpAddr| from.is_loopback() || from == own.to_canonical();
    match access {
        ConsoleAccess::Off => false,
        ConsoleAccess::Loopback => from.is_some_and(|from| is_near(from.to_canonical())),
        ConsoleAccess::Network => true,
    }
}

/// Returns the user whom a link or a session identifies. A link is valid only for the request that opens it; a session,
/// only for the page and its events. `None` for every other request.
pub(super) fn visitor(gateway: &Gateway, head: &Head<'_>) -> Option<Arc<User>> {
    let part = ConsolePart::of(head.path).filter(|_| head.method == "GET" && gateway.console.is_visible_to(head))?;
    match part {
        ConsolePart::Open => gateway.console.links.user_of_link(link_token(head), Instant::now()),
        ConsolePart::Page | ConsolePart::Events => {
            let cookies = head.request().ok()?.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
            let port = gateway.address.port();
            let session = cookies.filter_map(|header| console::from_cookies(header, port)).next()?;
            gateway.console.links.user_of_session(session, Instant::now())
        }
        ConsolePart::Links => None,
    }
}

fn link_token<'h>(head: &'h Head<'_>) -> &'h str {
    head.query.get("token").unwrap_or("")
}

/// Returns the page that tells a browser why it may not see the console, and how to get a link. `None` for other
/// clients.
pub(super) fn refusal(gateway: &Gateway, head: &Head<'_>, error: &ApiError) -> Option<HttpResponse> {
    let part = ConsolePart::of(head.path).filter(|part| matches!(part, ConsolePart::Page | ConsolePart::Open))?;
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::FORBIDDEN);
    let is_valid = || gateway.console.links.user_of_link(link_token(head), Instant::now()).is_some();
    let why = match (part, error.code) {
        (_, 401 | 403) if !gateway.console.is_visible_to(head) => NOT_VISIBLE,
        // The user is unknown because the link is no longer valid.
        (ConsolePart::Open, 401 | 403) if !is_valid() => "The link has been used, or is too old.",
        _ => &*error.message,
    };
    head.accept.contains("text/html").then(|| html(code).body(console::refused(why)))
}

/// Answers a request whose user is authorized.
pub(super) async fn respond(
    gateway: &web::Data<Gateway>,
    head: &Head<'_>,
    part: ConsolePart,
    caller: &Caller,
) -> ApiResult<HttpResponse> {
    if !gateway.console.is_visible_to(head) {
        return Err(ApiError::new(404, "NotFound", NOT_VISIBLE));
    }
    if head.method != part.method() {
        let message = "the server does not allow this method on the requested resource";
        return Err(ApiError::new(405, "MethodNotAllowed", message));
    }
    match part {
        ConsolePart::Page => {
            let asked = gateway.clone();
            let page = web::block(move || console::page(&asked.overview())).await.map_err(ApiError::internal)?;
            Ok(html(StatusCode::OK).body(page))
        }
        ConsolePart::Events => events(gateway, caller),
        ConsolePart::Links => {
            let token = gateway.console.links.issue(Arc::clone(caller.identity.user()), Instant::now());
            let token = token.ok_or_else(|| ApiError::internal("there are no random numbers"))?;
            let link = Link { token, seconds: limits::CONSOLE_LINK_LIFETIME.as_secs() };
            members::encoded(&link, head.pretty)
        }
        ConsolePart::Open => open(gateway, head),
    }
}

/// Exchanges a link for a session, which the browser keeps as a cookie.
///
/// # Errors
/// 403 for a link that was used, is too old or was never issued, even if the user may open links.
fn open(gateway: &Gateway, head: &Head<'_>) -> ApiResult<HttpResponse> {
    let session = gateway.console.links.exchange(link_token(head), Instant::now());
    let session =
        session.ok_or_else(|| ApiError::new(403, "Forbidden", "the link has been used, is too old, or never was"))?;
    // The cookie is `SameSite=Strict`. A browser that followed a link on another site sends it only with requests from
    // a page of this server. This answer is such a page; it leads to the console.
    let cookie = console::cookie(&session, gateway.address.port());
    Ok(html(StatusCode::OK).insert_header((SET_COOKIE, cookie)).body(console::opened()))
}

/// Returns the answer with a page, which still lacks its body.
fn html(code: StatusCode) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(code);
    response.content_type("text/html; charset=utf-8");
    for header in console::headers() {
        response.insert_header(header);
    }
    response
}

/// A stream of events that keeps a page up to date.
struct EventStream {
    gateway: web::Data<Gateway>,
    before: Option<Overview>,
    ticks: Interval,
    /// When the stream ends. The browser then opens another one, and is identified and authorized again.
    ends: Option<Instant>,
    _permit: OwnedSemaphorePermit,
}

/// Answers with server-sent events (HTML Living Standard, section 9.2). The first comes at once.
///
/// An event is made when the connection takes it: a slow reader misses events, and no event waits for a reader. The
/// request ends at its bound even if its client reads nothing: see [`super::exchange`].
fn events(gateway: &web::Data<Gateway>, caller: &Caller) -> ApiResult<HttpResponse> {
    let permit = Arc::clone(&gateway.console.streams).try_acquire_owned().map_err(|_| {
        let message = "too many consoles are kept up to date; close one of them";
        ApiError::new(429, "TooManyRequests", message)
    })?;
    let mut ticks = interval(limits::CONSOLE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The stream ends before the request is broken off, so that the browser sees a complete answer.
    let ends = caller.ends.and_then(|ends| ends.checked_sub(limits::CONSOLE_INTERVAL));
    let stream = EventStream { gateway: gateway.clone(), before: None, ticks, ends, _permit: permit };
    let mut response = HttpResponse::Ok();
    for header in console::headers() {
        response.insert_header(header);
    }
    response.content_type("text/event-stream");
    Ok(response.body(BodyStream::new(Box::pin(stream::unfold(stream, next)))))
}

/// Returns the next event. `None` when the stream ends or the server stops.
async fn next(mut stream: EventStream) -> Option<(Result<Bytes, actix_web::Error>, EventStream)> {
    let stopping = stream.gateway.streams.clone().begun();
    tokio::select! {
        _ = stream.ticks.tick() => {}
        () = stopping => return None,
    }
    if stream.ends.is_some_and(|ends| Instant::now() >= ends) {
        return None;
    }
    let (gateway, before) = (stream.gateway.clone(), stream.before.take());
    let made = web::block(move || {
        let now = gateway.overview();
        let rates = before.map(|before| Rates::between(&before, &now));
        (console::event(&now, rates.as_ref()), now)
    });
    let (event, now) = made.await.ok()?;
    stream.before = Some(now);
    Some((Ok(Bytes::from(event)), stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_is_hidden_from_the_network_unless_allowed() {
        let own = "10.0.0.7".parse().expect("an address");
        let visible = |access, from: &str| is_visible(access, own, from.parse().ok());
        for (from, near) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.2", true),
            ("10.0.0.7", true),
            ("10.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(visible(ConsoleAccess::Loopback, from), near, "{from}");
            assert!(visible(ConsoleAccess::Network, from) && !visible(ConsoleAccess::Off, from), "{from}");
        }
    }
}
