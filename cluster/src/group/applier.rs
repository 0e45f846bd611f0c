//! Hands what is committed to the shards that it concerns.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{Addr, ArbiterHandle};
use dashmap::DashMap;

use super::Batch;
use crate::options::DEFAULT_GROUP;
use crate::table::actor::{Apply, Close, HistoryWindow, Restore, ShardActor, Trim};
use crate::table::shard::{Capture, Content, Shard};
use crate::{Options, Outcome, Revision, Table, TableId, TableOptions};

/// Every table of the store, by name. Tables come into being when first asked for.
pub(crate) struct Tables {
    tables: DashMap<TableId, Arc<Table>>,
    options: BTreeMap<TableId, TableOptions>,
    snapshot_hold: Duration,
    /// Of each group the revision up to which it is closed as a whole: where its new tables begin.
    bases: BTreeMap<Arc<str>, AtomicU64>,
}

impl Tables {
    pub(crate) fn new(options: &Options) -> Tables {
        let named = options.tables.values().filter_map(|table| table.group.as_deref());
        let groups = named.chain([DEFAULT_GROUP]).map(|group| (group.into(), AtomicU64::new(Revision::FIRST.get())));
        Tables {
            tables: DashMap::new(),
            options: options.tables.clone(),
            snapshot_hold: options.snapshot_hold_max,
            bases: groups.collect(),
        }
    }

    /// The groups that the tables are placed in.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Arc<str>> {
        self.bases.keys()
    }

    pub(crate) fn table(&self, id: &TableId) -> Arc<Table> {
        if let Some(table) = self.tables.get(id) {
            return table.clone();
        }
        let options = self.options.get(id);
        let group = options.and_then(|options| options.group.as_deref()).unwrap_or(DEFAULT_GROUP);
        let indexed = options.map(|options| options.indexes.clone()).unwrap_or_default();
        let (group, base) = match self.bases.get_key_value(group) {
            Some((group, base)) => (group.clone(), Revision::new(base.load(Ordering::Acquire))),
            None => (group.into(), Revision::FIRST),
        };
        let table = self.tables.entry(id.clone()).or_insert_with(|| {
            let shard = Arc::new(Shard::new(base, indexed));
            Arc::new(Table::new(id.clone(), group.clone(), shard, self.snapshot_hold))
        });
        let table = table.clone();
        // The base may have risen since it was read and before the table could be seen by whoever raised it.
        table.shard().close(self.base(&group));
        table
    }

    /// The revision up to which a group is closed as a whole.
    pub(crate) fn base(&self, group: &str) -> Revision {
        self.bases.get(group).map_or(Revision::FIRST, |base| Revision::new(base.load(Ordering::Acquire)))
    }

    /// Raises it; tables that exist must then be closed too.
    pub(crate) fn raise_base(&self, group: &str, revision: Revision) {
        if let Some(base) = self.bases.get(group) {
            base.fetch_max(revision.get(), Ordering::AcqRel);
        }
    }

    /// All tables, or those of one group.
    pub(crate) fn all(&self, group: Option<&str>) -> Vec<Arc<Table>> {
        let wanted = |table: &Arc<Table>| group.is_none_or(|group| table.group() == group);
        self.tables.iter().map(|entry| entry.value().clone()).filter(wanted).collect()
    }
}

/// The state machine of one group: the actors of its shards. Lives on the thread of the store.
pub(crate) struct Applier {
    thread: ArbiterHandle,
    group: Arc<str>,
    tables: Arc<Tables>,
    history: HistoryWindow,
    actors: HashMap<TableId, Addr<ShardActor>>,
}

impl Applier {
    /// For one group, with actors on this thread.
    pub(crate) fn new(thread: ArbiterHandle, group: Arc<str>, tables: Arc<Tables>, options: &Options) -> Applier {
        let history = HistoryWindow { age_max: options.history_age_max, bytes_max: options.history_bytes_max };
        Applier { thread, group, tables, history, actors: HashMap::new() }
    }

    fn actor(&mut self, id: &TableId) -> Addr<ShardActor> {
        if let Some(actor) = self.actors.get(id) {
            return actor.clone();
        }
        let actor = ShardActor::spawn(&self.thread, self.tables.table(id).shard().clone(), self.history);
        self.actors.insert(id.clone(), actor.clone());
        actor
    }

    /// Applies committed batches in log order; the outcomes of each batch's commands in their order.
    ///
    /// # Errors
    /// A shard actor ended.
    pub(crate) async fn apply(&mut self, batches: Arc<[Batch]>) -> Result<Vec<Vec<Outcome>>, ShardEnded> {
        let mut positions: Vec<(&TableId, Vec<(u32, u32)>)> = Vec::new();
        for (number, batch) in batches.iter().enumerate() {
            for (position, command) in batch.commands().iter().enumerate() {
                let position = (number as u32, position as u32);
                match positions.iter_mut().find(|(table, _)| *table == &command.table) {
                    Some((_, positions)) => positions.push(position),
                    None => positions.push((&command.table, vec![position])),
                }
            }
        }
        let mut answers = Vec::with_capacity(positions.len());
        for (table, positions) in positions {
            // All shards get their work before the first answer is awaited.
            answers.push(self.actor(table).send(Apply { batches: batches.clone(), positions }));
        }
        let conflict = || Outcome::Conflict { current: None };
        let blank = |batch: &Batch| batch.commands().iter().map(|_| conflict()).collect::<Vec<_>>();
        let mut outcomes: Vec<Vec<Outcome>> = batches.iter().map(blank).collect();
        for answer in answers {
            for ((batch, position), outcome) in answer.await.map_err(|_| ShardEnded)? {
                outcomes[batch as usize][position as usize] = outcome;
            }
        }
        if let Some(close) = batches.iter().filter_map(Batch::close).max() {
            self.close(close).await?;
        }
        Ok(outcomes)
    }

    async fn close(&mut self, revision: Revision) -> Result<(), ShardEnded> {
        self.tables.raise_base(&self.group, revision);
        for table in self.tables.all(Some(&self.group)) {
            self.actor(table.id()).send(Close { revision }).await.map_err(|_| ShardEnded)?;
        }
        Ok(())
    }

    /// The state of every table of the group, as of now.
    pub(crate) fn capture(&self, hold: Duration) -> Captured {
        let tables = self.tables.all(Some(&self.group));
        let tables = tables.iter().map(|table| (table.id().clone(), table.shard().capture(hold))).collect();
        Captured { base: self.tables.base(&self.group), tables }
    }

    /// Replaces the state of the group by that of a snapshot.
    pub(crate) async fn restore(
        &mut self,
        base: Revision,
        mut contents: HashMap<TableId, Content>,
    ) -> Result<(), ShardEnded> {
        self.tables.raise_base(&self.group, base);
        for table in self.tables.all(Some(&self.group)) {
            // A table of which the snapshot knows nothing is empty since the group began.
            let blank = || Content { floor: base, closed: base, ..Content::default() };
            contents.entry(table.id().clone()).or_insert_with(blank);
        }
        for (id, content) in contents {
            self.actor(&id).send(Restore { content }).await.map_err(|_| ShardEnded)?;
        }
        Ok(())
    }

    /// Memory of all objects of the group now, in bytes.
    pub(crate) fn object_bytes(&self) -> usize {
        self.tables.all(Some(&self.group)).iter().map(|table| table.usage().object_bytes).sum()
    }

    /// Drops history that nobody may ask for any more.
    pub(crate) fn trim(&mut self, unix_ms: u64, now: std::time::Instant) {
        for table in self.tables.all(Some(&self.group)) {
            if table.shard().has_history() {
                self.actor(table.id()).do_send(Trim { unix_ms, now });
            }
        }
    }

    /// The revision up to which the group is closed as a whole.
    pub(crate) fn base(&self) -> Revision {
        self.tables.base(&self.group)
    }

    /// The largest revision that this group assigned.
    pub(crate) fn last(&self) -> Revision {
        let lasts = self.tables.all(Some(&self.group)).into_iter().map(|table| table.revision());
        lasts.chain([self.tables.base(&self.group)]).max().unwrap_or(Revision::FIRST)
    }
}

/// The state of every table of a group as of one moment.
pub(crate) struct Captured {
    /// The revision up to which the group is closed as a whole.
    pub(crate) base: Revision,
    pub(crate) tables: Vec<(TableId, Capture)>,
}

/// The actor of a shard has ended, which only a defect can cause.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the actor of a shard has ended")]
pub(crate) struct ShardEnded;

impl From<ShardEnded> for std::io::Error {
    fn from(ended: ShardEnded) -> std::io::Error {
        std::io::Error::other(ended)
    }
}
