//! The stages of a request, in the order in which it passes them:
//!
//! 1. [`identify`]: who sends it? Refused with 401.
//! 2. [`impersonate`]: for whom does that user want to act?
//! 3. [`route`]: what does it ask for?
//! 4. [`bound`]: how long may it take?
//! 5. [`act_as`]: may the user act for the other? Refused with 403.
//! 6. [`take_seat`]: may one more request be in progress? If not, it waits, or is refused with 429.
//! 7. [`authorize`]: may the user do this? Refused with 403.
//! 8. [`serve`]: the answer.
//!
//! A stage passes a request on or refuses it, and answers nothing itself: [`pass`] makes every refusal an answer, and
//! every answer leaves through [`super::handler::handle`], which gives it its `Audit-Id`, counts it and frees the seat.
//! Metrics learn of a request from [`Progress`], to which each stage reports.

use std::borrow::Cow;
use std::pin::pin;
use std::time::{Duration, Instant};

use actix::Addr;
use actix_web::http::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use actix_web::{HttpRequest, HttpResponse, web};
use flotilla_proto::duration;

use super::actor::{GatewayActor, Route, unrouted};
use super::exchange::{Exchange, Progress};
use super::flows::{self, Admitted};
use super::head::Head;
use super::identification::identify;
use super::routing::{RequestInfo, Routed};
use super::{
    Gateway, backup, console, counted, definitions, documents, members, overview, recorded, remote, resources,
};
use crate::access::{Attributes, Impersonation};
use crate::answer;
use crate::discovery;
use crate::fairness::Waiting;
use crate::field::quote;
use crate::request::{Caller, Unauthorized, path};
use crate::rules::names::MASTERS;
use crate::status::{ApiError, ApiResult};

/// The reason why a stage does not pass a request on.
enum StageRefusal {
    /// The reason that this `Status` states.
    Status(ApiError),
    /// The user may not do this, as this `Status` states.
    Forbidden(ApiError),
    /// Too many requests are in progress.
    NoSeat,
    /// The time of the request is over.
    TimedOut,
    /// An authorizer could not decide. Holds the error.
    Undecided(String),
}

impl From<ApiError> for StageRefusal {
    fn from(error: ApiError) -> Self {
        Self::Status(error)
    }
}

/// Passes a request through all stages.
///
/// Every request pays for the memory of this future when it is made and moved. It has room for reading an object;
/// larger operations have a boxed future of their own.
pub(super) async fn pass(
    request: &HttpRequest,
    (head, id): (&Head<'_>, &HeaderValue),
    payload: web::Payload,
    router: &Addr<GatewayActor>,
    exchange: &mut Exchange,
) -> HttpResponse {
    let Exchange { gateway, progress } = exchange;
    let mut caller = match identify(gateway, request, head, progress).await {
        Ok(caller) => caller,
        Err(error) => {
            let unrecorded = recorded::begin(gateway, request, (head, id), None, progress);
            return unrecorded.unwrap_or_else(|| refuse(gateway, head, &error, &[]));
        }
    };
    if let Some(refusal) = recorded::begin(gateway, request, (head, id), Some(&mut caller), progress) {
        return refusal;
    }
    if recorded::is_awaited(progress)
        && let Some(refusal) = Box::pin(recorded::received(gateway, head, progress)).await
    {
        return refusal;
    }
    let passed = pass_further(gateway, router, (request, head), payload, &mut caller, progress).await;
    recorded::learn(progress, &mut caller);
    match passed {
        Ok(response) => response,
        Err(StageRefusal::Status(error)) => refuse(gateway, head, &error, &caller.notices.warnings),
        Err(StageRefusal::Forbidden(error)) => {
            let mut response = refuse(gateway, head, &error, &caller.notices.warnings);
            response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            response
        }
        Err(StageRefusal::NoSeat) => answer::too_many_requests(progress.retry_after(gateway)),
        Err(StageRefusal::TimedOut) => give_up(gateway, progress),
        Err(StageRefusal::Undecided(why)) => answer::respond_text(500, &format!("{}: {why}\n", internal_error(head))),
    }
}

/// Returns the answer that states why a request is refused: a page for browsers that ask for the console, else a
/// `Status`.
fn refuse(gateway: &Gateway, head: &Head<'_>, error: &ApiError, warnings: &[String]) -> HttpResponse {
    console::refusal(gateway, head, error).unwrap_or_else(|| answer::respond_error(error, head.for_errors(), warnings))
}

/// Passes a request whose user is known through the other stages.
async fn pass_further(
    gateway: &web::Data<Gateway>,
    router: &Addr<GatewayActor>,
    (request, head): (&HttpRequest, &Head<'_>),
    payload: web::Payload,
    caller: &mut Caller,
    progress: &mut Progress,
) -> Result<HttpResponse, StageRefusal> {
    caller.impersonation = impersonate(request)?;
    // Each stage hands the route on. Without the box, the future would have room for a copy of it at each stage.
    let routed = Box::new(route(router, request, head).await?);
    bound(gateway, head, &routed, caller, progress)?;
    // Decisions that wait for webhooks have a future of their own, which others do not pay for.
    let acts = act_as(gateway, head, &routed, caller);
    match caller.inquiry.is_open() {
        false => judge(gateway, acts)?,
        true => {
            drop(acts);
            Box::pin(act_as_asked(gateway, head, &routed, caller)).await?;
        }
    }
    if let Some(waiting) = take_seat(gateway, head, &routed, caller, progress)? {
        Box::pin(wait(gateway, head, &routed, waiting, caller, progress)).await?;
    }
    let allowed = authorize(gateway, head, &routed, caller);
    match caller.inquiry.is_open() {
        false => take(gateway, allowed, progress)?,
        true => {
            drop(allowed);
            Box::pin(authorize_asked(gateway, head, &routed, caller, progress)).await?;
        }
    }
    Ok(serve(gateway, router, head, routed, payload, caller, progress).await?)
}

/// Reads the user whom the request wants to impersonate. [`act_as`] decides whether that is allowed.
fn impersonate(request: &HttpRequest) -> ApiResult<Option<Impersonation>> {
    Impersonation::parse(request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
}

/// Returns the route of the request.
async fn route(router: &Addr<GatewayActor>, request: &HttpRequest, head: &Head<'_>) -> ApiResult<Routed> {
    let asked = Route {
        method: request.method().clone(),
        uri: request.uri().clone(),
        target: head.target.cloned(),
        watch: head.watches(),
    };
    router.send(asked).await.map_err(unrouted).flatten()
}

/// Bounds the time of a request that is not long-running. Documents are made at once and need no bound.
fn bound(
    gateway: &Gateway,
    head: &Head<'_>,
    routed: &Routed,
    caller: &mut Caller,
    progress: &mut Progress,
) -> ApiResult<()> {
    if routed.is_timed() {
        let asked = asked_timeout(head)?;
        let longest = routed.longest(gateway.request_timeout);
        let longest = longest.map(|longest| asked.map_or(longest, |asked| asked.min(longest)));
        progress.ends = longest.map(|longest| progress.began + longest);
        caller.ends = progress.ends;
    }
    Ok(())
}

/// Reads the option `timeout`. `None` if the client states none, or none above zero.
///
/// # Errors
/// 400 if it is not a duration.
pub(super) fn asked_timeout(head: &Head<'_>) -> ApiResult<Option<Duration>> {
    let text = head.query.text("timeout");
    if text.is_empty() {
        return Ok(None);
    }
    if let Some(nanos) = duration::parse(text) {
        return Ok(u64::try_from(nanos).ok().filter(|nanos| *nanos > 0).map(Duration::from_nanos));
    }
    let number = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let why = if number { "missing unit in duration" } else { "invalid duration" };
    let message = format!("invalid timeout specified in the request URL - time: {why} {}", quote(text));
    Err(ApiError::bad_request(message))
}

/// Calls `decide` with the attributes of a request. Returns `None` if the request has none.
pub(super) fn with_attributes<T>(
    head: &Head<'_>,
    routed: &Routed,
    decide: impl FnOnce(&Attributes<'_>) -> T,
) -> Option<T> {
    match routed.resource() {
        Some((of, verb)) => {
            Some(resources::with_attributes(head, of, verb, |attributes| decide(&Attributes::Resource(attributes))))
        }
        // The reference has no attributes to authorize for this path.
        None if matches!(routed, Routed::WatchOfNothing) => None,
        None => {
            let (verb, path) = (in_lower_case(head.method), path::decode(head.path));
            Some(decide(&Attributes::Path { verb: &verb, path: &path }))
        }
    }
}

/// Returns a method in lower case. The usual ones are not copied.
fn in_lower_case(method: &str) -> Cow<'_, str> {
    match method {
        "GET" => "get".into(),
        "HEAD" => "head".into(),
        "POST" => "post".into(),
        other => other.to_lowercase().into(),
    }
}

/// Replaces the user by the one for whom the user wants to act, if that is allowed. If a webhook must be asked first,
/// leaves the question for it in the caller's inquiry.
fn act_as(gateway: &Gateway, head: &Head<'_>, routed: &Routed, caller: &mut Caller) -> ApiResult<()> {
    if caller.impersonation.is_none() {
        return Ok(());
    }
    let authorizer = &gateway.registry.tables.authorizer;
    let allowed = with_attributes(head, routed, |attributes| caller.impersonate(authorizer, attributes));
    allowed.unwrap_or(Ok(()))
}

/// Asks webhooks until it is known whether the user may act for the other, and replaces the user then.
async fn act_as_asked(
    gateway: &Gateway,
    head: &Head<'_>,
    routed: &Routed,
    caller: &mut Caller,
) -> Result<(), StageRefusal> {
    loop {
        caller.inquiry.asks(caller.ends).await;
        in_time(caller)?;
        let acts = act_as(gateway, head, routed, caller);
        if !caller.inquiry.is_open() {
            return judge(gateway, acts);
        }
    }
}

/// Refuses a request whose time is over.
fn in_time(caller: &Caller) -> Result<(), StageRefusal> {
    match caller.ends.is_some_and(|ends| Instant::now() >= ends) {
        true => Err(StageRefusal::TimedOut),
        false => Ok(()),
    }
}

/// Takes a seat among the requests in progress. Returns the wait for it if none is free.
fn take_seat(
    gateway: &Gateway,
    head: &Head<'_>,
    routed: &Routed,
    caller: &Caller,
    progress: &mut Progress,
) -> Result<Option<Box<Waiting>>, StageRefusal> {
    match flows::enter(gateway, head, routed, caller, progress) {
        Admitted::Now => count(gateway, head, routed, caller, progress).map(|()| None),
        Admitted::AfterWait(waiting) => Ok(Some(waiting)),
        Admitted::No => Err(no_seat(gateway, head, routed, progress)),
    }
}

/// Waits for a seat.
async fn wait(
    gateway: &Gateway,
    head: &Head<'_>,
    routed: &Routed,
    waiting: Box<Waiting>,
    caller: &Caller,
    progress: &mut Progress,
) -> Result<(), StageRefusal> {
    match flows::wait(gateway, waiting, progress).await {
        true => count(gateway, head, routed, caller, progress),
        false => Err(no_seat(gateway, head, routed, progress)),
    }
}

/// Counts the request among those in progress.
fn count(
    gateway: &Gateway,
    head: &Head<'_>,
    routed: &Routed,
    caller: &Caller,
    progress: &mut Progress,
) -> Result<(), StageRefusal> {
    let is_exempt = match &progress.flow {
        Some(flow) => flow.level.is_exempt,
        None => caller.identity.user().is_member(MASTERS),
    };
    match routed.lane(head.method, is_exempt) {
        Some(lane) if !progress.take_seat(gateway, lane) => Err(no_seat(gateway, head, routed, progress)),
        _ => Ok(()),
    }
}

/// Refuses a request for which there is no seat.
fn no_seat(gateway: &Gateway, head: &Head<'_>, routed: &Routed, progress: &mut Progress) -> StageRefusal {
    if let Routed::Objects(RequestInfo { of, verb: Some(verb), served: Ok(served), .. }) = routed {
        progress.counts_as(gateway, counted::route(served, head, of, *verb));
        progress.terminated(gateway, 429);
    }
    StageRefusal::NoSeat
}

/// Authorizes the request. Returns `None` if there is nothing to authorize. If a webhook must be asked first, leaves
/// the question for it in the caller's inquiry.
fn authorize(
    gateway: &Gateway,
    head: &Head<'_>,
    routed: &Routed,
    caller: &mut Caller,
) -> Option<Result<(), Unauthorized>> {
    let authorizer = &gateway.registry.tables.authorizer;
    with_attributes(head, routed, |attributes| caller.authorize(authorizer, attributes))
}

/// Asks webhooks until it is known whether the request is authorized.
async fn authorize_asked(
    gateway: &Gateway,
    head: &Head<'_>,
    routed: &Routed,
    caller: &mut Caller,
    progress: &mut Progress,
) -> Result<(), StageRefusal> {
    loop {
        caller.inquiry.asks(caller.ends).await;
        in_time(caller)?;
        let allowed = authorize(gateway, head, routed, caller);
        if !caller.inquiry.is_open() {
            return take(gateway, allowed, progress);
        }
    }
}

/// Records the decision of authorization, and refuses the request if the user may not do this.
fn take(
    gateway: &Gateway,
    allowed: Option<Result<(), Unauthorized>>,
    progress: &mut Progress,
) -> Result<(), StageRefusal> {
    let Some(allowed) = allowed else { return Ok(()) };
    progress.authorized(gateway, allowed.is_ok());
    match allowed {
        Ok(()) => Ok(()),
        Err(Unauthorized::Refused(refused)) => judge(gateway, Err(refused)),
        Err(Unauthorized::Undecided(why)) => Err(StageRefusal::Undecided(why)),
    }
}

/// Returns a decision of authorization, unless the server does not know the roles yet: then it cannot refuse anybody
/// for lack of a role.
fn judge(gateway: &Gateway, allowed: ApiResult<()>) -> Result<(), StageRefusal> {
    allowed.or_else(|refused| {
        gateway.beginning.check(&gateway.registry, false)?;
        match refused.code {
            403 => Err(StageRefusal::Forbidden(refused)),
            _ => Err(refused.into()),
        }
    })
}

/// Answers a request whose user is authorized, within its time.
async fn serve(
    gateway: &web::Data<Gateway>,
    router: &Addr<GatewayActor>,
    head: &Head<'_>,
    routed: Box<Routed>,
    payload: web::Payload,
    caller: &mut Caller,
    progress: &mut Progress,
) -> ApiResult<HttpResponse> {
    let Some(ends) = progress.ends else {
        return Box::pin(answer(gateway, router, head, routed, payload, caller, progress)).await;
    };
    // `timeout_at` returns the result of a future that is ready at once, even if the time is over.
    if Instant::now() >= ends {
        return Ok(give_up(gateway, progress));
    }
    let answered = {
        let answering = pin!(answer(gateway, router, head, routed, payload, caller, progress));
        tokio::time::timeout_at(ends.into(), answering).await
    };
    answered.unwrap_or_else(|_| Ok(give_up(gateway, progress)))
}

/// Gives up a request whose time is over.
fn give_up(gateway: &Gateway, progress: &mut Progress) -> HttpResponse {
    progress.terminated(gateway, 504);
    answer::timed_out(gateway.registry.tables.store.may_have_others())
}

/// Answers a request by its route.
async fn answer(
    gateway: &web::Data<Gateway>,
    router: &Addr<GatewayActor>,
    head: &Head<'_>,
    routed: Box<Routed>,
    payload: web::Payload,
    caller: &mut Caller,
    progress: &mut Progress,
) -> ApiResult<HttpResponse> {
    let routed = match *routed {
        Routed::Unserved(info) if definitions::may_be_defined(&info) => {
            Box::pin(definitions::look_again(gateway, info, head)).await?
        }
        routed => routed,
    };
    match routed {
        Routed::Objects(info) => resources::answer(gateway, router, head, info, payload, caller, progress).await,
        Routed::Unserved(_) => {
            Ok(documents::respond_document(discovery::Answer::not_found(), &caller.notices.warnings))
        }
        Routed::Remote { remote, .. } => {
            progress.audited.iter_mut().for_each(|audited| audited.is_remote = true);
            Box::pin(remote::answer(gateway, head, &remote, payload, caller, progress)).await
        }
        Routed::WatchOfNothing => Ok(answer::respond_text(500, &watch_of_nothing(head))),
        Routed::Metrics => documents::measured(gateway, head, false, caller).await,
        Routed::HealthMetrics => documents::measured(gateway, head, true, caller).await,
        Routed::Cluster(asked) => Box::pin(members::respond(gateway, head, &asked, payload)).await,
        Routed::Overview => Box::pin(overview::respond(gateway, head)).await,
        Routed::Console(part) => Box::pin(console::respond(gateway, head, part, caller)).await,
        Routed::Backup => Box::pin(backup::respond(gateway, head)).await,
        Routed::Document => documents::document(gateway, head, caller, progress),
    }
}

/// Returns the text that answers `/watch` without a resource.
fn watch_of_nothing(head: &Head<'_>) -> String {
    format!(
        "{}: failed to create RequestInfo: unable to determine kind and namespace from url, {}\n",
        internal_error(head),
        shown(head)
    )
}

/// Returns how the texts of internal errors begin.
fn internal_error(head: &Head<'_>) -> String {
    format!("Internal Server Error: {}", quote(&shown(head)))
}

/// Returns the target of the request, escaped for HTML.
fn shown(head: &Head<'_>) -> String {
    let query = if head.query_text.is_empty() { String::new() } else { format!("?{}", head.query_text) };
    format!("{}{query}", head.path).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
