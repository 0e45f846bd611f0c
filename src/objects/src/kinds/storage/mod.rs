//! The kinds of the group `storage.k8s.io`.

mod csi;
mod storage_class;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "csidrivers" => &csi::DRIVER,
        "csinodes" => &csi::NODE,
        "csistoragecapacities" => &storage_class::CAPACITY,
        "storageclasses" => &storage_class::STRATEGY,
        "volumeattachments" => &csi::ATTACHMENT,
        "volumeattributesclasses" => &storage_class::ATTRIBUTES,
        _ => return None,
    })
}
