//! The changes for which a watcher wants to be woken.

use compact_str::CompactString;

use crate::{Change, Object};

/// A filter of changes: only those to objects in a namespace, with a name, with a value of a selectable field, either
/// before or after the change. A part that is `None` does not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// The namespace.
    pub namespace: Option<CompactString>,
    /// The name of the object.
    pub name: Option<CompactString>,
    /// A selectable field and its value.
    pub field: Option<(CompactString, CompactString)>,
}

impl Interest {
    /// Returns whether a change passes the filter.
    pub fn concerns(&self, change: &Change) -> bool {
        let key = change.object().key();
        if self.namespace.as_ref().is_some_and(|namespace| key.namespace() != Some(namespace.as_str())) {
            return false;
        }
        if self.name.as_ref().is_some_and(|name| key.name() != name.as_str()) {
            return false;
        }
        let Some((field, value)) = &self.field else { return true };
        let has = |object: &Object| object.terms().field(field) == Some(value.as_str());
        has(change.object()) || change.previous().is_some_and(|previous| has(previous))
    }
}
