//! The kinds of the group `autoscaling`.

mod horizontal_pod_autoscaler;
mod scale;

use crate::rules::Strategy;

/// Returns the strategy of a resource, or of the subresource `scale`. `None` if it has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "horizontalpodautoscalers" => &horizontal_pod_autoscaler::STRATEGY,
        "scale" => &scale::STRATEGY,
        _ => return None,
    })
}
