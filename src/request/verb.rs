//! Verbs of requests for objects.

use super::path::ResourcePath;

/// The verb of a request, by its method and the form of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows changes.
    Watch,
    /// Makes an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes parts of an object.
    Patch,
    /// Removes an object.
    Delete,
    /// Removes every object of a collection that is selected.
    DeleteCollection,
}

impl Verb {
    /// Returns the name in authorization and discovery.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Returns whether the verb may change something.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }

    /// Returns the verb of a method on a path, as authorization calls it. Returns `None` for other methods. `watch` is
    /// the parameter of the query.
    pub fn of(method: &str, watch: bool, of: &ResourcePath) -> Option<Self> {
        let named = of.name.is_some();
        let watching = of.watch || (!named && watch);
        Some(match method {
            "GET" if watching => Self::Watch,
            "GET" if named => Self::Get,
            "GET" => Self::List,
            "POST" => Self::Create,
            "PUT" => Self::Update,
            "PATCH" => Self::Patch,
            "DELETE" if named => Self::Delete,
            "DELETE" => Self::DeleteCollection,
            _ => return None,
        })
    }
}
