//! The kinds of the group `policy`.

mod pod_disruption_budget;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "poddisruptionbudgets" => &pod_disruption_budget::STRATEGY,
        _ => return None,
    })
}
