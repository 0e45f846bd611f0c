//! The kinds of the group `apiregistration.k8s.io`.

mod api_service;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "apiservices" => &api_service::STRATEGY,
        _ => return None,
    })
}
