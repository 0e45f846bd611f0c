//! The kinds of the group `autoscaling`.

pub mod horizontal_pod_autoscaler;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "horizontalpodautoscalers" => &horizontal_pod_autoscaler::STRATEGY,
        _ => return None,
    })
}
