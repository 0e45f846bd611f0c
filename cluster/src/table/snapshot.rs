//! A table as of one revision.

use std::sync::Arc;

use super::cursor::Cursor;
use super::division::Division;
use super::shard::{Hold, Shard};
use crate::{Compacted, Key, Marks, Object, Revision, Scope};

/// A table as of one revision, kept readable while this or a clone of it lives, and at most for the time that the
/// options bound. Cheap to clone.
///
/// Reads take the lock of a shard for one chunk at a time, so that a long list never stops writers.
#[derive(Clone)]
pub struct Snapshot {
    pinned: Arc<Pinned>,
}

struct Pinned {
    revision: Revision,
    /// The division that knows the revision.
    division: Arc<Division>,
    /// Fewer than shards when the revision is not readable any more, which every read then says.
    _holds: Vec<Hold>,
}

/// Which objects of a snapshot to read.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The namespace, or all.
    pub scope: Scope,
    /// Only objects with this value of this selectable field. Served by an index where the table has one for the
    /// field, else by examining the whole scope.
    pub field: Option<(compact_str::CompactString, compact_str::CompactString)>,
    /// Only objects that may have one of the terms of each of these. It saves looking at most of the others; those that
    /// are answered all the same are the reader's to leave out.
    pub required: Vec<Vec<Marks>>,
}

impl Snapshot {
    pub(super) fn new(revision: Revision, division: Arc<Division>, holds: Vec<Hold>) -> Snapshot {
        Snapshot { pinned: Arc::new(Pinned { revision, division, _holds: holds }) }
    }

    pub(super) fn shard(&self, number: usize) -> &Arc<Shard> {
        &self.pinned.division.places()[number].shard
    }

    pub(super) fn shard_count(&self) -> usize {
        self.pinned.division.places().len()
    }

    /// The revision of everything that is read from it.
    pub fn revision(&self) -> Revision {
        self.pinned.revision
    }

    /// How many objects of the scope there are. Takes constant time.
    ///
    /// # Errors
    /// The snapshot was held for too long.
    pub fn count(&self, scope: &Scope) -> Result<u64, Compacted> {
        let places = self.pinned.division.places().iter();
        places.map(|place| place.shard.keyspace.read().count(scope, self.revision())).sum()
    }

    /// One object.
    ///
    /// # Errors
    /// The snapshot was held for too long.
    pub fn get(&self, key: &str) -> Result<Option<Arc<Object>>, Compacted> {
        let shard = &self.pinned.division.place(key).shard;
        Ok(shard.keyspace.read().at(key, self.revision())?.cloned())
    }

    /// Begins to read selected objects in key order, behind the key `after` or from the start.
    pub fn cursor(&self, selection: Selection, after: Option<Key>) -> Cursor {
        Cursor::new(self.clone(), selection, after)
    }
}
