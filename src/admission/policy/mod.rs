//! What validating and mutating policies have in common: what they match, their bindings and parameters, and what their
//! expressions see of a request.

mod asker;
mod binding;
mod following;
mod hook;
mod params;
mod refusal;
mod request;
mod selection;
mod spec;

pub use binding::{Action, Binding};
pub use following::{MUTATING_POLICIES, Policies, VALIDATING_POLICIES};
pub use hook::{Hook, Policy};
pub use params::Param;
pub use refusal::forbidden;
pub use request::{Scene, requests};
pub use selection::{Selected, select};
pub use spec::{ParamKind, Spec, sees};

use super::Subject;

/// Resources that policies cannot concern: themselves, and questions without which nobody can mend them.
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

/// Whether a write is none that policies decide about.
fn is_exempt(subject: &Subject<'_>) -> bool {
    let (group, _, resource) = subject.resource();
    EXEMPT.contains(&(group, resource))
}
