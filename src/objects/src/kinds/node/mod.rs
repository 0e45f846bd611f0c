//! The kinds of the group `node.k8s.io`.

mod runtime_class;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "runtimeclasses" => &runtime_class::STRATEGY,
        _ => return None,
    })
}
