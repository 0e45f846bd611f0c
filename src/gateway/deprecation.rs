//! Deprecated resources: every answer about them has a `Warning` header that says so (KEP-1693).

use std::borrow::Cow;

use crate::served::Served;

/// Group, version and resource, and the text of the warning.
const DEPRECATED: &[([&str; 3], &str)] = &[
    (["", "v1", "componentstatuses"], "v1 ComponentStatus is deprecated in v1.19+"),
    (["", "v1", "endpoints"], "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
];

/// Versions that are not stable and that Kubernetes 1.36 deprecates: group, version and resource, the minor version of
/// Kubernetes 1 that began to, and the kind to use instead, if the reference names it.
const UNSTABLE: &[([&str; 3], u8, &str)] = &[
    (["admissionregistration.k8s.io", "v1alpha1", "mutatingadmissionpolicies"], 35, ""),
    (["admissionregistration.k8s.io", "v1alpha1", "mutatingadmissionpolicybindings"], 35, ""),
    (["coordination.k8s.io", "v1alpha2", "leasecandidates"], 35, ""),
    (["coordination.k8s.io", "v1beta1", "leasecandidates"], 36, ""),
    (["networking.k8s.io", "v1beta1", "ipaddresses"], 34, ""),
    (["networking.k8s.io", "v1beta1", "servicecidrs"], 34, ""),
    (["resource.k8s.io", "v1alpha3", "devicetaintrules"], 36, ""),
    (["resource.k8s.io", "v1beta1", "deviceclasses"], 35, ""),
    (["resource.k8s.io", "v1beta1", "resourceclaims"], 35, ""),
    (["resource.k8s.io", "v1beta1", "resourceclaimtemplates"], 35, ""),
    (["resource.k8s.io", "v1beta1", "resourceslices"], 35, ""),
    (["resource.k8s.io", "v1beta2", "deviceclasses"], 36, ""),
    (["resource.k8s.io", "v1beta2", "resourceclaims"], 36, ""),
    (["resource.k8s.io", "v1beta2", "resourceclaimtemplates"], 36, ""),
    (["resource.k8s.io", "v1beta2", "resourceslices"], 36, ""),
    (["storage.k8s.io", "v1beta1", "volumeattributesclasses"], 34, "storage.k8s.io/v1 VolumeAttributesClass"),
];

/// How many minor versions after its deprecation such a version is removed.
const MINORS_UNTIL_REMOVAL: u8 = 3;

/// Returns the release of Kubernetes that no longer serves a deprecated resource. `None` if the resource is not
/// deprecated, or if no release is named.
pub fn removal(served: &Served) -> Option<String> {
    unstable(served).map(|(since, _)| format!("1.{}", since + MINORS_UNTIL_REMOVAL))
}

/// Returns the minor version that deprecates a resource of an unstable version, and the kind to use instead.
fn unstable(served: &Served) -> Option<(u8, &'static str)> {
    let of = &served.resource;
    let own = [&*of.group, &*of.version, &*of.name];
    let found = UNSTABLE.iter().find(|(unstable, ..)| served.custom.is_none() && *unstable == own);
    found.map(|(_, since, instead)| (*since, *instead))
}

/// Returns the warning about a resource. `None` if the resource is not deprecated.
pub fn warning(served: &Served) -> Option<Cow<'_, str>> {
    if let Some(custom) = &served.custom {
        return custom.version().deprecation.as_deref().map(Cow::from);
    }
    let of = &served.resource;
    let own = [&*of.group, &*of.version, &*of.name];
    if let Some((_, text)) = DEPRECATED.iter().find(|(deprecated, _)| *deprecated == own) {
        return Some(Cow::from(*text));
    }
    let ((since, instead), end) = (unstable(served)?, removal(served)?);
    let (version, kind) = (served.api_version(), &of.kind.name);
    let instead = if instead.is_empty() { String::new() } else { format!("; use {instead}") };
    Some(format!("{version} {kind} is deprecated in v1.{since}+, unavailable in v{end}+{instead}").into())
}
