//! Tables: what there is of one resource type, now and within the history window.
//!
//! Read in this order: [`keyspace`] decides writes, [`change`] and [`log`] say what happened, [`shard`] puts them
//! together for one writer and many readers, [`actor`] is that writer; [`stage`] says whether a shard takes writes.
//! A table has one [`division`] into shards after the other, and merges the shards of one: by key in [`cursor`], by
//! revision in [`merge`] and, for watchers, in [`broadcast`].

pub(crate) mod actor;
mod broadcast;
mod change;
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
pub use self::change::{Change, ChangeKind};
pub use self::cursor::Cursor;
pub(crate) use self::division::{Division, Divisions, Extent, Place};
pub(crate) use self::log::Stretch;
pub use self::snapshot::{Selection, Snapshot};
use crate::clock::GroupClock;
use crate::shard_map::{Epoch, Slot};
use crate::watch::{Behind, Interest, Subscribers, Subscription};
use crate::{Compacted, Revision, TableId};

/// All objects of one resource type, to be read from any thread without waiting for the writer.
///
/// A table has one or more shards, each with the group that replicates it. What is read of several of them is read at
/// one revision, which is closed in all of their groups. How it is divided into shards may change while it is used:
/// each division knows the revisions from where it was opened to where it has ended.
pub struct Table {
    id: TableId,
    divisions: RwLock<Divisions>,
    /// Told when the divisions are others, or one of their shards is opened or ended.
    turned: Notify,
    pub(crate) subscribers: Subscribers,
    announced: AtomicU64,
    /// How often it went back.
    age: AtomicU64,
    /// Whether the broadcaster has been told of changes that it has not looked for yet.
    telling: AtomicBool,
    broadcaster: OnceLock<Addr<Broadcaster>>,
    snapshot_hold: Duration,
}

/// Where a key is written to.
#[derive(Clone)]
pub(crate) struct Home {
    /// The division of the table.
    pub(crate) epoch: Epoch,
    /// The number of the shard there.
    pub(crate) shard: u16,
    /// The clock of its group.
    pub(crate) clock: Arc<GroupClock>,
}

impl Table {
    /// A table with divisions, oldest first; there must be one.
    pub(crate) fn new(id: TableId, divisions: Divisions, snapshot_hold: Duration) -> Table {
        let base = divisions[0].base().unwrap_or_default();
        Table {
            id,
            divisions: RwLock::new(divisions),
            turned: Notify::new(),
            subscribers: Subscribers::default(),
            announced: AtomicU64::new(base.get()),
            age: AtomicU64::default(),
            telling: AtomicBool::default(),
            broadcaster: OnceLock::new(),
            snapshot_hold,
        }
    }

    /// Every division, oldest first.
    pub(crate) fn divisions(&self) -> Divisions {
        self.divisions.read().clone()
    }

    /// Has other divisions from now on, oldest first; there must be one.
    pub(crate) fn divide(&self, divisions: Divisions) {
        let before = self.revision();
        *self.divisions.write() = divisions;
        let closed = self.revision();
        if closed < before {
            self.go_back(closed);
        }
        self.turn();
    }

    /// Shows less than before: until a replica that starts knows the shard map, a table that is spread over groups
    /// seems to be one of the group `default`, which may be closed further. Who has begun by that begins again, and
    /// what the groups have yet to tell is told.
    fn go_back(&self, closed: Revision) {
        self.age.fetch_add(1, Ordering::AcqRel);
        self.announced.fetch_min(closed.get(), Ordering::AcqRel);
        self.subscribers.wake_all(closed);
    }

    /// How often it was found to show less than before: a place from before is none any more.
    pub(crate) fn age(&self) -> u64 {
        self.age.load(Ordering::Acquire)
    }

    /// Tells that a shard was opened or has ended.
    pub(crate) fn turn(&self) {
        self.turned.notify_waiters();
    }

    /// Told when the divisions are others, or one of their shards is opened or ended.
    pub(crate) fn turned(&self) -> &Notify {
        &self.turned
    }

    /// The divisions that may have what was written last: the one that is read, and once that has ended also the next.
    pub(crate) fn current(&self) -> impl Iterator<Item = Arc<Division>> + use<> {
        let divisions = self.divisions();
        let (front, _) = division::front(&divisions);
        let count = if matches!(divisions[front].extent(), Extent::Ended(_)) { 2 } else { 1 };
        (front..divisions.len()).take(count).map(move |number| divisions[number].clone())
    }

    #[cfg(test)]
    fn shard(&self, number: u16) -> Arc<shard::Shard> {
        self.front().places()[usize::from(number)].shard.clone()
    }

    #[cfg(test)]
    fn shard_count(&self) -> u16 {
        self.front().places().len() as u16
    }

    /// The division after another one, once it is known here.
    pub(crate) fn after(&self, epoch: Epoch) -> Option<Arc<Division>> {
        self.divisions().iter().find(|division| division.epoch() > epoch).cloned()
    }

    /// The division that shows the newest here.
    pub(crate) fn front(&self) -> Arc<Division> {
        let divisions = self.divisions();
        divisions[division::front(&divisions).0].clone()
    }

    /// Where a key is written to.
    pub(crate) fn home(&self, key: &str) -> Home {
        let divisions = self.divisions();
        let (division, place) = division::newest(&divisions, key);
        Home { epoch: division.epoch(), shard: division.number_of(key), clock: place.clock.clone() }
    }

    /// Whether a key is written to there, as far as is known here, or to nowhere else yet.
    pub(crate) fn is_home(&self, key: &str, home: &Home) -> bool {
        let divisions = self.divisions();
        let (division, place) = division::newest(&divisions, key);
        division.epoch() == home.epoch && place.shard.stage().ended().is_none()
    }

    /// Waits until a key is written to elsewhere than there.
    pub(crate) async fn moved(&self, key: &str, from: Epoch) {
        loop {
            let turned = self.turned.notified();
            tokio::pin!(turned);
            turned.as_mut().enable(); // before looking
            if self.home(key).epoch > from {
                return;
            }
            turned.await;
        }
    }

    /// Whether groups have to be closed for what was written to be seen: several replicate the table, or are about to.
    pub fn is_spread(&self) -> bool {
        let mut current = self.current();
        current.next().is_some_and(|front| front.clocks().len() > 1) || current.next().is_some()
    }

    /// The clocks of the groups that replicate the table now, and of those that are about to.
    pub(crate) fn clocks(&self) -> Vec<Arc<GroupClock>> {
        let mut clocks: Vec<_> = self.current().flat_map(|division| division.clocks().to_vec()).collect();
        clocks.sort_by_key(|clock| clock.slot());
        clocks.dedup_by_key(|clock| clock.slot());
        clocks
    }

    /// Whether a group replicates any shard of it, or did.
    pub(crate) fn concerns(&self, slot: Slot) -> bool {
        self.divisions().iter().any(|division| division.clocks().iter().any(|clock| clock.slot() == slot))
    }

    /// The name of the table.
    pub fn id(&self) -> &TableId {
        &self.id
    }

    /// The Raft groups that replicate the table.
    pub fn groups(&self) -> impl Iterator<Item = String> {
        self.clocks().into_iter().map(|clock| clock.name().to_string())
    }

    /// Which division of the table into shards is read; it rises with each change of them.
    pub fn epoch(&self) -> u64 {
        self.front().epoch().into()
    }

    /// Starts to follow the changes after a revision that concern `interest`. The revision may be yet to come.
    ///
    /// # Errors
    /// The revision is older than the history.
    pub fn subscribe(self: &Arc<Table>, interest: Interest, after: Revision) -> Result<Subscription, Compacted> {
        Subscription::new(self.clone(), interest, after)
    }

    /// Keeps an index by a selectable field from now on; without effect when there is one. A shard with objects is
    /// locked while its index is built.
    pub fn index(&self, field: &str) {
        let divisions = self.divisions();
        divisions.iter().flat_map(|division| division.places()).for_each(|place| place.shard.index(field));
    }

    /// How many objects there are now.
    pub fn len(&self) -> u64 {
        self.front().places().iter().map(|place| place.shard.keyspace.read().len()).sum()
    }

    /// Whether there is no object now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// At most `most` subscribers that have yet to read something, whoever is furthest behind first. Where there are
    /// very many, another part of them is looked at for another `from`.
    pub fn behind(&self, from: usize, most: usize) -> Vec<Behind> {
        self.subscribers.behind(from, most)
    }

    /// What the table holds, for metrics.
    pub fn usage(&self) -> TableUsage {
        let mut usage = TableUsage { subscriptions: self.subscribers.len(), ..TableUsage::default() };
        let front = self.front();
        for Place { shard, .. } in front.places() {
            let keyspace = shard.keyspace.read();
            usage.objects += keyspace.len();
            usage.object_bytes += keyspace.live_bytes();
        }
        for Place { shard, .. } in self.divisions().iter().flat_map(|division| division.places()) {
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
