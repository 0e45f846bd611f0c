//! Deprecated resources: every answer about them has a `Warning` header that says so (KEP-1693).

use crate::served::Served;

/// Group, version and resource, and the text of the warning.
const DEPRECATED: &[([&str; 3], &str)] = &[
    (["", "v1", "componentstatuses"], "v1 ComponentStatus is deprecated in v1.19+"),
    (["", "v1", "endpoints"], "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
];

/// Returns the warning about a resource. `None` if the resource is not deprecated.
pub fn warning(served: &Served) -> Option<&str> {
    if let Some(custom) = &served.custom {
        return custom.version().deprecation.as_deref();
    }
    let of = &served.resource;
    let own = [&*of.group, &*of.version, &*of.name];
    DEPRECATED.iter().find(|(deprecated, _)| *deprecated == own).map(|(_, text)| *text)
}
