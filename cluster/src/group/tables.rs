//! Every table of the store, its shards, and the clocks of the groups that they are placed in.

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
use crate::shard_map::{self, MAP_TABLE, ShardMap, Slot, group_name, takes_writes};
use crate::table::shard::Shard;
use crate::table::{Division, Divisions, Place};
use crate::{Options, Revision, Table, TableId};

/// Every table of the store, by name. Tables come into being when first asked for.
pub(crate) struct Tables {
    /// The map as far as it is known, and the revision of it.
    map: watch::Sender<(Arc<ShardMap>, Revision)>,
    tables: DashMap<TableId, Arc<Table>>,
    /// Every shard of any division of a table, and the group that replicates it.
    shards: DashMap<ShardId, (Slot, Arc<Shard>)>,
    /// The tables that are not in the default group alone: what closes one of their groups may concern any of them.
    spread: RwLock<Vec<Arc<Table>>>,
    indexes: BTreeMap<TableId, Vec<CompactString>>,
    snapshot_hold: Duration,
    /// How long history is kept.
    history: Duration,
    /// The clocks of groups, by slot.
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
            clocks: RwLock::default(),
            hybrid,
            demands: Arc::default(),
        };
        tables.clock(0);
        tables
    }

    /// Which table has how many shards, as far as it is known.
    pub(crate) fn map(&self) -> Arc<ShardMap> {
        self.map.borrow().0.clone()
    }

    /// Whether there is a map, so that it is known where tables are.
    pub(crate) fn is_founded(&self) -> bool {
        self.map.borrow().1 > Revision::ZERO
    }

    /// Told of every map, with its revision.
    pub(crate) fn maps(&self) -> watch::Receiver<(Arc<ShardMap>, Revision)> {
        self.map.subscribe()
    }

    /// The map is another one now: that of a revision.
    pub(crate) fn learn(&self, map: ShardMap, revision: Revision) {
        let map = Arc::new(map);
        for slot in map.slots() {
            self.clock(slot);
        }
        let is_newer = self.map.send_if_modified(|known| {
            let is_newer = known.1 < revision;
            if is_newer {
                *known = (map, revision);
            }
            is_newer
        });
        if is_newer {
            self.all().iter().for_each(|table| self.place(table));
        }
    }

    /// Gives a table the divisions that the map says.
    fn place(&self, table: &Arc<Table>) {
        let divisions = self.divisions(table.id(), &table.divisions());
        let is_plain = divisions.len() == 1 && divisions[0].clocks().iter().all(|clock| clock.slot() == 0);
        let epochs = |divisions: &Divisions| divisions.iter().map(|division| division.epoch()).collect::<Vec<_>>();
        if epochs(&table.divisions()) != epochs(&divisions) {
            table.divide(divisions);
        }
        let mut spread = self.spread.write();
        if !is_plain && !spread.iter().any(|known| known.id() == table.id()) {
            spread.push(table.clone());
        }
    }

    /// The divisions of a table, of which some may be there already.
    fn divisions(&self, id: &TableId, present: &[Arc<Division>]) -> Divisions {
        let fields = present.first().map(|division| division.places()[0].shard.fields()).unwrap_or_default();
        let made = |division: &shard_map::Division| {
            let present = present.iter().find(|present| present.epoch() == division.epoch);
            present.cloned().unwrap_or_else(|| Arc::new(self.division(id, division, &fields)))
        };
        self.map().divisions(id).iter().map(made).collect()
    }

    fn division(&self, id: &TableId, division: &shard_map::Division, fields: &[CompactString]) -> Division {
        let clocks: Vec<Arc<GroupClock>> = division.slots.iter().map(|slot| self.clock(*slot)).collect();
        // A new table has been empty so far. Its history begins where the logs do, wherever they are by now: replicas
        // ask for it at different times, and who read it on one of them goes on from there on another.
        let base = clocks.iter().map(|clock| clock.begun().min(clock.closed())).min().unwrap_or_default();
        let place = |(number, clock): (usize, Arc<GroupClock>)| {
            let shard = ShardId { table: id.clone(), epoch: division.epoch, number: number as u16 };
            let shard = self.shard_from(&shard, clock.slot(), base);
            fields.iter().for_each(|field| shard.index(field));
            Place { shard, clock }
        };
        Division::new(division.epoch, clocks.into_iter().enumerate().map(place).collect())
    }

    fn shard_from(&self, id: &ShardId, slot: Slot, base: Revision) -> Arc<Shard> {
        let made = || {
            let indexed = self.indexes.get(&id.table).cloned().unwrap_or_default();
            let shard = match takes_writes(id.epoch) {
                true => Shard::new(base, indexed),
                false => Shard::blank(indexed),
            };
            (slot, Arc::new(shard))
        };
        self.shards.entry(id.clone()).or_insert_with(made).1.clone()
    }

    /// A shard that a group has entries of; it comes into being with the first.
    pub(crate) fn shard(&self, id: &ShardId, slot: Slot) -> Arc<Shard> {
        if takes_writes(id.epoch) && !self.shards.contains_key(id) {
            self.table(&id.table); // all shards of a division begin together
        }
        self.shard_from(id, slot, self.clock(slot).begun())
    }

    /// The shards that a group replicates, of any divisions, in order.
    pub(crate) fn shards_of(&self, slot: Slot) -> Vec<(ShardId, Arc<Shard>)> {
        let own = self.shards.iter().filter(|entry| entry.value().0 == slot);
        let mut own: Vec<_> = own.map(|entry| (entry.key().clone(), entry.value().1.clone())).collect();
        own.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        own
    }

    /// The clock by which revisions are assigned.
    pub(crate) fn hybrid_clock(&self) -> &HybridClock {
        &self.hybrid
    }

    /// The clock of the group with a number.
    pub(crate) fn clock(&self, slot: Slot) -> Arc<GroupClock> {
        if let Some(clock) = self.clocks.read().get(usize::from(slot)) {
            return clock.clone();
        }
        let mut clocks = self.clocks.write();
        for slot in clocks.len()..=usize::from(slot) {
            let slot = slot as Slot; // not above the one that is asked for
            let (demands, hybrid) = (self.demands.clone(), self.hybrid.clone());
            clocks.push(Arc::new(GroupClock::new(group_name(slot), slot, demands, hybrid, self.history)));
        }
        clocks[usize::from(slot)].clone()
    }

    /// The clocks of the groups that tables are placed in, by slot.
    pub(crate) fn clocks(&self) -> Vec<Arc<GroupClock>> {
        self.clocks.read().clone()
    }

    /// Told whenever subscribers want a group to be closed.
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
        self.place(&created);
        if self.map.borrow().1 != known {
            self.place(&created); // it may have been made by the map before
        }
        created
    }

    /// The table that holds the shard map.
    pub(crate) fn map_table(&self) -> Arc<Table> {
        self.table(&TableId::new(MAP_TABLE))
    }

    /// All tables, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Table>> {
        let mut tables: Vec<Arc<Table>> = self.tables.iter().map(|entry| entry.value().clone()).collect();
        tables.sort_unstable_by(|one, other| one.id().cmp(other.id()));
        tables
    }

    /// All tables but that of the shard map.
    pub(crate) fn of_users(&self) -> Vec<Arc<Table>> {
        let mut tables = self.all();
        tables.retain(|table| table.id().as_str() != MAP_TABLE);
        tables
    }

    /// The groups of which a shard has history that time makes superfluous.
    pub(crate) fn aging(&self) -> BTreeSet<Slot> {
        let aging = self.shards.iter().filter(|entry| entry.value().1.is_aging());
        aging.map(|entry| entry.value().0).collect()
    }

    /// Has those groups close that keep changes of others from being seen, and from leaving the history.
    pub(crate) fn demand(&self) {
        self.spread.read().iter().for_each(|table| table.demand());
    }

    /// Shows those tables of several groups of which a group has shards.
    pub(crate) fn each_spread(&self, slot: Slot, show: impl FnMut(&Arc<Table>)) {
        let spread = self.spread.read();
        spread.iter().filter(|table| table.concerns(slot)).for_each(show);
    }
}
