//! The kinds of the group `apiextensions.k8s.io`.

pub mod custom_resource_definition;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "customresourcedefinitions" => &custom_resource_definition::STRATEGY,
        _ => return None,
    })
}
