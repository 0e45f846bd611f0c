//! The console over HTTP: who may see it and from where, links by which browsers come, and the events that keep it up
//! to date. Nothing is done for it but when somebody asks.

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

use super::admittance::lane;
use super::attempt::Course;
use super::flow::Lane;
use super::handler::Head;
use super::routing::Routed;
use super::{Gateway, members};
use crate::access::Authenticated;
use crate::answer;
use crate::config::ConsoleAccess;
use crate::console::{self, EVENTS_PATH, Link, Links, OPEN_PATH, PAGE_PATH, Part};
use crate::limits;
use crate::overview::{Overview, Rates};
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

/// Who may see the console.
#[derive(Debug)]
pub(super) struct Console {
    access: ConsoleAccess,
    links: Links,
    /// How many more may be kept up to date.
    streams: Arc<Semaphore>,
}

impl Console {
    pub(super) fn new(access: ConsoleAccess) -> Self {
        Self { access, links: Links::default(), streams: Arc::new(Semaphore::new(limits::CONSOLE_STREAMS)) }
    }

    /// Whether it is shown to where a request comes from.
    fn is_shown_to(&self, head: &Head<'_>) -> bool {
        is_shown(self.access, head.request.peer_addr().map(|peer| peer.ip()))
    }
}

/// Whether the console is shown to an address; it is not known of clients that are gone.
fn is_shown(access: ConsoleAccess, to: Option<IpAddr>) -> bool {
    match access {
        ConsoleAccess::Off => false,
        ConsoleAccess::Loopback => to.is_some_and(|address| address.to_canonical().is_loopback()),
        ConsoleAccess::Network => true,
    }
}

/// Uses up a link, for whoever has it. `None` for every other request.
pub(super) fn open(gateway: &Gateway, head: &Head<'_>) -> Option<HttpResponse> {
    if head.path != OPEN_PATH || head.method != "GET" || !gateway.console.is_shown_to(head) {
        return None;
    }
    let token = head.query.get("token").unwrap_or("");
    let Some(session) = gateway.console.links.open(token, Instant::now()) else {
        return Some(html(StatusCode::FORBIDDEN).body(console::refused("This link was used, or is too old.")));
    };
    // Browsers send a new cookie only with what its own page leads to, not with where they are sent from elsewhere.
    let cookie = console::cookie(&session, gateway.address.port());
    Some(html(StatusCode::OK).insert_header((SET_COOKIE, cookie)).body(console::opened()))
}

/// Who asks, if a browser shows that it came by a link. Only the page and its events are open to it.
pub(super) fn visitor(gateway: &Gateway, head: &Head<'_>) -> Option<Authenticated> {
    if !matches!(head.path, PAGE_PATH | EVENTS_PATH) || head.method != "GET" || !gateway.console.is_shown_to(head) {
        return None;
    }
    let cookies = head.request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
    let port = gateway.address.port();
    let session = cookies.filter_map(|header| console::from_cookies(header, port)).next()?;
    let user = gateway.console.links.user(session, Instant::now())?;
    Some(Authenticated { user, warning: None })
}

/// What a browser is told that may not see the page: how to come in.
pub(super) fn explained(head: &Head<'_>, of: &Routed, refused: &ApiError) -> Option<HttpResponse> {
    let is_page = matches!(of, Routed::Console(Part::Page)) && head.accept.contains("text/html");
    let code = StatusCode::from_u16(refused.code).unwrap_or(StatusCode::FORBIDDEN);
    is_page.then(|| html(code).body(console::refused(&refused.message)))
}

/// Answers a request of somebody who may make it.
pub(super) async fn respond(
    gateway: &web::Data<Gateway>,
    head: &Head<'_>,
    part: Part,
    caller: &Caller,
    course: &mut Course,
) -> ApiResult<HttpResponse> {
    if !gateway.console.is_shown_to(head) {
        let message = "the console is not shown to where this request comes from: see the flag --console";
        return Err(ApiError::new(404, "NotFound", message));
    }
    if head.method != part.method() {
        let message = "the server does not allow this method on the requested resource";
        return Err(ApiError::new(405, "MethodNotAllowed", message));
    }
    let lane = match part {
        Part::Events => Lane::Watch,
        Part::Page | Part::Links => lane(part == Part::Links, caller),
    };
    if !course.enter(gateway, lane) {
        return Ok(answer::too_many_requests());
    }
    match part {
        Part::Page => {
            let asked = gateway.clone();
            let page = web::block(move || console::page(&asked.overview())).await.map_err(ApiError::internal)?;
            Ok(html(StatusCode::OK).body(page))
        }
        Part::Events => events(gateway),
        Part::Links => {
            let token = gateway.console.links.make(Arc::clone(&caller.user), Instant::now());
            let token = token.ok_or_else(|| ApiError::internal("there are no random numbers"))?;
            let link = Link { token, seconds: limits::CONSOLE_LINK_LIFETIME.as_secs() };
            members::encoded(&link, head.pretty)
        }
    }
}

/// The head of a page.
fn html(code: StatusCode) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(code);
    response.content_type("text/html; charset=utf-8");
    for header in console::headers() {
        response.insert_header(header);
    }
    response
}

/// A console that is kept up to date.
struct Live {
    gateway: web::Data<Gateway>,
    before: Option<Overview>,
    ticks: Interval,
    ends: Instant,
    /// Its turn, until it is dropped.
    _turn: OwnedSemaphorePermit,
}

/// Server-sent events (HTML Living Standard, section 9.2). The first comes at once.
fn events(gateway: &web::Data<Gateway>) -> ApiResult<HttpResponse> {
    let turn = Arc::clone(&gateway.console.streams).try_acquire_owned().map_err(|_| {
        let message = "other consoles are being kept up to date; close one of them";
        ApiError::new(429, "TooManyRequests", message)
    })?;
    let mut ticks = interval(limits::CONSOLE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ends = Instant::now() + limits::CONSOLE_STREAM_LIFETIME;
    let live = Live { gateway: gateway.clone(), before: None, ticks, ends, _turn: turn };
    let mut response = HttpResponse::Ok();
    for header in console::headers() {
        response.insert_header(header);
    }
    response.content_type("text/event-stream");
    Ok(response.body(BodyStream::new(Box::pin(stream::unfold(live, next)))))
}

/// The next event; none when the server is to stop, or the browser has to ask again.
async fn next(mut live: Live) -> Option<(Result<Bytes, actix_web::Error>, Live)> {
    let stopping = live.gateway.streams.clone().begun();
    tokio::select! {
        _ = live.ticks.tick() => {}
        () = stopping => return None,
    }
    if Instant::now() >= live.ends {
        return None;
    }
    let (gateway, before) = (live.gateway.clone(), live.before.take());
    let made = web::block(move || {
        let now = gateway.overview();
        let rates = before.map(|before| Rates::between(&before, &now));
        (console::event(&now, rates.as_ref()), now)
    });
    let (event, now) = made.await.ok()?;
    live.before = Some(now);
    Some((Ok(Bytes::from(event)), live))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_off_the_network_unless_allowed() {
        let shown = |access, to: &str| is_shown(access, to.parse().ok());
        for (to, near) in
            [("127.0.0.1", true), ("::1", true), ("::ffff:127.0.0.2", true), ("10.0.0.1", false), ("", false)]
        {
            assert_eq!(shown(ConsoleAccess::Loopback, to), near, "{to}");
            assert!(shown(ConsoleAccess::Network, to) && !shown(ConsoleAccess::Off, to), "{to}");
        }
    }
}
