//! The kinds of the group `coordination.k8s.io`.

mod lease;
mod lease_candidate;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "leasecandidates" => &lease_candidate::STRATEGY,
        "leases" => &lease::STRATEGY,
        _ => return None,
    })
}
