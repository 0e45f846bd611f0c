//! The kinds of the group `batch`.

mod cron_job;
mod job;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "cronjobs" => &cron_job::STRATEGY,
        "jobs" => &job::STRATEGY,
        _ => return None,
    })
}
