//! The stage at which a request takes its seat: in its priority level, and among all requests in progress.

use super::exchange::Progress;
use super::flows::{self, Admitted};
use super::head::Head;
use super::routing::{RequestInfo, Routed};
use super::stage_refusal::StageRefusal;
use super::{Gateway, counted};
use crate::fairness::Waiting;
use crate::request::Caller;
use crate::rules::names::MASTERS;

/// Takes a seat among the requests in progress. Returns the wait for it if none is free.
pub(super) fn take_seat(
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
pub(super) async fn wait(
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
