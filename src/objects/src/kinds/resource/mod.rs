//! The kinds of the group `resource.k8s.io`.

pub mod admin_access;
mod device;
mod device_class;
mod device_taint_rule;
mod pool_status_request;
mod resource_claim;
mod resource_slice;
mod v1beta1;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "deviceclasses" => &device_class::STRATEGY,
        "devicetaintrules" => &device_taint_rule::STRATEGY,
        "resourceclaims" => &resource_claim::STRATEGY,
        "resourceclaimtemplates" => &resource_claim::TEMPLATE,
        "resourcepoolstatusrequests" => &pool_status_request::STRATEGY,
        "resourceslices" => &resource_slice::STRATEGY,
        _ => return None,
    })
}
