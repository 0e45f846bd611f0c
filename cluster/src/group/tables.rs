//! Every table of the store, and the clocks of the groups that they are placed in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use compact_str::CompactString;
use dashmap::DashMap;
use parking_lot::RwLock;
use tokio::sync::Notify;

use super::GroupClock;
use crate::shard_map::{ShardMap, ShardMapError, Slot};
use crate::table::shard::Shard;
use crate::wal::GroupId;
use crate::{Options, Table, TableId};

/// Every table of the store, by name. Tables come into being when first asked for.
pub(crate) struct Tables {
    map: ShardMap,
    tables: DashMap<TableId, Arc<Table>>,
    /// The tables of several groups: what closes one of these may concern any of them.
    spread: RwLock<Vec<Arc<Table>>>,
    indexes: BTreeMap<TableId, Vec<CompactString>>,
    snapshot_hold: Duration,
    /// The clocks of all groups, by slot.
    clocks: Vec<Arc<GroupClock>>,
    demands: Arc<Notify>,
}

impl Tables {
    pub(crate) fn new(options: &Options) -> Result<Tables, ShardMapError> {
        let map = ShardMap::of(options)?;
        let demands = Arc::new(Notify::new());
        let clock = |(slot, name)| Arc::new(GroupClock::new(name, slot as Slot, demands.clone()));
        let clocks = map.groups().enumerate().map(clock).collect();
        let indexes = options.tables.iter().map(|(id, options)| (id.clone(), options.indexes.clone())).collect();
        let (tables, spread, snapshot_hold) = (DashMap::new(), RwLock::default(), options.snapshot_hold_max);
        Ok(Tables { map, tables, spread, indexes, snapshot_hold, clocks, demands })
    }

    /// Which table has how many shards.
    pub(crate) fn map(&self) -> &ShardMap {
        &self.map
    }

    /// The clocks of the groups that the tables are placed in, by slot.
    pub(crate) fn clocks(&self) -> &[Arc<GroupClock>] {
        &self.clocks
    }

    /// Told whenever subscribers want a group to be closed.
    pub(crate) fn demands(&self) -> &Arc<Notify> {
        &self.demands
    }

    pub(crate) fn table(&self, id: &TableId) -> Arc<Table> {
        if let Some(table) = self.tables.get(id) {
            return table.clone();
        }
        let created = self.tables.entry(id.clone()).or_insert_with(|| Arc::new(self.create(id))).clone();
        if created.is_spread() {
            let mut spread = self.spread.write();
            if !spread.iter().any(|table| table.id() == id) {
                spread.push(created.clone());
            }
        }
        created
    }

    fn create(&self, id: &TableId) -> Table {
        let clocks: Vec<Arc<GroupClock>> =
            self.map.slots(id).into_iter().map(|slot| self.clocks[usize::from(slot)].clone()).collect();
        // A new table is empty up to now. Its history begins where all of its groups are, so that it can be read.
        let base = clocks.iter().map(|clock| clock.closed()).min().unwrap_or_default();
        let indexed = self.indexes.get(id).cloned().unwrap_or_default();
        let shards = clocks.into_iter().map(|clock| (Arc::new(Shard::new(base, indexed.clone())), clock)).collect();
        Table::new(id.clone(), shards, base, self.map.epoch(), self.snapshot_hold)
    }

    /// All tables, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Table>> {
        let mut tables: Vec<Arc<Table>> = self.tables.iter().map(|entry| entry.value().clone()).collect();
        tables.sort_unstable_by(|one, other| one.id().cmp(other.id()));
        tables
    }

    /// The tables of which a group has shards.
    pub(crate) fn of_group(&self, slot: Slot) -> Vec<Arc<Table>> {
        let mut tables = self.all();
        tables.retain(|table| table.shards_of(slot).next().is_some());
        tables
    }

    /// The groups of which a shard has history that time makes superfluous.
    pub(crate) fn aging(&self) -> BTreeSet<GroupId> {
        let mut aging = BTreeSet::new();
        for table in self.all() {
            aging.extend(table.slots().filter(|(_, shard)| shard.has_history()).map(|(slot, _)| GroupId::from(slot)));
        }
        aging
    }

    /// Has those groups close that keep changes of others from being seen, and from leaving the history.
    pub(crate) fn demand(&self) {
        self.spread.read().iter().for_each(|table| table.demand());
    }

    /// Shows those tables of several groups of which a group has shards.
    pub(crate) fn each_spread(&self, slot: Slot, show: impl FnMut(&Arc<Table>)) {
        let spread = self.spread.read();
        spread.iter().filter(|table| table.shards_of(slot).next().is_some()).for_each(show);
    }
}
