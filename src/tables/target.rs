//! The resource or object that a request names.

use crate::served::Served;

/// The resource or object that a request names.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The resource.
    pub served: &'a Served,
    /// Namespace; empty for cluster-scoped resources.
    pub namespace: &'a str,
    /// Name; empty for creates.
    pub name: &'a str,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
}

impl<'a> Target<'a> {
    /// Returns the target of a request for one object.
    pub const fn object(served: &'a Served, namespace: &'a str, name: &'a str) -> Self {
        Self { served, namespace, name, subresource: "" }
    }

    /// Returns the target of a request for a resource, such as a create.
    pub const fn resource(served: &'a Served, namespace: &'a str) -> Self {
        Self::object(served, namespace, "")
    }

    /// Returns the same target with another subresource.
    pub const fn with_subresource(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }
}
