//! Committed changes, as watchers see them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Object, Revision};

/// The effect of a change on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The object did not exist before.
    Added,
    /// The object was replaced.
    Modified,
    /// The object does not exist any more.
    Deleted,
}

/// One committed change of a table, shared by the change log and every watcher.
pub struct Change {
    kind: ChangeKind,
    object: Arc<Object>,
    previous: Option<Arc<Object>>,
    shared: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

impl Change {
    pub(crate) fn new(kind: ChangeKind, object: Arc<Object>, previous: Option<Arc<Object>>) -> Change {
        Change { kind, object, previous, shared: Mutex::new(None) }
    }

    /// Returns the effect on the object.
    pub fn kind(&self) -> ChangeKind {
        self.kind
    }

    /// Returns the revision of the change.
    pub fn revision(&self) -> Revision {
        self.object.revision()
    }

    /// Returns the object after the change; for a deletion, its last state with the revision of the deletion.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// Returns the object before the change; `None` when it was added.
    pub fn previous(&self) -> Option<&Arc<Object>> {
        self.previous.as_ref()
    }

    /// Returns a value that all watchers of this change share, typically its encodings. `make` makes it when there is
    /// none.
    ///
    /// The store drops its reference some seconds after the change, so that history does not hold encodings. A watcher
    /// that comes later makes the value again.
    pub fn shared<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut cached = self.shared.lock();
        if let Some(shared) = cached.clone().and_then(|shared| shared.downcast::<T>().ok()) {
            return shared;
        }
        let shared = Arc::new(make());
        *cached = Some(shared.clone());
        shared
    }

    /// Drops the value that watchers share.
    pub(crate) fn forget_shared(&self) {
        drop(self.shared.lock().take());
    }

    /// Returns the memory that the history keeps because of this change, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let tombstone = if self.object.is_tombstone() { self.object.memory() } else { 0 };
        size_of::<Change>() + tombstone + self.previous.as_ref().map_or(0, |previous| previous.memory())
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.kind, self.object)
    }
}

/// A range of changes: those after one revision and up to another, at most `max` of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeRange {
    pub(crate) after: Revision,
    pub(crate) through: Revision,
    pub(crate) max: usize,
}
