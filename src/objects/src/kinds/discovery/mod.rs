//! The kinds of the group `discovery.k8s.io`.

mod endpoint_slice;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "endpointslices" => &endpoint_slice::STRATEGY,
        _ => return None,
    })
}
