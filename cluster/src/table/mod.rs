//! Tables: what there is of one resource type, now and within the history window.
//!
//! Read in this order: [`keyspace`] decides writes, [`change`] and [`log`] say what happened, [`shard`] puts them
//! together for one writer and many readers, [`actor`] is that writer.

pub(crate) mod actor;
mod change;
mod counts;
mod horizon;
mod index;
pub(crate) mod keyspace;
mod log;
pub(crate) mod shard;
mod snapshot;
#[cfg(test)]
mod table_tests;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub use self::change::{Change, ChangeKind};
use self::shard::Shard;
pub use self::snapshot::{Selection, Snapshot};
use crate::watch::{Interest, Subscription};
use crate::{Compacted, Object, Revision, SnapshotError, TableId, TooLarge};

/// All objects of one resource type, to be read from any thread without waiting for the writer.
///
/// A table of several shards is merged here, by their closed revisions; so far a table has one shard.
pub struct Table {
    id: TableId,
    group: Arc<str>,
    shard: Arc<Shard>,
    snapshot_hold: Duration,
}

impl Table {
    pub(crate) fn new(id: TableId, group: Arc<str>, shard: Arc<Shard>, snapshot_hold: Duration) -> Table {
        Table { id, group, shard, snapshot_hold }
    }

    pub(crate) fn shard(&self) -> &Arc<Shard> {
        &self.shard
    }

    /// The name of the table.
    pub fn id(&self) -> &TableId {
        &self.id
    }

    /// The Raft group that replicates the table.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The object as it is now on this replica.
    pub fn get(&self, key: &str) -> Option<Arc<Object>> {
        self.shard.keyspace.read().live(key).cloned()
    }

    /// The object as it was at a revision, which must not be above [`Table::revision`].
    ///
    /// # Errors
    /// The revision is older than the history.
    pub fn get_at(&self, key: &str, revision: Revision) -> Result<Option<Arc<Object>>, Compacted> {
        Ok(self.shard.keyspace.read().at(key, revision)?.cloned())
    }

    /// The closed revision: everything up to it is visible here, and nothing can be added to that any more. Never
    /// zero, even of an empty table.
    pub fn revision(&self) -> Revision {
        self.shard.closed()
    }

    /// The oldest revision that can be read, and after which changes can be read.
    pub fn floor(&self) -> Revision {
        self.shard.horizon.lock().floor()
    }

    /// Waits until this replica has everything up to `revision`.
    ///
    /// # Errors
    /// The deadline passed before.
    pub async fn wait_applied(&self, revision: Revision, deadline: Instant) -> Result<(), TooLarge> {
        loop {
            let closing = self.shard.closing.notified();
            tokio::pin!(closing);
            closing.as_mut().enable(); // before looking, so that no rise in between goes unseen
            let current = self.revision();
            if current >= revision {
                return Ok(());
            }
            if tokio::time::timeout_at(deadline, closing).await.is_err() {
                let current = self.revision();
                return if current >= revision { Ok(()) } else { Err(TooLarge { current }) };
            }
        }
    }

    /// The table as of its closed revision.
    pub fn snapshot(&self) -> Snapshot {
        loop {
            // The floor never passes the closed revision that is read after it, so that this ends.
            if let Ok(snapshot) = self.snapshot_at(self.revision()) {
                return snapshot;
            }
        }
    }

    /// The table as of a revision.
    ///
    /// # Errors
    /// The revision is older than the history or not reached yet.
    pub fn snapshot_at(&self, revision: Revision) -> Result<Snapshot, SnapshotError> {
        let current = self.revision();
        if revision > current {
            return Err(TooLarge { current }.into());
        }
        Ok(Snapshot { hold: self.shard.pin(revision, self.snapshot_hold)?, revision })
    }

    /// Up to `max` changes after a revision, in revision order.
    ///
    /// # Errors
    /// The revision is older than the history.
    pub fn changes(&self, after: Revision, max: usize) -> Result<Vec<Arc<Change>>, Compacted> {
        let mut changes = Vec::new();
        self.changes_through(after, Revision::new(u64::MAX), max, &mut changes)?;
        Ok(changes)
    }

    pub(crate) fn changes_through(
        &self,
        after: Revision,
        through: Revision,
        max: usize,
        out: &mut Vec<Arc<Change>>,
    ) -> Result<(), Compacted> {
        self.shard.log.read().read(after, through, max, out)
    }

    /// The revision of the last change, or the floor of the history when it has none.
    pub(crate) fn last_change(&self) -> Revision {
        self.shard.log.read().last()
    }

    /// Starts to follow the changes after a revision that concern `interest`.
    ///
    /// # Errors
    /// The revision is older than the history or not reached yet.
    pub fn subscribe(self: &Arc<Table>, interest: Interest, after: Revision) -> Result<Subscription, SnapshotError> {
        Subscription::new(self.clone(), interest, after)
    }

    /// Keeps an index by a selectable field from now on; without effect when there is one. A table with objects is
    /// locked while the index is built.
    pub fn index(&self, field: &str) {
        if !self.shard.keyspace.read().is_indexed(field) {
            self.shard.keyspace.write().index(field);
        }
    }

    /// How many objects there are now.
    pub fn len(&self) -> u64 {
        self.shard.keyspace.read().len()
    }

    /// Whether there is no object now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the table holds, for metrics.
    pub fn usage(&self) -> TableUsage {
        let (objects, object_bytes) = {
            let keyspace = self.shard.keyspace.read();
            (keyspace.len(), keyspace.live_bytes())
        };
        let (changes, history_bytes) = {
            let log = self.shard.log.read();
            (log.len(), log.bytes())
        };
        let (snapshots, subscriptions) = (self.shard.horizon.lock().pins(), self.shard.subscribers.len());
        TableUsage { objects, object_bytes, changes, history_bytes, snapshots, subscriptions }
    }
}

/// What a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableUsage {
    /// Objects now.
    pub objects: u64,
    /// Memory of the objects now, in bytes.
    pub object_bytes: usize,
    /// Changes in the history window.
    pub changes: usize,
    /// Memory that the history keeps, in bytes.
    pub history_bytes: usize,
    /// Snapshots held.
    pub snapshots: usize,
    /// Subscriptions.
    pub subscriptions: usize,
}
