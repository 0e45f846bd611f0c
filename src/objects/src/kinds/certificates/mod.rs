//! The kinds of the group `certificates.k8s.io`.

pub mod certificate;
mod conditions;
mod signer_name;
pub mod signers;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "certificatesigningrequests" => &certificate::STRATEGY,
        _ => return None,
    })
}
