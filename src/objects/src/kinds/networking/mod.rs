//! The kinds of the group `networking.k8s.io`.

mod ingress;
mod network_policy;
mod service_cidr;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "ingressclasses" => &ingress::CLASS_STRATEGY,
        "ingresses" => &ingress::STRATEGY,
        "ipaddresses" => &service_cidr::ADDRESS_STRATEGY,
        "networkpolicies" => &network_policy::STRATEGY,
        "servicecidrs" => &service_cidr::STRATEGY,
        _ => return None,
    })
}
