//! Tables: what there is of one resource type, now and within the history window.
//!
//! Read in this order: [`keyspace`] decides writes, [`change`] and [`log`] say what happened, [`shard`] puts them
//! together for one writer and many readers, [`actor`] is that writer. A table merges its shards: by key in [`cursor`],
//! by revision in [`merge`] and, for watchers, in [`broadcast`].

pub(crate) mod actor;
mod broadcast;
mod change;
mod counts;
mod cursor;
mod horizon;
mod index;
pub(crate) mod keyspace;
mod log;
mod merge;
pub(crate) mod shard;
mod snapshot;
#[cfg(test)]
mod spread_tests;
#[cfg(test)]
mod table_tests;
mod versions;

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::Addr;
use tokio::time::Instant;

use self::broadcast::Broadcaster;
pub use self::change::{Change, ChangeKind};
pub use self::cursor::Cursor;
use self::shard::Shard;
pub use self::snapshot::{Selection, Snapshot};
use crate::group::GroupClock;
use crate::shard_map::{Slot, shard_of};
use crate::watch::{Interest, Subscribers, Subscription};
use crate::{Compacted, Object, Revision, SnapshotError, TableId, TooLarge};

/// All objects of one resource type, to be read from any thread without waiting for the writer.
///
/// A table has one or more shards, each with the group that replicates it. What is read of several of them is read at
/// one revision, which is closed in all of their groups.
pub struct Table {
    id: TableId,
    shards: Box<[Place]>,
    /// The clocks of its groups, each once.
    clocks: Box<[Arc<GroupClock>]>,
    /// Of the shard map by which the shards were made.
    epoch: u64,
    pub(crate) subscribers: Subscribers,
    announced: AtomicU64,
    /// Whether the broadcaster has been told of changes that it has not looked for yet.
    telling: AtomicBool,
    broadcaster: OnceLock<Addr<Broadcaster>>,
    snapshot_hold: Duration,
}

/// A shard and the clock of its group.
struct Place {
    shard: Arc<Shard>,
    clock: Arc<GroupClock>,
}

/// How often a snapshot is tried again whose revision leaves the history while it is taken.
const SNAPSHOT_ATTEMPTS: usize = 64;

impl Table {
    pub(crate) fn new(
        id: TableId,
        shards: Vec<(Arc<Shard>, Arc<GroupClock>)>,
        base: Revision,
        epoch: u64,
        snapshot_hold: Duration,
    ) -> Table {
        let mut clocks: Vec<Arc<GroupClock>> = shards.iter().map(|(_, clock)| clock.clone()).collect();
        clocks.sort_by_key(|clock| clock.slot());
        clocks.dedup_by_key(|clock| clock.slot());
        Table {
            id,
            shards: shards.into_iter().map(|(shard, clock)| Place { shard, clock }).collect(),
            clocks: clocks.into(),
            epoch,
            subscribers: Subscribers::default(),
            announced: AtomicU64::new(base.get()),
            telling: AtomicBool::default(),
            broadcaster: OnceLock::new(),
            snapshot_hold,
        }
    }

    /// How many shards there are.
    pub(crate) fn shard_count(&self) -> u16 {
        self.shards.len() as u16 // the shard map bounds it
    }

    /// The number of the shard that a key belongs to.
    pub(crate) fn shard_number(&self, key: &str) -> u16 {
        shard_of(key, self.shards.len()) as u16
    }

    /// A shard by its number.
    pub(crate) fn shard(&self, number: u16) -> &Arc<Shard> {
        &self.shards[usize::from(number)].shard
    }

    /// The shards that a group replicates, with their numbers.
    pub(crate) fn shards_of(&self, slot: Slot) -> impl Iterator<Item = (u16, &Arc<Shard>)> {
        let places = self.shards.iter().enumerate();
        let own = places.filter(move |(_, place)| place.clock.slot() == slot);
        own.map(|(number, place)| (number as u16, &place.shard))
    }

    /// All shards, each with the group that replicates it.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Slot, &Arc<Shard>)> {
        self.shards.iter().map(|place| (place.clock.slot(), &place.shard))
    }

    /// The clocks of the groups that replicate the table.
    pub(crate) fn clocks(&self) -> &[Arc<GroupClock>] {
        &self.clocks
    }

    /// The clock of the group that replicates a key.
    pub(crate) fn clock_of(&self, key: &str) -> &Arc<GroupClock> {
        &self.place(key).clock
    }

    /// Whether several groups replicate the table.
    pub(crate) fn is_spread(&self) -> bool {
        self.clocks.len() > 1
    }

    fn place(&self, key: &str) -> &Place {
        &self.shards[shard_of(key, self.shards.len())]
    }

    /// The name of the table.
    pub fn id(&self) -> &TableId {
        &self.id
    }

    /// The Raft groups that replicate the table.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.clocks.iter().map(|clock| &**clock.name())
    }

    /// Counts the changes of the map that says how many shards tables have.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The object as it is now on this replica.
    pub fn get(&self, key: &str) -> Option<Arc<Object>> {
        self.place(key).shard.keyspace.read().live(key).cloned()
    }

    /// The object as it was at a revision, which must not be above [`Table::revision`].
    ///
    /// # Errors
    /// The revision is older than the history.
    pub fn get_at(&self, key: &str, revision: Revision) -> Result<Option<Arc<Object>>, Compacted> {
        Ok(self.place(key).shard.keyspace.read().at(key, revision)?.cloned())
    }

    /// The closed revision: everything up to it is visible here, and nothing can be added to that any more. Never
    /// zero, even of an empty table.
    pub fn revision(&self) -> Revision {
        self.clocks.iter().map(|clock| clock.closed()).min().unwrap_or_default()
    }

    /// The oldest revision that can be read, and after which changes can be read.
    pub fn floor(&self) -> Revision {
        self.shards.iter().map(|place| place.shard.floor()).max().unwrap_or_default()
    }

    /// Waits until this replica has everything up to `revision`. Does nothing to bring that about: see
    /// [`crate::Store::reach`].
    ///
    /// # Errors
    /// The deadline passed before.
    pub(crate) async fn wait_applied(&self, revision: Revision, deadline: Instant) -> Result<(), TooLarge> {
        for clock in &self.clocks {
            if tokio::time::timeout_at(deadline, clock.reached(revision)).await.is_err() {
                break;
            }
        }
        let current = self.revision();
        if current >= revision { Ok(()) } else { Err(TooLarge { current }) }
    }

    /// The table as of its closed revision.
    pub fn snapshot(&self) -> Snapshot {
        for _ in 0..SNAPSHOT_ATTEMPTS {
            // The history is trimmed only up to the closed revision, so that this ends.
            if let Ok(snapshot) = self.snapshot_at(self.revision()) {
                return snapshot;
            }
        }
        // A group is so far behind that others do not have its revision any more: every read will say so.
        self.pin(self.revision(), Vec::new())
    }

    /// The table as of a revision.
    ///
    /// # Errors
    /// The revision is older than the history or not reached yet.
    pub fn snapshot_at(&self, revision: Revision) -> Result<Snapshot, SnapshotError> {
        self.snapshot_for(revision, self.snapshot_hold)
    }

    /// The table as of a revision, kept readable for at most `hold`.
    ///
    /// # Errors
    /// The revision is older than the history or not reached yet.
    pub(crate) fn snapshot_for(&self, revision: Revision, hold: Duration) -> Result<Snapshot, SnapshotError> {
        let current = self.revision();
        if revision > current {
            return Err(TooLarge { current }.into());
        }
        let holds = self.shards.iter().map(|place| place.shard.pin(revision, hold));
        Ok(self.pin(revision, holds.collect::<Result<_, _>>()?))
    }

    fn pin(&self, revision: Revision, holds: Vec<shard::Hold>) -> Snapshot {
        Snapshot::new(revision, self.shards.iter().map(|place| place.shard.clone()).collect(), holds)
    }

    /// Up to `max` changes after a revision, in revision order and no further than [`Table::revision`].
    ///
    /// # Errors
    /// The revision is older than the history.
    pub fn changes(&self, mut after: Revision, max: usize) -> Result<Vec<Arc<Change>>, Compacted> {
        let (mut changes, through) = (Vec::new(), self.revision());
        while after < through && changes.len() < max {
            after = self.changes_through(after, through, max - changes.len(), &mut changes)?;
        }
        Ok(changes)
    }

    /// The change that a write of a revision made to a key, while the history has it; closed or not.
    pub(crate) fn change(&self, key: &str, revision: Revision) -> Option<Arc<Change>> {
        let mut changes = Vec::with_capacity(1);
        self.place(key).shard.log.read().read(revision.previous(), revision, 1, &mut changes).ok()?;
        changes.pop()
    }

    /// The changes of the shard of a key after a revision, closed or not.
    ///
    /// # Errors
    /// The revision is older than the history.
    pub(crate) fn changes_beside(&self, key: &str, after: Revision) -> Result<Vec<Arc<Change>>, Compacted> {
        let mut changes = Vec::new();
        self.place(key).shard.log.read().read(after, Revision::LAST, usize::MAX, &mut changes)?;
        Ok(changes)
    }

    /// Appends up to `max` changes after a revision and up to another, which must be closed. The revision up to which
    /// that is all there are.
    pub(crate) fn changes_through(
        &self,
        after: Revision,
        through: Revision,
        max: usize,
        out: &mut Vec<Arc<Change>>,
    ) -> Result<Revision, Compacted> {
        merge::changes(&self.shards, after, through, max, out)
    }

    /// The revision of the last change of any shard, closed or not, or the floor of the history when there is none.
    pub(crate) fn last_change(&self) -> Revision {
        self.shards.iter().map(|place| place.shard.last_change()).max().unwrap_or_default()
    }

    /// Starts to follow the changes after a revision that concern `interest`.
    ///
    /// # Errors
    /// The revision is older than the history or not reached yet.
    pub fn subscribe(self: &Arc<Table>, interest: Interest, after: Revision) -> Result<Subscription, SnapshotError> {
        Subscription::new(self.clone(), interest, after)
    }

    /// Keeps an index by a selectable field from now on; without effect when there is one. A shard with objects is
    /// locked while its index is built.
    pub fn index(&self, field: &str) {
        for Place { shard, .. } in &self.shards {
            if !shard.keyspace.read().is_indexed(field) {
                shard.keyspace.write().index(field);
            }
        }
    }

    /// How many objects there are now.
    pub fn len(&self) -> u64 {
        self.shards.iter().map(|place| place.shard.keyspace.read().len()).sum()
    }

    /// Whether there is no object now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the table holds, for metrics.
    pub fn usage(&self) -> TableUsage {
        let mut usage = TableUsage { subscriptions: self.subscribers.len(), ..TableUsage::default() };
        for Place { shard, .. } in &self.shards {
            {
                let keyspace = shard.keyspace.read();
                usage.objects += keyspace.len();
                usage.object_bytes += keyspace.live_bytes();
            }
            {
                let log = shard.log.read();
                usage.changes += log.len();
                usage.history_bytes += log.bytes();
            }
            usage.snapshots = usage.snapshots.max(shard.horizon.lock().pins());
        }
        usage
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
