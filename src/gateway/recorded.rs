//! Tells the audit log the findings of a request's stages.

use std::future::poll_fn;
use std::time::Instant;

use actix_web::body::{BodySize, BoxBody, MessageBody as _};
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use tokio::time::{timeout, timeout_at};

use super::Gateway;
use super::exchange::{Exchange, Progress};
use super::head::Head;
use super::resources::with_attributes;
use super::timeouts::asked_timeout;
use crate::answer;
use crate::audit::Audited;
use crate::audit::requested::{ObjectRef, Requested};
use crate::field::quote;
use crate::request::Caller;
use crate::request::path::{self, PathKind};
use crate::request::verb::Verb;

/// Begins to record a request, if the policy says so. `caller` is `None` if the user is not known. Returns the answer
/// to a request that must not go on, since its event cannot be recorded.
pub(super) fn begin(
    gateway: &Gateway,
    request: &HttpRequest,
    (head, id): (&Head<'_>, &HeaderValue),
    caller: Option<&mut Caller>,
    progress: &mut Progress,
) -> Option<HttpResponse> {
    let audit = gateway.audit.as_ref()?;
    let uri = uri(head);
    let decoded = path::decode(head.path);
    let user = caller.as_ref().map(|caller| caller.identity.user());
    let who = (user, progress.began, progress.identified.saturating_duration_since(progress.began));
    let begun =
        |requested: &Requested<'_>, who, lasts| Audited::begin(audit, request, (id, &uri), who, (requested, lasts));
    let audited = match path::parse(&decoded) {
        PathKind::Resource(of) => {
            let verb = Verb::of(head.method, head.watches(), &of);
            with_attributes(head, &of, verb, |attributes| {
                let object = ObjectRef {
                    group: attributes.group,
                    version: &of.version,
                    resource: attributes.resource,
                    subresource: attributes.subresource,
                    namespace: attributes.namespace,
                    name: attributes.name,
                };
                let lasts = attributes.verb == "watch" || of.connects();
                // The reference refuses such a request before it identifies the user.
                let who = if !lasts && asked_timeout(head).is_err() { (None, who.1, who.2) } else { who };
                begun(&Requested { verb: attributes.verb, path: &decoded, object: Some(object) }, who, lasts)
            })
        }
        PathKind::Other => {
            begun(&Requested { verb: &head.method.to_lowercase(), path: &decoded, object: None }, who, false)
        }
        // The reference refuses this path before auditing begins.
        PathKind::WatchOfNothing => None,
    };
    let mut audited = audited?;
    if !audited.received() {
        audit.rejected();
        return Some(refusal(head));
    }
    if let Some(caller) = caller {
        caller.record = Some(Box::new(audited.record.clone()));
    }
    progress.audited = Some(audited);
    None
}

fn uri(head: &Head<'_>) -> String {
    let mark = if head.query_text.is_empty() { "" } else { "?" };
    format!("{}{mark}{}", head.path, head.query_text)
}

/// Returns the answer to a request whose event cannot be recorded.
fn refusal(head: &Head<'_>) -> HttpResponse {
    answer::respond_text(500, &format!("Internal Server Error: {}: failed to store audit event\n", quote(&uri(head))))
}

/// Returns whether the client waits until the events of its request are sent.
pub(super) fn is_awaited(progress: &Progress) -> bool {
    progress.audited.as_ref().is_some_and(|audited| audited.is_awaited())
}

/// Waits until the event `RequestReceived` is sent. Returns the answer to a request that must not go on, since the
/// event is lost.
pub(super) async fn received(gateway: &Gateway, head: &Head<'_>, progress: &mut Progress) -> Option<HttpResponse> {
    let audited = progress.audited.as_mut()?;
    match timeout(gateway.request_timeout, poll_fn(|cx| audited.poll_sent(cx))).await {
        Ok(true) => None,
        Ok(false) => {
            progress.audited = None;
            gateway.audit.iter().for_each(|audit| audit.rejected());
            Some(refusal(head))
        }
        Err(_) => Some(answer::timed_out(false)),
    }
}

/// Waits until the events are sent that precede an answer. If its whole body is made, these are all events of the
/// request.
pub(super) async fn precedes(exchange: &mut Exchange, response: &HttpResponse) {
    let Exchange { gateway, progress } = exchange;
    let is_whole = !matches!(response.body().size(), BodySize::Stream);
    let Some(audited) = progress.audited.as_mut() else { return };
    if is_whole {
        audited.end();
    }
    let ends = progress.ends.unwrap_or_else(|| progress.began + gateway.request_timeout);
    let sent = timeout_at(ends.into(), poll_fn(|cx| audited.poll_sent(cx)));
    let _ = sent.await; // if the time is over, the answer comes before its event
    // The wait does not shorten the time that the client has for reading the answer.
    progress.ends = progress.ends.map(|ends| ends.max(Instant::now() + gateway.request_timeout));
}

/// Records the findings of the handling of a request.
pub(super) fn learn(progress: &mut Progress, caller: &mut Caller) {
    if let Some(audited) = &mut progress.audited {
        audited.annotations = std::mem::take(&mut caller.notices.annotations);
        if let Some(record) = caller.record.take() {
            audited.record = *record;
        }
    }
}

/// Records that the server failed to answer.
pub(super) fn broke(progress: &mut Progress) {
    progress.audited.iter_mut().for_each(|audited| audited.is_broken = true);
}

/// Records the answer.
pub(super) fn answers(progress: &mut Progress, response: HttpResponse) -> HttpResponse {
    let Some(audited) = &mut progress.audited else { return response };
    let code = response.status().as_u16();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
    let (media, is_compressed) = (header(CONTENT_TYPE), header(CONTENT_ENCODING) == "gzip");
    let of = (&*media, is_compressed);
    response.map_body(|_, body| match body.size() {
        BodySize::Stream => {
            audited.answers(code, of, None);
            body
        }
        BodySize::None | BodySize::Sized(_) => match body.try_into_bytes() {
            Ok(bytes) => {
                audited.answers(code, of, Some(&bytes));
                BoxBody::new(bytes)
            }
            Err(body) => {
                audited.answers(code, of, None);
                body
            }
        },
    })
}
