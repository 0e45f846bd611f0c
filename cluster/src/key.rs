//! Names of tables and of the objects in them.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The name of a table: the resource type that it holds, as in `pods` or `apps/deployments`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(Arc<str>);

impl TableId {
    /// Returns the id of the table with this name.
    pub fn new(name: &str) -> TableId {
        TableId(name.into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TableId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TableId {
    fn from(name: &str) -> TableId {
        TableId::new(name)
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of an object within its table: `namespace/name`, or `name` when cluster-scoped.
///
/// Keys are ordered by their bytes; lists are in that order. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// Returns the key with this text.
    pub fn new(text: &str) -> Key {
        Key(text.into())
    }

    /// Returns the key of an object in a namespace.
    pub fn namespaced(namespace: &str, name: &str) -> Key {
        let mut text = String::with_capacity(namespace.len() + 1 + name.len());
        text.push_str(namespace);
        text.push('/');
        text.push_str(name);
        Key(text.into())
    }

    /// Returns the whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the namespace; `None` when cluster-scoped.
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// Returns the name within the namespace.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Key {
        Key::new(text)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The part of a table that a list covers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Scope {
    /// Every object.
    #[default]
    All,
    /// The objects of one namespace.
    Namespace(compact_str::CompactString),
}

impl Scope {
    /// Returns the scope of one namespace.
    pub fn namespace(namespace: &str) -> Scope {
        Scope::Namespace(namespace.into())
    }

    /// Returns whether a key belongs to the scope.
    pub fn contains(&self, key: &Key) -> bool {
        match self {
            Scope::All => true,
            Scope::Namespace(namespace) => key.namespace() == Some(namespace.as_str()),
        }
    }

    /// Returns the prefix that every key of the scope has; empty for all objects.
    pub(crate) fn prefix(&self) -> String {
        match self {
            Scope::All => String::new(),
            Scope::Namespace(namespace) => format!("{namespace}/"),
        }
    }

    /// Returns the smallest text above every key of the scope; `None` for all objects.
    pub(crate) fn end(&self) -> Option<String> {
        const BEHIND_SLASH: char = '0';
        match self {
            Scope::All => None,
            Scope::Namespace(namespace) => Some(format!("{namespace}{BEHIND_SLASH}")),
        }
    }
}
