//! A table at one revision.

use std::sync::Arc;

use super::cursor::Cursor;
use super::division::Division;
use super::shard::{Hold, Shard};
use crate::{Compacted, Key, Object, Revision, Scope, TermFilter};

/// A table at one revision. It stays readable while this or a clone of it lives, but not longer than the options allow.
/// Cheap to clone.
///
/// Reads take the lock of a shard for one chunk at a time, so that a long list never stops writers.
#[derive(Clone)]
pub struct Snapshot {
    pinned: Arc<Pinned>,
}

struct Pinned {
    revision: Revision,
    /// The division that has the revision.
    division: Arc<Division>,
    /// One for each shard. There are fewer if the revision is not readable any more; then every read fails.
    _holds: Vec<Hold>,
}

/// Which objects of a snapshot to read.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The namespace, or all.
    pub scope: Scope,
    /// Only objects with this value of this selectable field. Uses the index of the field if the table has one;
    /// otherwise examines the whole scope.
    pub field: Option<(compact_str::CompactString, compact_str::CompactString)>,
    /// Lists of alternative terms: only objects that may have at least one term of each list. This filter saves loading
    /// most of the other objects, but some pass it: the reader must drop those that do not match.
    pub required: Vec<Vec<TermFilter>>,
}

impl Snapshot {
    pub(super) fn new(revision: Revision, division: Arc<Division>, holds: Vec<Hold>) -> Snapshot {
        Snapshot { pinned: Arc::new(Pinned { revision, division, _holds: holds }) }
    }

    pub(super) fn shard(&self, number: usize) -> &Arc<Shard> {
        &self.pinned.division.shards()[number].shard
    }

    pub(super) fn shard_count(&self) -> usize {
        self.pinned.division.shards().len()
    }

    /// Returns the revision at which everything is read.
    pub fn revision(&self) -> Revision {
        self.pinned.revision
    }

    /// Returns the number of objects in the scope, in constant time.
    ///
    /// # Errors
    /// Fails when the snapshot was held for too long.
    pub fn count(&self, scope: &Scope) -> Result<u64, Compacted> {
        let shards = self.pinned.division.shards().iter();
        shards.map(|placed| placed.shard.keyspace.read().count(scope, self.revision())).sum()
    }

    /// Returns one object. Returns `None` when it did not exist at the revision.
    ///
    /// # Errors
    /// Fails when the snapshot was held for too long.
    pub fn get(&self, key: &str) -> Result<Option<Arc<Object>>, Compacted> {
        let shard = &self.pinned.division.shard_for(key).shard;
        Ok(shard.keyspace.read().at(key, self.revision())?.cloned())
    }

    /// Returns a cursor over the selected objects in key order, after the key `after` or from the start.
    pub fn cursor(&self, selection: Selection, after: Option<Key>) -> Cursor {
        Cursor::new(self.clone(), selection, after)
    }
}
