//! The way of every request: who asks, for what, may they, and then to those who know.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use actix::Addr;
use actix_web::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, USER_AGENT};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use flotilla_cluster::Standing;
use futures_util::FutureExt;

use super::actor::{GatewayActor, Route, unrouted};
use super::admittance::enter;
use super::attempt::{Attempt, Course, Line};
use super::flow::Lane;
use super::routing::{RequestInfo, Routed};
use super::{Gateway, audit, console, definitions, documents, elsewhere, resources};
use crate::access::{Attributes, Authenticated, ConnectionIdentity, Impersonation, TrustedProxy};
use crate::answer;
use crate::discovery;
use crate::limits;
use crate::request::Caller;
use crate::request::negotiate::{Form, Media, Offer, Representation, negotiate, negotiate_custom, wants_pretty};
use crate::request::path;
use crate::request::query::Query;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::streams::websocket;
use crate::transport::{ConnectionId, Outlet, Target};
use crate::wall_clock;
use crate::watchdog::{Stage, Work, during};

/// What of a request's head the server looks at.
pub struct Head<'r> {
    /// Method, as it was sent.
    pub method: &'r str,
    /// Path with its leading slash, not decoded.
    pub path: &'r str,
    /// Query without the question mark.
    pub query_text: &'r str,
    /// Query.
    pub query: Query<'r>,
    /// Header `Accept`.
    pub accept: &'r str,
    /// Header `Content-Type`.
    pub content_type: &'r str,
    /// Whether JSON is indented.
    pub pretty: bool,
    /// Whether the client takes gzip.
    pub gzip: bool,
    /// The connection that the request came by.
    pub connection: ConnectionId,
    /// All of the request.
    pub request: &'r HttpRequest,
}

impl<'r> Head<'r> {
    /// `target` is what it asks for where its URI does not say that.
    fn of(request: &'r HttpRequest, target: Option<&'r Target>) -> Self {
        let (path, query_text) = match target {
            Some(Target { path, query }) => (&**path, &**query),
            None => (request.path(), request.query_string()),
        };
        let query = Query::parse(query_text);
        Self {
            method: request.method().as_str(),
            path,
            query_text,
            accept: header(request, &ACCEPT),
            content_type: header(request, &CONTENT_TYPE),
            pretty: wants_pretty(query.get("pretty"), header(request, &USER_AGENT)),
            gzip: takes_gzip(header(request, &actix_web::http::header::ACCEPT_ENCODING)),
            request,
            connection: request.conn_data().copied().unwrap_or_default(),
            query,
        }
    }

    /// Whether the query asks for a watch.
    fn watches(&self) -> bool {
        self.query.flag("watch").unwrap_or(false)
    }

    /// The representation that the client wants of what a route offers.
    pub fn representation(&self, offer: Offer) -> ApiResult<Representation> {
        negotiate(self.accept, offer, self.pretty)
    }

    /// As [`Head::representation`], of an object of this resource.
    pub fn representation_of(&self, served: &Served, offer: Offer) -> ApiResult<Representation> {
        if served.custom.is_some() {
            return negotiate_custom(self.accept, offer, self.pretty);
        }
        self.representation(offer)
    }

    /// How errors are shown: as the client wants what has one form only, or as JSON where that cannot be had.
    pub fn for_errors(&self) -> Representation {
        let fallback = Representation { media: Media::Json, form: Form::Object, pretty: self.pretty };
        self.representation(Offer::Plain).unwrap_or(fallback)
    }
}

/// What is said of `/watch` with nothing behind it: the request as it came, safe to be shown as HTML.
fn watch_of_nothing(head: &Head<'_>) -> String {
    let query = if head.query_text.is_empty() { String::new() } else { format!("?{}", head.query_text) };
    let request = format!("{}{query}", head.path).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let quoted = crate::field::quote(&request);
    format!(
        "Internal Server Error: {quoted}: failed to create RequestInfo: unable to determine kind and namespace from \
         url, {request}\n"
    )
}

/// The value of a header; empty without one, or where it is no text.
pub(super) fn header<'r>(request: &'r HttpRequest, name: &HeaderName) -> &'r str {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

fn takes_gzip(accept_encoding: &str) -> bool {
    accept_encoding.split(',').any(|coding| coding.trim() == "gzip") // with a quality it is another word to the reference
}

/// Answers a request. A panic behind it becomes 500 and ends nothing else.
pub(super) async fn handle(
    request: HttpRequest,
    payload: web::Payload,
    gateway: web::Data<Gateway>,
    router: web::Data<Addr<GatewayActor>>,
) -> HttpResponse {
    let target = target(&request);
    let path = target.as_ref().map_or(request.path(), |target| &target.path);
    if !path::is_escaped_well(path) {
        // No URL at all: the reference does not get as far as asking who sent it.
        return HttpResponse::BadRequest().content_type("text/plain; charset=utf-8").body("400 Bad Request");
    }
    let id = audit::id(request.headers());
    let head = Head::of(&request, target.as_deref());
    let mut attempt = Attempt::begin(gateway);
    let asked = Route {
        method: request.method().clone(),
        uri: request.uri().clone(),
        target: target.clone(),
        watch: head.watches(),
    };
    let answered = {
        let mut work = Work::new(Stage::Arriving, head.method, None);
        let answering = route(&request, &head, asked, payload, &router, &mut attempt);
        let mut answering = pin!(AssertUnwindSafe(answering).catch_unwind());
        poll_fn(|cx| during(&mut work, || answering.as_mut().poll(cx))).await
    };
    let mut response = answered.unwrap_or_else(|_| {
        tracing::error!(method = %request.method(), path = head.path, "a request failed unexpectedly");
        let error = ApiError::internal("the server failed to answer; the failure has been logged");
        answer::respond_error(&error, head.for_errors(), &[])
    });
    response.headers_mut().insert(audit::AUDIT_ID, id);
    attempt.answer(response, request.conn_data::<Outlet>().cloned().unwrap_or_default(), Line::of(&head))
}

/// What a request asks for where its URI does not say that.
fn target(request: &HttpRequest) -> Option<Arc<Target>> {
    request.extensions().get::<Arc<Target>>().cloned()
}

/// Finds who asks and who answers, and has it answered.
///
/// Every request pays for what this future holds, when it is made and moved. So it holds what reading an object takes;
/// whatever takes more has its own in a box.
async fn route(
    request: &HttpRequest,
    head: &Head<'_>,
    asked: Route,
    payload: web::Payload,
    router: &Addr<GatewayActor>,
    attempt: &mut Attempt,
) -> HttpResponse {
    let Attempt { gateway, course } = attempt;
    let watch = asked.watch;
    let identity = request.conn_data::<ConnectionIdentity>().cloned().unwrap_or_default();
    let authorization = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    let token = if authorization.is_none() { websocket::token(request) } else { None };
    if let Some(opened) = console::open(gateway, head) {
        return opened;
    }
    let visits = || console::visitor(gateway, head).filter(|_| authorization.is_none());
    let who = match proxied(gateway, request).or_else(visits) {
        Some(who) => Ok(who),
        None => authenticate(gateway, &identity, authorization.or(token.as_deref()), course).await,
    };
    let who = match who {
        Ok(who) => who,
        Err(error) => return answer::respond_error(&error, head.for_errors(), &[]),
    };
    let agent = request.headers().get(USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let mut caller = Caller::new(who.user, agent.as_deref().unwrap_or(""));
    caller.warnings.extend(who.warning.map(str::to_owned));
    let headers = request.headers().iter();
    match Impersonation::parse(headers.map(|(name, value)| (name.as_str(), value.as_bytes()))) {
        Ok(impersonation) => caller.impersonation = impersonation,
        Err(error) => return answer::respond_error(&error, head.for_errors(), &caller.warnings),
    }
    if let Some(remote) = gateway.aggregation.of_path(head.path) {
        let answered = Box::pin(elsewhere::answer(gateway, head, &remote, payload, &mut caller, course)).await;
        return answered.unwrap_or_else(|error| answer::respond_error(&error, head.for_errors(), &caller.warnings));
    }
    let routed = match router.send(asked).await.map_err(unrouted).flatten() {
        Ok(Routed::Unserved(info)) if definitions::may_be_defined(&info) => {
            match resources::authorize(gateway, head, &info.of, info.verb, &mut caller) {
                Ok(()) if !enter(gateway, &info, &caller, course) => return answer::too_many_requests(),
                Ok(()) => {
                    let found = Box::pin(definitions::look_again(gateway, info, head.method, watch)).await;
                    course.leave(gateway); // it takes the place of its kind once that is known
                    found
                }
                Err(refused) => Err(refused),
            }
        }
        routed => routed,
    };
    let answered = match routed {
        Ok(Routed::Objects(info)) => resources::answer(gateway, router, head, info, payload, &mut caller, course).await,
        Ok(Routed::Unserved(info)) => unserved(gateway, head, &info, &mut caller, course),
        Ok(Routed::WatchOfNothing) => {
            return answer::respond_text(500, &watch_of_nothing(head));
        }
        Ok(elsewhere) => match authorize(gateway, head, &mut caller, course) {
            Ok(()) => documents::respond(gateway, head, elsewhere, request, payload, &caller, course).await,
            Err(refused) => console::explained(head, &elsewhere, &refused).ok_or(refused),
        },
        Err(error) => Err(error),
    };
    answered.unwrap_or_else(|error| answer::respond_error(&error, head.for_errors(), &caller.warnings))
}

/// Who asks, if a proxy that is believed says so.
fn proxied(gateway: &Gateway, request: &HttpRequest) -> Option<Authenticated> {
    let proxy = gateway.authenticator.proxy()?;
    request.conn_data::<TrustedProxy>().filter(|trusted| trusted.is_valid(wall_clock::now()))?;
    proxy.user(request.headers()).map(|user| Authenticated { user: Arc::new(user), warning: None })
}

/// Finds who asks. What a token is bound to may not be here yet, although the client has been told of it elsewhere.
async fn authenticate(
    gateway: &Gateway,
    identity: &ConnectionIdentity,
    authorization: Option<&[u8]>,
    course: &mut Course,
) -> ApiResult<Authenticated> {
    let authenticate = || gateway.authenticator.authenticate(identity, authorization);
    let found = match authenticate() {
        Err(_) if *gateway.registry.store.standing().borrow() != Standing::Member && authorization.is_some() => {
            // Its account may be among what is not here yet.
            return Err(ApiError::unavailable("this server cannot tell yet who asks", 1));
        }
        Err(refused) if refused.by_objects => {
            if !course.enter(gateway, Lane::ReadOnly) {
                return Err(ApiError::unavailable("too many requests wait to be authenticated", 1));
            }
            let caught_up = tokio::time::timeout(limits::REVISION_WAIT, gateway.registry.catch_up()).await;
            course.leave(gateway);
            caught_up.map_err(|_| ApiError::unavailable("this server cannot tell now who asks", 1))??;
            authenticate()
        }
        found => found,
    };
    course.authenticated = Instant::now();
    let (access, took) = (&gateway.registry.metrics.access, course.authenticated - course.began);
    match found {
        Ok(who) => {
            access.authenticated(&who.user.name, took);
            Ok(who)
        }
        Err(refused) => {
            access.unknown(took);
            Err(refused.into())
        }
    }
}

/// Answers a request for objects of a group that nobody has; whether they may be asked for comes first.
fn unserved(
    gateway: &Gateway,
    head: &Head<'_>,
    RequestInfo { of, verb, .. }: &RequestInfo,
    caller: &mut Caller,
    course: &Course,
) -> ApiResult<HttpResponse> {
    let allowed = resources::authorize(gateway, head, of, *verb, caller);
    gateway.registry.metrics.access.decided(allowed.is_ok(), course.authenticated.elapsed());
    allowed?;
    Ok(documents::respond_document(discovery::Answer::not_found(), &caller.warnings))
}

/// Lets a request for a path that is no object pass or not.
pub(super) fn authorize(gateway: &Gateway, head: &Head<'_>, caller: &mut Caller, course: &Course) -> ApiResult<()> {
    let (verb, path) = (head.method.to_lowercase(), path::decode(head.path));
    let attributes = Attributes::Path { verb: &verb, path: &path };
    let allowed = caller.authorize(&gateway.registry.authorizer, &attributes);
    gateway.registry.metrics.access.decided(allowed.is_ok(), course.authenticated.elapsed());
    allowed.or_else(|refused| {
        gateway.beginning.check(&gateway.registry, false)?;
        Err(refused)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that every request needs to be answered, as its task holds them.
    fn bytes<A, B, C, D, F: Future>(_: impl Fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_plain_request_does_not_pay_for_others() {
        let bytes = bytes(handle);
        assert!(bytes <= 4_352, "{bytes} bytes");
    }
}
