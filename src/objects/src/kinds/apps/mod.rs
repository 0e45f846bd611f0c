//! The kinds of the group `apps`.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "controllerrevisions" => &controller_revision::STRATEGY,
        "daemonsets" => &daemon_set::STRATEGY,
        "deployments" => &deployment::STRATEGY,
        "replicasets" => &replica_set::STRATEGY,
        "statefulsets" => &stateful_set::STRATEGY,
        _ => return None,
    })
}
