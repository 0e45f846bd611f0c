//! Tables: the objects of one resource type, now and within the history window.
//!
//! Read in this order: [`keyspace`] decides writes, [`log`] records them, [`shard`] combines these for one writer and
//! many readers, [`actor`] is that writer, [`stage`] says whether a shard takes writes. A table has a sequence of
//! divisions into shards ([`division`]), and merges the shards of one: by key in [`cursor`], by revision in [`merge`]
//! and, for watchers, in [`broadcast`] and [`subscription`].

pub(crate) mod actor;
mod broadcast;
mod counts;
mod cursor;
mod division;
mod horizon;
mod index;
pub(crate) mod keyspace;
mod log;
mod merge;
mod reading;
pub(crate) mod shard;
mod snapshot;
#[cfg(test)]
mod spread_tests;
pub(crate) mod stage;
mod subscription;
#[cfg(test)]
mod table_tests;
mod versions;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::Addr;
use parking_lot::RwLock;
use tokio::sync::Notify;

use self::broadcast::Broadcaster;
pub use self::cursor::Cursor;
pub(crate) use self::division::{Division, Divisions, Extent, PlacedShard};
pub use self::snapshot::{Selection, Snapshot};
pub use self::subscription::Subscription;
use crate::clock::GroupClock;
use crate::shard_map::{Epoch, GroupNumber};
use crate::watch::{Interest, LaggingSubscriber, Subscribers};
use crate::{Compacted, Revision, TableId};

/// All objects of one resource type. It can be read from any thread without waiting for the writer.
///
/// A table has one or more shards, each replicated by a group. A read of several shards is made at one revision, which
/// is closed in all of their groups. The division into shards may change while the table is in use: each division has
/// the revisions from the one at which it was opened to the one at which it ended.
pub struct Table {
    id: TableId,
    divisions: RwLock<Divisions>,
    /// Notified when the divisions change, or one of their shards is opened or ended.
    turned: Notify,
    pub(crate) subscribers: Subscribers,
    announced: AtomicU64,
    /// How often the closed revision of the table was found to have gone back.
    age: AtomicU64,
    /// Whether the broadcaster has been notified of changes that it has not looked for yet.
    notification_pending: AtomicBool,
    broadcaster: OnceLock<Addr<Broadcaster>>,
    snapshot_hold: Duration,
}

/// The shard in which a key is written.
#[derive(Clone)]
pub(crate) struct WriteShard {
    /// The division of the table.
    pub(crate) epoch: Epoch,
    /// The number of the shard in the division.
    pub(crate) shard: u16,
    /// The clock of the shard's group.
    pub(crate) clock: Arc<GroupClock>,
}

impl Table {
    /// Returns a table with the given divisions, oldest first; at least one.
    pub(crate) fn new(id: TableId, divisions: Divisions, snapshot_hold: Duration) -> Table {
        let base = divisions[0].base().unwrap_or_default();
        Table {
            id,
            divisions: RwLock::new(divisions),
            turned: Notify::new(),
            subscribers: Subscribers::default(),
            announced: AtomicU64::new(base.get()),
            age: AtomicU64::default(),
            notification_pending: AtomicBool::default(),
            broadcaster: OnceLock::new(),
            snapshot_hold,
        }
    }

    /// Returns every division, oldest first.
    pub(crate) fn divisions(&self) -> Divisions {
        self.divisions.read().clone()
    }

    /// Replaces the divisions, oldest first; at least one.
    pub(crate) fn divide(&self, divisions: Divisions) {
        let before = self.revision();
        *self.divisions.write() = divisions;
        let closed = self.revision();
        if closed < before {
            self.go_back(closed);
        }
        self.turn();
    }

    /// Handles a closed revision that went back. Until a starting replica knows the shard map, a table that is spread
    /// over groups seems to be in the group `default`, which may be closed further. Subscriptions that began then must
    /// begin again, and changes that the table's own groups have yet to announce will be announced.
    fn go_back(&self, closed: Revision) {
        self.age.fetch_add(1, Ordering::AcqRel);
        self.announced.fetch_min(closed.get(), Ordering::AcqRel);
        self.subscribers.wake_all(closed);
    }

    /// Returns how often the closed revision went back. Positions from before the last time are invalid.
    pub(crate) fn age(&self) -> u64 {
        self.age.load(Ordering::Acquire)
    }

    /// Notifies waiters that the divisions have changed, or that one of their shards was opened or has ended.
    pub(crate) fn turn(&self) {
        self.turned.notify_waiters();
    }

    /// Returns the notifier that fires when the divisions change, or when one of their shards is opened or ended.
    pub(crate) fn turned(&self) -> &Notify {
        &self.turned
    }

    /// Returns the divisions that may contain the last writes: the one for reads, and the next one once the first has
    /// ended.
    pub(crate) fn current(&self) -> impl Iterator<Item = Arc<Division>> + use<> {
        let divisions = self.divisions();
        let (front, _) = division::front(&divisions);
        let count = if matches!(divisions[front].extent(), Extent::Ended(_)) { 2 } else { 1 };
        (front..divisions.len()).take(count).map(move |number| divisions[number].clone())
    }

    #[cfg(test)]
    fn shard(&self, number: u16) -> Arc<shard::Shard> {
        self.front().shards()[usize::from(number)].shard.clone()
    }

    #[cfg(test)]
    fn shard_count(&self) -> u16 {
        self.front().shards().len() as u16
    }

    /// Returns the division after the given one; `None` as long as it is not known here.
    pub(crate) fn after(&self, epoch: Epoch) -> Option<Arc<Division>> {
        self.divisions().iter().find(|division| division.epoch() > epoch).cloned()
    }

    /// Returns the division that has the newest readable state here.
    pub(crate) fn front(&self) -> Arc<Division> {
        let divisions = self.divisions();
        divisions[division::front(&divisions).0].clone()
    }

    /// Returns the shard in which a key is written.
    pub(crate) fn write_shard(&self, key: &str) -> WriteShard {
        let divisions = self.divisions();
        let (division, placed) = division::newest(&divisions, key);
        WriteShard { epoch: division.epoch(), shard: division.number_of(key), clock: placed.clock.clone() }
    }

    /// Returns whether a key is still written in this shard, as far as is known here. Returns false once the shard has
    /// ended, even if no later shard takes writes of the key yet.
    pub(crate) fn is_write_shard(&self, key: &str, write_shard: &WriteShard) -> bool {
        let divisions = self.divisions();
        let (division, placed) = division::newest(&divisions, key);
        division.epoch() == write_shard.epoch && placed.shard.stage().ended().is_none()
    }

    /// Waits until a key is written in a later division than `from`.
    pub(crate) async fn moved(&self, key: &str, from: Epoch) {
        loop {
            let turned = self.turned.notified();
            tokio::pin!(turned);
            turned.as_mut().enable(); // before looking, so that no change is missed
            if self.write_shard(key).epoch > from {
                return;
            }
            turned.await;
        }
    }

    /// Returns whether a write becomes visible only once several groups have closed: several replicate the table, or
    /// will soon.
    pub fn is_spread(&self) -> bool {
        let mut current = self.current();
        current.next().is_some_and(|front| front.clocks().len() > 1) || current.next().is_some()
    }

    /// Returns the clocks of the groups that replicate the table now or will soon.
    pub(crate) fn clocks(&self) -> Vec<Arc<GroupClock>> {
        let mut clocks: Vec<_> = self.current().flat_map(|division| division.clocks().to_vec()).collect();
        clocks.sort_by_key(|clock| clock.group_number());
        clocks.dedup_by_key(|clock| clock.group_number());
        clocks
    }

    /// Returns whether a group replicates any shard of the table, or did.
    pub(crate) fn concerns(&self, group_number: GroupNumber) -> bool {
        self.divisions()
            .iter()
            .any(|division| division.clocks().iter().any(|clock| clock.group_number() == group_number))
    }

    /// Returns the name of the table.
    pub fn id(&self) -> &TableId {
        &self.id
    }

    /// Returns the names of the Raft groups that replicate the table.
    pub fn groups(&self) -> impl Iterator<Item = String> {
        self.clocks().into_iter().map(|clock| clock.name().to_string())
    }

    /// Returns the number of the division that is read. It rises with each division.
    pub fn epoch(&self) -> u64 {
        self.front().epoch().into()
    }

    /// Follows the changes after a revision that concern `interest`. The revision may lie in the future.
    ///
    /// # Errors
    /// Fails when the revision is older than the history.
    pub fn subscribe(self: &Arc<Table>, interest: Interest, after: Revision) -> Result<Subscription, Compacted> {
        Subscription::new(self.clone(), interest, after)
    }

    /// Keeps an index by a selectable field from now on. Does nothing when there is one. Locks each shard while its
    /// index is built.
    pub fn index(&self, field: &str) {
        let divisions = self.divisions();
        divisions.iter().flat_map(|division| division.shards()).for_each(|placed| placed.shard.index(field));
    }

    /// Returns the present number of objects.
    pub fn len(&self) -> u64 {
        self.front().shards().iter().map(|placed| placed.shard.keyspace.read().len()).sum()
    }

    /// Returns whether there is no object now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns at most `most` subscribers that have yet to read changes, the one furthest behind first. In a table with
    /// very many subscribers, `from` selects the part of them that is examined.
    pub fn lagging_subscribers(&self, from: usize, most: usize) -> Vec<LaggingSubscriber> {
        self.subscribers.lagging(from, most)
    }

    /// Returns the size of the table's content, for metrics.
    pub fn usage(&self) -> TableUsage {
        let mut usage = TableUsage { subscriptions: self.subscribers.len(), ..TableUsage::default() };
        let front = self.front();
        for PlacedShard { shard, .. } in front.shards() {
            let keyspace = shard.keyspace.read();
            usage.objects += keyspace.len();
            usage.object_bytes += keyspace.live_bytes();
        }
        for PlacedShard { shard, .. } in self.divisions().iter().flat_map(|division| division.shards()) {
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

/// The size of a table's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableUsage {
    /// The present number of objects.
    pub objects: u64,
    /// Memory of the present objects, in bytes.
    pub object_bytes: usize,
    /// The number of changes in the history window.
    pub changes: usize,
    /// Memory of the history, in bytes.
    pub history_bytes: usize,
    /// The number of snapshots that are held.
    pub snapshots: usize,
    /// The number of subscriptions.
    pub subscriptions: usize,
}
