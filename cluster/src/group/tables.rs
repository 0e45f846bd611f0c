//! All tables of the store with their shards, and the clocks of the groups that replicate them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use compact_str::CompactString;
use dashmap::DashMap;
use parking_lot::RwLock;
use tokio::sync::{Notify, watch};

use crate::clock::GroupClock;
use crate::clock::HybridClock;
use crate::entry::ShardId;
use crate::shard_map::{self, GroupNumber, MAP_TABLE, ShardMap, group_name, takes_writes};
use crate::table::shard::Shard;
use crate::table::{Division, Divisions, PlacedShard};
use crate::{Options, Revision, Table, TableId};

/// All tables of the store, by name. A table is created when it is first asked for.
pub(crate) struct Tables {
    /// The newest shard map that is known here, and its revision.
    map: watch::Sender<(Arc<ShardMap>, Revision)>,
    tables: DashMap<TableId, Arc<Table>>,
    /// Every shard of any division of a table, and the group that replicates it.
    shards: DashMap<ShardId, (GroupNumber, Arc<Shard>)>,
    /// The tables that are not kept in the default group alone. When one of their groups closes, later revisions of
    /// them may become readable.
    spread: RwLock<Vec<Arc<Table>>>,
    indexes: BTreeMap<TableId, Vec<CompactString>>,
    snapshot_hold: Duration,
    /// The history window.
    history: Duration,
    /// Bytes of memory that the history of one table may take.
    history_bytes_max: usize,
    /// The clocks of groups, by number.
    clocks: RwLock<Vec<Arc<GroupClock>>>,
    hybrid: HybridClock,
    demands: Arc<Notify>,
}

impl Tables {
    pub(crate) fn new(options: &Options, hybrid: HybridClock) -> Tables {
        let indexes = options.tables.iter().map(|(id, options)| (id.clone(), options.indexes.clone())).collect();
        let tables = Tables {
            map: watch::Sender::default(),
            tables: DashMap::new(),
            shards: DashMap::new(),
            spread: RwLock::default(),
            indexes,
            snapshot_hold: options.snapshot_hold_max,
            history: options.history_age_max,
            history_bytes_max: options.history_bytes_max,
            clocks: RwLock::default(),
            hybrid,
            demands: Arc::default(),
        };
        tables.clock(0);
        tables
    }

    /// Returns the newest shard map that is known here.
    pub(crate) fn map(&self) -> Arc<ShardMap> {
        self.map.borrow().0.clone()
    }

    /// Returns whether a shard map is known, so that the groups of tables are known.
    pub(crate) fn is_founded(&self) -> bool {
        self.map.borrow().1 > Revision::ZERO
    }

    /// Returns a receiver of every shard map with its revision.
    pub(crate) fn maps(&self) -> watch::Receiver<(Arc<ShardMap>, Revision)> {
        self.map.subscribe()
    }

    /// Takes over a shard map, unless a newer one is known.
    pub(crate) fn learn(&self, map: ShardMap, revision: Revision) {
        let map = Arc::new(map);
        for group_number in map.group_numbers() {
            self.clock(group_number);
        }
        let is_newer = self.map.send_if_modified(|known| {
            let is_newer = known.1 < revision;
            if is_newer {
                *known = (map, revision);
            }
            is_newer
        });
        if is_newer {
            self.all().iter().for_each(|table| self.divide(table));
        }
    }

    /// Gives a table the divisions that the map states.
    fn divide(&self, table: &Arc<Table>) {
        let divisions = self.divisions(table.id(), &table.divisions());
        let is_plain = divisions.len() == 1 && divisions[0].clocks().iter().all(|clock| clock.group_number() == 0);
        let epochs = |divisions: &Divisions| divisions.iter().map(|division| division.epoch()).collect::<Vec<_>>();
        if epochs(&table.divisions()) != epochs(&divisions) {
            table.divide(divisions);
        }
        let mut spread = self.spread.write();
        if !is_plain && !spread.iter().any(|known| known.id() == table.id()) {
            spread.push(table.clone());
        }
    }

    /// Returns the divisions of a table, reusing those that are present.
    fn divisions(&self, id: &TableId, present: &[Arc<Division>]) -> Divisions {
        let fields = present.first().map(|division| division.shards()[0].shard.fields()).unwrap_or_default();
        let made = |division: &shard_map::Division| {
            let present = present.iter().find(|present| present.epoch() == division.epoch);
            present.cloned().unwrap_or_else(|| Arc::new(self.division(id, division, &fields)))
        };
        self.map().divisions(id).iter().map(made).collect()
    }

    fn division(&self, id: &TableId, division: &shard_map::Division, fields: &[CompactString]) -> Division {
        let clocks: Vec<Arc<GroupClock>> =
            division.group_numbers.iter().map(|group_number| self.clock(*group_number)).collect();
        // A new table has been empty so far. Its history begins where the logs of its groups begin, wherever they are
        // by now: replicas create it at different times, and a client that has read it from one may go on at another.
        let base = clocks.iter().map(|clock| clock.begun().min(clock.closed())).min().unwrap_or_default();
        let placed = |(number, clock): (usize, Arc<GroupClock>)| {
            let shard = ShardId { table: id.clone(), epoch: division.epoch, number: number as u16 };
            let shard = self.shard_from(&shard, clock.group_number(), base);
            fields.iter().for_each(|field| shard.index(field));
            PlacedShard { shard, clock }
        };
        Division::new(division.epoch, clocks.into_iter().enumerate().map(placed).collect())
    }

    fn shard_from(&self, id: &ShardId, group_number: GroupNumber, base: Revision) -> Arc<Shard> {
        let made = || {
            let indexed = self.indexes.get(&id.table).cloned().unwrap_or_default();
            let shard = match takes_writes(id.epoch) {
                true => Shard::new(base, indexed),
                false => Shard::blank(indexed),
            };
            (group_number, Arc::new(shard))
        };
        self.shards.entry(id.clone()).or_insert_with(made).1.clone()
    }

    /// Returns a shard that a group has entries of. The first entry creates it.
    pub(crate) fn shard(&self, id: &ShardId, group_number: GroupNumber) -> Arc<Shard> {
        if takes_writes(id.epoch) && !self.shards.contains_key(id) {
            self.table(&id.table); // creates all shards of a division together
        }
        self.shard_from(id, group_number, self.clock(group_number).begun())
    }

    /// Returns the shards that a group replicates, of all divisions, in order.
    pub(crate) fn shards_of(&self, group_number: GroupNumber) -> Vec<(ShardId, Arc<Shard>)> {
        let own = self.shards.iter().filter(|entry| entry.value().0 == group_number);
        let mut own: Vec<_> = own.map(|entry| (entry.key().clone(), entry.value().1.clone())).collect();
        own.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        own
    }

    /// Returns the bytes of memory that the history of one table may take.
    pub(crate) const fn history_bytes_max(&self) -> usize {
        self.history_bytes_max
    }

    /// Returns the clock by which revisions are assigned.
    pub(crate) fn hybrid_clock(&self) -> &HybridClock {
        &self.hybrid
    }

    /// Returns the clock of the group with this number.
    pub(crate) fn clock(&self, group_number: GroupNumber) -> Arc<GroupClock> {
        if let Some(clock) = self.clocks.read().get(usize::from(group_number)) {
            return clock.clone();
        }
        let mut clocks = self.clocks.write();
        for group_number in clocks.len()..=usize::from(group_number) {
            let group_number = group_number as GroupNumber; // at most the given number, so it fits
            let (demands, hybrid) = (self.demands.clone(), self.hybrid.clone());
            clocks.push(Arc::new(GroupClock::new(
                group_name(group_number),
                group_number,
                demands,
                hybrid,
                self.history,
            )));
        }
        clocks[usize::from(group_number)].clone()
    }

    /// Returns the clocks of all groups, by number.
    pub(crate) fn clocks(&self) -> Vec<Arc<GroupClock>> {
        self.clocks.read().clone()
    }

    /// Returns the notifier of demands: it is notified whenever subscribers want a group to be closed.
    pub(crate) fn demands(&self) -> &Arc<Notify> {
        &self.demands
    }

    pub(crate) fn table(&self, id: &TableId) -> Arc<Table> {
        if let Some(table) = self.tables.get(id) {
            return table.clone();
        }
        let known = self.map.borrow().1;
        let new = || Arc::new(Table::new(id.clone(), self.divisions(id, &[]), self.snapshot_hold));
        let created = self.tables.entry(id.clone()).or_insert_with(new).clone();
        self.divide(&created);
        if self.map.borrow().1 != known {
            self.divide(&created); // it may have been created by the former map
        }
        created
    }

    /// Returns the table that contains the shard map.
    pub(crate) fn map_table(&self) -> Arc<Table> {
        self.table(&TableId::new(MAP_TABLE))
    }

    /// Returns all tables, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Table>> {
        let mut tables: Vec<Arc<Table>> = self.tables.iter().map(|entry| entry.value().clone()).collect();
        tables.sort_unstable_by(|one, other| one.id().cmp(other.id()));
        tables
    }

    /// Returns all tables except that of the shard map.
    pub(crate) fn of_users(&self) -> Vec<Arc<Table>> {
        let mut tables = self.all();
        tables.retain(|table| table.id().as_str() != MAP_TABLE);
        tables
    }

    /// Returns the groups with a shard whose history can be trimmed by age.
    pub(crate) fn aging(&self) -> BTreeSet<GroupNumber> {
        let aging = self.shards.iter().filter(|entry| entry.value().1.is_aging());
        aging.map(|entry| entry.value().0).collect()
    }

    /// Asks the groups that keep changes of other groups invisible to close. A change cannot leave the history before
    /// it is visible.
    pub(crate) fn demand(&self) {
        self.spread.read().iter().for_each(|table| table.demand());
    }

    /// Calls `show` with every table that is not kept in the default group alone, and has shards in the given group.
    pub(crate) fn each_spread(&self, group_number: GroupNumber, show: impl FnMut(&Arc<Table>)) {
        let spread = self.spread.read();
        spread.iter().filter(|table| table.concerns(group_number)).for_each(show);
    }
}
