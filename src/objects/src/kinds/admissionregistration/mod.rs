//! The kinds of the group `admissionregistration.k8s.io`.

mod binding;
mod expressions;
mod policy;
mod rules;
pub mod webhook;

use crate::rules::Strategy;

/// Returns the strategy of a resource. `None` if the resource has no rules of its own.
pub(super) fn strategy(resource: &str) -> Option<&'static Strategy> {
    Some(match resource {
        "mutatingadmissionpolicies" => &policy::MUTATING,
        "mutatingadmissionpolicybindings" => &binding::MUTATING,
        "mutatingwebhookconfigurations" => &webhook::MUTATING,
        "validatingadmissionpolicies" => &policy::VALIDATING,
        "validatingadmissionpolicybindings" => &binding::VALIDATING,
        "validatingwebhookconfigurations" => &webhook::VALIDATING,
        _ => return None,
    })
}
