//! The kinds of the group `flowcontrol.apiserver.k8s.io`.

mod flow_schema;
mod priority_level;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "flowschemas" => &flow_schema::STRATEGY,
        "prioritylevelconfigurations" => &priority_level::STRATEGY,
        _ => return None,
    })
}
