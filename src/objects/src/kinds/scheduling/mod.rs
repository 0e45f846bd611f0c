//! The kinds of the group `scheduling.k8s.io`.

pub mod priority_class;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "priorityclasses" => &priority_class::STRATEGY,
        _ => return None,
    })
}
