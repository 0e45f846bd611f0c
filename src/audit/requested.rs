//! Requests as the rules of a policy see them.

/// A request as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Requested<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The path, decoded.
    pub path: &'a str,
    /// The objects that the request is about. `None` if the path leads to no resource.
    pub object: Option<ObjectRef<'a>>,
}

/// The objects of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObjectRef<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource; may be empty.
    pub subresource: &'a str,
    /// The namespace; empty at the cluster scope.
    pub namespace: &'a str,
    /// The name; may be empty.
    pub name: &'a str,
}
