//! The kinds of the group `rbac.authorization.k8s.io`.

mod roles;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "clusterrolebindings" => &roles::CLUSTER_ROLE_BINDING,
        "clusterroles" => &roles::CLUSTER_ROLE,
        "rolebindings" => &roles::ROLE_BINDING,
        "roles" => &roles::ROLE,
        _ => return None,
    })
}
