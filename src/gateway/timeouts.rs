//! The time that a request may take.

use std::time::{Duration, Instant};

use flotilla_proto::duration;

use super::Gateway;
use super::exchange::Progress;
use super::head::Head;
use super::routing::Routed;
use super::stage_refusal::StageRefusal;
use crate::field::quote;
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

/// Bounds the time of a request that is not long-running. Documents are made at once and need no bound.
pub(super) fn bound(
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

/// Reads the option `timeout`. `None` if the client states no time above zero.
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

/// Refuses a request whose time is over.
pub(super) fn in_time(caller: &Caller) -> Result<(), StageRefusal> {
    match caller.ends.is_some_and(|ends| Instant::now() >= ends) {
        true => Err(StageRefusal::TimedOut),
        false => Ok(()),
    }
}
