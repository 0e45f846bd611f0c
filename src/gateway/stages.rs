//! The stages of a request, in the order in which it passes them:
//!
//! 1. [`identify`]: finds the user. Refuses with 401.
//! 2. [`impersonate`]: reads the user for whom the first user wants to act.
//! 3. [`route`]: finds the resource or document.
//! 4. [`bound`]: bounds the time.
//! 5. [`act_as`]: replaces the user by the impersonated one if that is allowed. Refuses with 403.
//! 6. [`take_seat`]: takes a seat. Without a free one, the request waits or is refused with 429.
//! 7. [`authorize`]: decides whether the user may make the request. Refuses with 403.
//! 8. [`serve`]: answers the request.
//!
//! A stage passes a request on or refuses it, and answers nothing itself. [`pass`] makes every refusal an answer. Every
//! answer leaves through [`super::handler::handle`], which gives it its `Audit-Id`, counts it and frees the seat.
//! Metrics learn of a request from [`Progress`], to which each stage reports.
//!
//! A target with a badly escaped path is no URL and passes no stage. [`super::handler::handle`] refuses it with 400
//! before anything learns of a request, as kube-apiserver's HTTP library does: without an `Audit-Id` or other headers
//! of the API, without an audit event, and without metrics.

use std::pin::pin;
use std::time::Instant;

use actix::Addr;
use actix_web::http::header::HeaderValue;
use actix_web::{HttpRequest, HttpResponse, web};

use super::actor::{GatewayActor, Route, unrouted};
use super::attributes::with_attributes;
use super::exchange::{Exchange, Progress};
use super::head::Head;
use super::identification::identify;
use super::routing::Routed;
use super::seating::{take_seat, wait};
use super::stage_refusal::{StageRefusal, refuse};
use super::timeouts::{bound, in_time};
use super::{Gateway, dispatch, recorded};
use crate::access::Impersonation;
use crate::request::{Caller, Unauthorized};
use crate::status::ApiResult;

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
    passed.unwrap_or_else(|refusal| refusal.answer(gateway, head, &caller, progress))
}

/// Passes a request through the stages after the first. Its user is known.
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

/// Replaces the user by the impersonated one if that is allowed. If a webhook must be asked first, leaves the question
/// for it in the caller's inquiry.
fn act_as(gateway: &Gateway, head: &Head<'_>, routed: &Routed, caller: &mut Caller) -> ApiResult<()> {
    if caller.impersonation.is_none() {
        return Ok(());
    }
    let authorizer = &gateway.registry.tables.authorizer;
    let allowed = with_attributes(head, routed, |attributes| caller.impersonate(authorizer, attributes));
    allowed.unwrap_or(Ok(()))
}

/// Asks webhooks until the permission to impersonate is known, and then replaces the user.
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

/// Asks webhooks until the authorization of the request is known.
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

/// Returns a decision of authorization. While the server does not know the roles, it cannot refuse a user for lack of a
/// role: 503 then replaces the refusal.
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
        return Box::pin(dispatch::answer(gateway, router, head, routed, payload, caller, progress)).await;
    };
    // `timeout_at` returns the result of a future that is ready at once, even if the time is over.
    if Instant::now() >= ends {
        return Ok(progress.give_up(gateway));
    }
    let answered = {
        let answering = pin!(dispatch::answer(gateway, router, head, routed, payload, caller, progress));
        tokio::time::timeout_at(ends.into(), answering).await
    };
    answered.unwrap_or_else(|_| Ok(progress.give_up(gateway)))
}
