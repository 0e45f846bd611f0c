//! The kinds of the group `internal.apiserver.k8s.io`.

mod storage_version;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "storageversions" => &storage_version::STRATEGY,
        _ => return None,
    })
}
