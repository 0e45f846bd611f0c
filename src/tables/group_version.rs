//! Group and version of a kind or a resource.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use crate::served::Served;

/// Group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupVersionKind {
    /// Group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Name of the kind.
    pub kind: String,
}

/// Group, version and plural name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupVersionResource {
    /// Group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural name.
    pub resource: String,
}

impl GroupVersionKind {
    /// Returns the `apiVersion` of objects of the kind.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the kind in the form that reviews and expressions use.
    pub fn to_value(&self) -> Value {
        value!({"group": (&*self.group), "version": (&*self.version), "kind": (&*self.kind)})
    }

    /// Returns the kind of the bodies of a resource, or of one of its subresources.
    pub fn of(served: &Served, subresource: &str) -> Self {
        let (group, version, kind) = kind_of(served, subresource);
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }
}

/// Returns group, version and name of the kind of the bodies of a resource, or of one of its subresources.
pub fn kind_of<'s>(served: &'s Served, subresource: &str) -> (&'s str, &'s str, &'s str) {
    let part = served.resource.subresources.iter().find(|part| part.name == subresource);
    let own = served.kind();
    match part.map(|part| &part.response_kind) {
        Some((group, version, kind)) if !kind.is_empty() => (group, version, kind),
        _ => (&own.group, &own.version, &own.name),
    }
}

impl GroupVersionResource {
    /// Returns the resource in the form that reviews and expressions use.
    pub fn to_value(&self) -> Value {
        value!({"group": (&*self.group), "version": (&*self.version), "resource": (&*self.resource)})
    }

    /// Returns the group, version and name of a served resource.
    pub fn of(served: &Served) -> Self {
        let of = &served.resource;
        Self { group: of.group.to_string(), version: of.version.to_string(), resource: of.name.to_string() }
    }
}
