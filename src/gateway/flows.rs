//! Seats of priority levels: finds the flow of a request, and takes a seat or a place in a queue for it.

use std::sync::Arc;
use std::time::Instant;

use actix_web::http::header::{HeaderMap, HeaderName};

use super::Gateway;
use super::attributes::with_attributes;
use super::exchange::Progress;
use super::head::Head;
use super::routing::Routed;
use super::seats::Lane;
use crate::fairness::{Entered, Flow, Reason, Waiting};
use crate::limits;
use crate::request::Caller;

/// The header with the uid of the request's FlowSchema.
const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
/// The header with the uid of its priority level.
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The state of a request that asked for a seat of its level.
pub(super) enum Admitted {
    /// The request continues: it has a seat, or needs none.
    Now,
    /// The request continues after a wait.
    AfterWait(Box<Waiting>),
    /// It gets no seat.
    No,
}

/// Takes a seat for a request in its priority level, and notes its flow for the answer.
pub(super) fn enter(
    gateway: &Gateway,
    head: &Head<'_>,
    routed: &Routed,
    caller: &Caller,
    progress: &mut Progress,
) -> Admitted {
    let Some(fairness) = gateway.fairness.as_ref().filter(|_| routed.is_shared()) else { return Admitted::Now };
    let entered = with_attributes(head, routed, |attributes| {
        let flow = fairness.flow(caller.identity.user(), attributes);
        let entered = flow.enter(&caller.identity.user().name, attributes.namespace());
        (flow, entered)
    });
    let Some((flow, entered)) = entered else { return Admitted::Now };
    progress.flow = Some(flow);
    seat(entered, progress)
}

fn seat(entered: Entered, progress: &mut Progress) -> Admitted {
    match entered {
        Entered::Seated(seat) => {
            progress.seat = Some(seat);
            Admitted::Now
        }
        Entered::Waits(waiting) => Admitted::AfterWait(waiting),
        Entered::Refused => Admitted::No,
    }
}

/// Waits for a seat. Returns false if the request gets none in time, or if the server stops.
pub(super) async fn wait(gateway: &Gateway, mut waiting: Box<Waiting>, progress: &mut Progress) -> bool {
    let whole = progress.ends.map_or(gateway.request_timeout, |ends| ends.saturating_duration_since(progress.began));
    let late = progress.began + whole / limits::SEAT_WAIT_PART;
    let waited = tokio::select! {
        biased;
        seat = &mut *waiting => Ok(seat),
        () = tokio::time::sleep_until(late.into()) => Err(Reason::TimeOut),
        () = gateway.streams.clone().begun() => Err(Reason::Cancelled),
    };
    progress.seat = waited.map_or_else(|reason| waiting.give_up(reason), Some);
    let took = progress.identified.elapsed();
    progress.audited.iter_mut().for_each(|audited| audited.took.seat += took);
    progress.identified = Instant::now();
    progress.seat.is_some()
}

/// Takes a new seat, in the same level and lane, for a request that gave its seat up. Returns false if it gets none.
pub(super) async fn enter_again(
    gateway: &Gateway,
    (user, namespace): (&str, &str),
    lane: Lane,
    progress: &mut Progress,
) -> bool {
    let flow: Option<Arc<Flow>> = progress.flow.clone();
    progress.identified = Instant::now();
    let admitted = flow.map_or(Admitted::Now, |flow| seat(flow.enter(user, namespace), progress));
    let admitted = match admitted {
        Admitted::Now => true,
        Admitted::AfterWait(waiting) => wait(gateway, waiting, progress).await,
        Admitted::No => false,
    };
    admitted && progress.take_seat(gateway, lane)
}

/// Adds the headers that name the FlowSchema and the level of a request.
pub(super) fn show(flow: Option<&Arc<Flow>>, headers: &mut HeaderMap) {
    if let Some(flow) = flow {
        headers.insert(FLOW_SCHEMA, flow.schema_uid.clone());
        headers.insert(PRIORITY_LEVEL, flow.level_uid.clone());
    }
}
