//! A table as of one revision.

use std::sync::Arc;

use super::keyspace::Scan;
use super::shard::Hold;
use crate::limits::SCAN_UNDER_LOCK_MAX;
use crate::{Compacted, Key, Object, Revision, Scope};

/// A table as of one revision, kept readable while this lives, and at most for the time that the options bound.
///
/// Reads take the table's lock for one chunk at a time, so that a long list never stops writers.
pub struct Snapshot {
    pub(super) hold: Hold,
    pub(super) revision: Revision,
}

/// Which objects of a snapshot to read.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The namespace, or all.
    pub scope: Scope,
    /// Only objects with this value of this selectable field. Served by an index where the table has one for the
    /// field, else by examining the whole scope.
    pub field: Option<(compact_str::CompactString, compact_str::CompactString)>,
}

impl Snapshot {
    /// The revision of everything that is read from it.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// How many objects of the scope there are. Takes constant time.
    ///
    /// # Errors
    /// The snapshot was held for too long.
    pub fn count(&self, scope: &Scope) -> Result<u64, Compacted> {
        self.hold.shard.keyspace.read().count(scope, self.revision)
    }

    /// One object.
    ///
    /// # Errors
    /// The snapshot was held for too long.
    pub fn get(&self, key: &str) -> Result<Option<Arc<Object>>, Compacted> {
        Ok(self.hold.shard.keyspace.read().at(key, self.revision)?.cloned())
    }

    /// Appends up to `max` selected objects in key order, beginning after the key `after`. The key to go on after,
    /// unless the end is reached; fewer than `max` objects, even none, do not mean the end.
    ///
    /// # Errors
    /// The snapshot was held for too long.
    pub fn chunk(
        &self,
        selection: &Selection,
        after: Option<&Key>,
        max: usize,
        out: &mut Vec<Arc<Object>>,
    ) -> Result<Option<Key>, Compacted> {
        let field = selection.field.as_ref().map(|(field, value)| (field.as_str(), value.as_str()));
        let scan = Scan { scope: &selection.scope, after, field };
        self.hold.shard.keyspace.read().scan(&scan, self.revision, max.max(1), SCAN_UNDER_LOCK_MAX, out)
    }
}
