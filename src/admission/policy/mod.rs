//! The common part of validating and mutating policies: matching, bindings, parameters, and the variables of their
//! expressions.

mod binding;
mod bound_policy;
mod cached_authorizer;
mod following;
mod params;
mod refusal;
mod request;
mod selection;
mod spec;

pub use binding::{Action, Binding};
pub use bound_policy::{BoundPolicy, Policy};
pub use following::{MUTATING_POLICIES, Policies, VALIDATING_POLICIES};
pub use params::Param;
pub use refusal::forbidden;
pub use request::{PolicyVariables, requests};
pub use selection::{Selected, select};
pub use spec::{ParamKind, Spec, sees};

use super::MatchAttributes;

/// Resources to which no policy applies: policies and bindings themselves, and reviews, without which nobody could
/// repair a wrong policy.
const EXEMPT: [(&str, &str); 10] = [
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Returns whether no policy applies to a write.
fn is_exempt(write: &MatchAttributes<'_>) -> bool {
    let (group, _, resource) = write.resource();
    EXEMPT.contains(&(group, resource))
}
