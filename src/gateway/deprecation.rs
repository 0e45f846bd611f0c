//! Resources that will go: every answer about them says so in a `Warning` header (KEP-1693).

use crate::served::Served;

/// Group, version and resource, and what is said of them.
const DEPRECATED: &[([&str; 3], &str)] = &[
    (["", "v1", "componentstatuses"], "v1 ComponentStatus is deprecated in v1.19+"),
    (["", "v1", "endpoints"], "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
];

/// What is said of a resource, if anything.
pub fn warning(served: &Served) -> Option<&str> {
    if let Some(custom) = &served.custom {
        return custom.version().deprecation.as_deref();
    }
    let of = &served.resource;
    let own = [&*of.group, &*of.version, &*of.name];
    DEPRECATED.iter().find(|(deprecated, _)| *deprecated == own).map(|(_, text)| *text)
}
