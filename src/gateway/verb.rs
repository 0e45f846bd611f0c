//! What is to be done with objects.

use super::handler::Head;
use super::path::ResourcePath;

/// What is to be done, by the method and the shape of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// As authorization and discovery call it.
    pub(super) const fn name(self) -> &'static str {
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

    /// Whether it may change something.
    pub(super) const fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }

    /// The verb of a method on a path, as authorization calls it; methods that have none are called by their name.
    pub(super) fn of(head: &Head<'_>, of: &ResourcePath<'_>) -> Option<Self> {
        let named = of.name.is_some();
        let watching = of.watch || (!named && head.query.flag("watch").unwrap_or(false));
        Some(match head.method {
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
