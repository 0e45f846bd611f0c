//! Hands what is committed to the shards that it concerns.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use actix::{Addr, ArbiterHandle};

use super::{Batch, GroupClock, Tables};
use crate::table::actor::{Apply, HistoryWindow, Restore, ShardActor, Trim};
use crate::table::shard::{Capture, Content};
use crate::{Options, Outcome, Revision, Table, TableId};

/// A shard: its table, and its number there.
pub(crate) type ShardId = (TableId, u16);

/// The state machine of one group: the actors of its shards. Lives on the thread of the store.
pub(crate) struct Applier {
    thread: ArbiterHandle,
    clock: Arc<GroupClock>,
    tables: Arc<Tables>,
    history: HistoryWindow,
    present: HashMap<TableId, Present>,
}

/// A table of which the group has shards, and their actors.
struct Present {
    table: Arc<Table>,
    actors: Vec<Option<Addr<ShardActor>>>,
}

/// The commands of some batches for one shard: of each the batch, and its place in it.
type Positions<'a> = (&'a TableId, u16, Vec<(u32, u32)>);

impl Applier {
    /// For one group, with actors on this thread.
    pub(crate) fn new(
        thread: ArbiterHandle,
        clock: Arc<GroupClock>,
        tables: Arc<Tables>,
        options: &Options,
    ) -> Applier {
        let history = HistoryWindow { age_max: options.history_age_max, bytes_max: options.history_bytes_max };
        Applier { thread, clock, tables, history, present: HashMap::new() }
    }

    fn present(&mut self, id: &TableId) -> &mut Present {
        self.present.entry(id.clone()).or_insert_with(|| {
            let table = self.tables.table(id);
            let actors = (0..table.shard_count()).map(|_| None).collect();
            Present { table, actors }
        })
    }

    fn actor(&mut self, id: &TableId, shard: u16) -> Option<Addr<ShardActor>> {
        let (thread, mut history) = (self.thread.clone(), self.history);
        let Present { table, actors } = self.present(id);
        let actor = actors.get_mut(usize::from(shard))?;
        history.bytes_max /= usize::from(table.shard_count()).max(1);
        let start = || ShardActor::spawn(&thread, table.shard(shard).clone(), history);
        Some(actor.get_or_insert_with(start).clone())
    }

    /// Which commands of the batches are for which shard, in their order.
    fn positions<'a>(&mut self, batches: &'a [Batch]) -> Vec<Positions<'a>> {
        let mut positions: Vec<Positions<'a>> = Vec::new();
        let mut table: Option<Arc<Table>> = None;
        for (number, batch) in batches.iter().enumerate() {
            for (place, command) in batch.commands().iter().enumerate() {
                let table = match &table {
                    Some(table) if *table.id() == command.table => table,
                    _ => table.insert(self.present(&command.table).table.clone()),
                };
                let shard = table.shard_number(command.key.as_str());
                let place = (number as u32, place as u32);
                match positions.iter_mut().find(|(table, of, _)| *of == shard && *table == &command.table) {
                    Some((_, _, places)) => places.push(place),
                    None => positions.push((&command.table, shard, vec![place])),
                }
            }
        }
        positions
    }

    /// Applies committed batches in log order; the outcomes of each batch's commands in their order.
    ///
    /// # Errors
    /// A shard actor ended.
    pub(crate) async fn apply(&mut self, batches: Arc<[Batch]>) -> Result<Vec<Vec<Outcome>>, ShardEnded> {
        let positions = self.positions(&batches);
        let mut answers = Vec::with_capacity(positions.len());
        let mut touched: Vec<Arc<Table>> = Vec::with_capacity(positions.len());
        for (table, shard, positions) in positions {
            // All shards get their work before the first answer is awaited.
            let actor = self.actor(table, shard).ok_or(ShardEnded)?;
            answers.push(actor.send(Apply { batches: batches.clone(), positions }));
            if touched.last().is_none_or(|last| last.id() != table) {
                touched.push(self.present(table).table.clone());
            }
        }
        let conflict = || Outcome::Conflict { current: None };
        let blank = |batch: &Batch| batch.commands().iter().map(|_| conflict()).collect::<Vec<_>>();
        let mut outcomes: Vec<Vec<Outcome>> = batches.iter().map(blank).collect();
        for answer in answers {
            for ((batch, position), outcome) in answer.await.map_err(|_| ShardEnded)? {
                outcomes[batch as usize][position as usize] = outcome;
            }
        }
        if let Some(last) = batches.iter().filter_map(Batch::last).max() {
            self.close(last, &touched);
        }
        Ok(outcomes)
    }

    /// All shards have what there is up to a revision: subscribers of tables with changes are told, and of those that
    /// waited for this group.
    fn close(&self, revision: Revision, touched: &[Arc<Table>]) {
        self.clock.raise(revision);
        touched.iter().for_each(|table| table.tell(&self.thread));
        self.tables.each_spread(self.clock.slot(), |table| {
            if table.has_news() {
                table.tell(&self.thread);
            }
        });
    }

    /// The state of every shard of the group, as of now.
    pub(crate) fn capture(&self, hold: Duration) -> Captured {
        let base = self.clock.closed();
        let mut shards = Vec::new();
        for table in self.tables.of_group(self.clock.slot()) {
            let own = table.shards_of(self.clock.slot());
            shards.extend(own.map(|(number, shard)| ((table.id().clone(), number), shard.capture(base, hold))));
        }
        Captured { base, shards }
    }

    /// Replaces the state of the group by that of a snapshot.
    pub(crate) async fn restore(
        &mut self,
        base: Revision,
        mut contents: BTreeMap<ShardId, Content>,
    ) -> Result<(), ShardEnded> {
        for table in self.tables.of_group(self.clock.slot()) {
            for (number, shard) in table.shards_of(self.clock.slot()) {
                // A shard of which the snapshot knows nothing is empty since the group began.
                let blank = || Content { floor: shard.floor(), ..Content::default() };
                contents.entry((table.id().clone(), number)).or_insert_with(blank);
            }
        }
        let mut restored = Vec::with_capacity(contents.len());
        for ((id, number), content) in contents {
            let actor = self.actor(&id, number).ok_or(ShardEnded)?;
            actor.send(Restore { content }).await.map_err(|_| ShardEnded)?;
            restored.push(self.present(&id).table.clone());
        }
        self.close(base, &restored);
        Ok(())
    }

    /// Memory of all objects of the group now, in bytes.
    pub(crate) fn object_bytes(&self) -> usize {
        let shards = |table: Arc<Table>| {
            let own = table.shards_of(self.clock.slot());
            own.map(|(_, shard)| shard.object_bytes()).sum::<usize>()
        };
        self.tables.of_group(self.clock.slot()).into_iter().map(shards).sum()
    }

    /// Drops history that nobody may ask for any more.
    pub(crate) fn trim(&mut self, unix_ms: u64, now: tokio::time::Instant) {
        for table in self.tables.of_group(self.clock.slot()) {
            // A table must be readable at its closed revision, which an idle group may hold far back.
            let through = table.revision();
            let aging = table.shards_of(self.clock.slot()).filter(|(_, shard)| shard.has_history());
            let aging: Vec<u16> = aging.map(|(number, _)| number).collect();
            for number in aging {
                if let Some(actor) = self.actor(table.id(), number) {
                    actor.do_send(Trim { unix_ms, now, through });
                }
            }
        }
    }

    /// The revision up to which the group is closed as a whole.
    pub(crate) fn base(&self) -> Revision {
        self.clock.closed()
    }

    /// The largest revision that this group assigned or closed.
    pub(crate) fn last(&self) -> Revision {
        self.clock.closed()
    }
}

/// The state of every shard of a group as of one moment.
pub(crate) struct Captured {
    /// The revision up to which the group is closed as a whole.
    pub(crate) base: Revision,
    pub(crate) shards: Vec<(ShardId, Capture)>,
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
