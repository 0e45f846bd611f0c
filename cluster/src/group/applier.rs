//! Hands committed batches to the shards that they concern.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use actix::{Addr, ArbiterHandle};
use tokio::time::Instant;

use super::Tables;
use super::closed_times::ClosedTimes;
use crate::clock::GroupClock;
use crate::entry::{Batch, ShardId, ShardStep};
use crate::limits::SHARED_ENCODING_AGE;
use crate::shard_map::takes_writes;
use crate::table::Extent;
use crate::table::actor::{Apply, ShardActor, Take, Trim};
use crate::table::shard::{Capture, Content, Restored, Shard};
use crate::{Options, Outcome, Revision, Table};

/// The state machine of one group: the actors of its shards. It lives on the thread of the store.
pub(crate) struct Applier {
    thread: ArbiterHandle,
    clock: Arc<GroupClock>,
    tables: Arc<Tables>,
    history_age_max: Duration,
    /// Bytes of history that a table may keep.
    history_bytes_max: usize,
    closed_times: ClosedTimes,
    /// When each shard was found to be superseded: no longer read, because its division has ended.
    superseded: HashMap<ShardId, Instant>,
    handles: HashMap<ShardId, ShardHandle>,
}

/// A shard of the group, its table, and its actor.
struct ShardHandle {
    table: Arc<Table>,
    shard: Arc<Shard>,
    actor: Addr<ShardActor>,
    /// Bytes of history that the shard may keep.
    history_bytes_max: usize,
}

/// The commands of some batches that are for one shard, each by the number of its batch and its position there.
type Positions = (ShardId, Vec<(u32, u32)>);

/// The outcomes of the commands of one batch. `None` for a command whose shard takes no writes.
pub(crate) type Outcomes = Vec<Option<Outcome>>;

impl Applier {
    /// Returns the state machine of one group, whose actors run on this thread.
    pub(crate) fn new(
        thread: ArbiterHandle,
        clock: Arc<GroupClock>,
        tables: Arc<Tables>,
        options: &Options,
    ) -> Applier {
        let Options { history_age_max, history_bytes_max, .. } = *options;
        let closed_times = ClosedTimes::new(history_age_max.max(SHARED_ENCODING_AGE));
        Applier {
            thread,
            clock,
            tables,
            history_age_max,
            history_bytes_max,
            closed_times,
            superseded: HashMap::new(),
            handles: HashMap::new(),
        }
    }

    /// Returns the clock of the group.
    pub(crate) fn clock(&self) -> &Arc<GroupClock> {
        &self.clock
    }

    fn handle(&mut self, id: &ShardId) -> &ShardHandle {
        self.handles.entry(id.clone()).or_insert_with(|| {
            let shard = self.tables.shard(id, self.clock.group_number());
            let table = self.tables.table(&id.table);
            let divisions = table.divisions();
            let division = divisions.iter().find(|division| division.epoch() == id.epoch);
            let history_bytes_max = self.history_bytes_max / division.map_or(1, |division| division.shards().len());
            let actor = ShardActor::spawn(&self.thread, shard.clone(), history_bytes_max);
            ShardHandle { table, shard, actor, history_bytes_max }
        })
    }

    /// Sorts the commands of the batches by shard, each in log order.
    fn positions(batches: &[Batch]) -> Vec<Positions> {
        let mut positions: Vec<Positions> = Vec::new();
        for (number, batch) in batches.iter().enumerate() {
            for (index, command) in batch.commands().iter().enumerate() {
                let position = (number as u32, index as u32);
                let is_its =
                    |id: &ShardId| (id.number, id.epoch) == (command.shard, command.epoch) && id.table == command.table;
                match positions.iter_mut().find(|(id, _)| is_its(id)) {
                    Some((_, its)) => its.push(position),
                    None => positions.push((command.shard_id(), vec![position])),
                }
            }
        }
        positions
    }

    /// Applies committed batches in log order. Returns the outcomes of each batch's commands, in their order.
    ///
    /// # Errors
    /// Fails when a shard actor has ended.
    pub(crate) async fn apply(&mut self, mut batches: Vec<Batch>) -> Result<Vec<Outcomes>, ShardEnded> {
        // The first entry with a revision defines where the log begins, and with it the history of tables that are
        // created later. It is applied on its own, so that the result does not depend on how many entries are applied
        // together.
        let first = batches.iter().position(|batch| batch.last().is_some());
        match first.filter(|_| !self.clock.is_begun()) {
            Some(first) => {
                let rest = batches.split_off(first + 1);
                let mut outcomes = self.apply_together(batches).await?;
                outcomes.extend(self.apply_together(rest).await?);
                Ok(outcomes)
            }
            None => self.apply_together(batches).await,
        }
    }

    async fn apply_together(&mut self, batches: Vec<Batch>) -> Result<Vec<Outcomes>, ShardEnded> {
        if batches.iter().all(|batch| batch.step().is_none()) {
            return self.write(batches.into()).await;
        }
        // Batches with a step are rare. Everything before one in the log must be applied before it.
        let mut outcomes = Vec::with_capacity(batches.len());
        for batch in batches {
            if let Some(step) = batch.step().cloned() {
                self.take(step, batch.close()).await?;
            }
            outcomes.extend(self.write([batch].into()).await?);
        }
        Ok(outcomes)
    }

    /// Makes a shard take a step.
    async fn take(&mut self, step: Arc<ShardStep>, close: Option<Revision>) -> Result<(), ShardEnded> {
        let ShardHandle { table, shard, actor, .. } = self.handle(&step.shard);
        let divisions = table.divisions();
        let before = divisions.iter().take_while(|division| division.epoch() < step.shard.epoch).last().cloned();
        let taken = actor.send(Take { step: step.clone(), close, before });
        let (table, shard) = (table.clone(), shard.clone());
        let stage = shard.stage();
        let (opened, ended) = (stage.opened(), stage.ended());
        taken.await.map_err(|_| ShardEnded)?;
        if let Some(close) = close {
            self.clock.raise(close); // before subscribers are notified
        }
        if (opened, ended) != (stage.opened(), stage.ended()) {
            tracing::debug!(shard = ?step.shard, stage = ?stage.get(), "a shard was opened for writes, or has ended");
            table.notify_subscribers(&self.thread);
        }
        table.turn();
        Ok(())
    }

    /// Applies the commands of batches.
    async fn write(&mut self, batches: Arc<[Batch]>) -> Result<Vec<Outcomes>, ShardEnded> {
        let positions = Self::positions(&batches);
        let mut answers = Vec::with_capacity(positions.len());
        let mut touched: Vec<Arc<Table>> = Vec::with_capacity(positions.len());
        for (id, positions) in positions {
            // All shards get their work before the first answer is awaited.
            let ShardHandle { table, actor, .. } = self.handle(&id);
            answers.push(actor.send(Apply { batches: batches.clone(), positions }));
            if touched.last().is_none_or(|last| last.id() != table.id()) {
                touched.push(table.clone());
            }
        }
        let blank = |batch: &Batch| batch.commands().iter().map(|_| None).collect::<Outcomes>();
        let mut outcomes: Vec<Outcomes> = batches.iter().map(blank).collect();
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

    /// Closes the group up to a revision, once all shards have applied everything up to it. Notifies the subscribers of
    /// the changed tables, and those of other tables that waited for this group to close.
    fn close(&self, revision: Revision, touched: &[Arc<Table>]) {
        self.clock.raise(revision);
        touched.iter().for_each(|table| table.notify_subscribers(&self.thread));
        self.tables.each_spread(self.clock.group_number(), |table| {
            if table.has_news() {
                table.notify_subscribers(&self.thread);
            }
        });
    }

    /// Captures the present state of every shard of the group, held for at most `hold`.
    pub(crate) fn capture(&self, hold: Duration) -> Captured {
        let (begun, base) = (self.clock.begun(), self.clock.closed());
        let shards = self.tables.shards_of(self.clock.group_number()).into_iter();
        Captured { begun, base, shards: shards.map(|(id, shard)| (id, shard.capture(base, hold))).collect() }
    }

    /// Returns the shards of the group, each with its content according to a snapshot.
    pub(crate) fn contents(
        &self,
        begun: Revision,
        mut contents: BTreeMap<ShardId, Content>,
    ) -> Vec<(ShardId, Arc<Shard>, Content)> {
        let group_number = self.clock.group_number();
        self.clock.begin(begun); // before any of its tables is created
        for (id, shard) in self.tables.shards_of(group_number) {
            // A shard that the snapshot does not mention is as it was when the group began.
            contents.entry(id).or_insert_with_key(|id| Content::blank(shard.floor(), takes_writes(id.epoch)));
        }
        let shard = |(id, content)| (self.tables.shard(&id, group_number), id, content);
        contents.into_iter().map(shard).map(|(shard, id, content)| (id, shard, content)).collect()
    }

    /// Replaces the state of all shards of the group by a prepared snapshot, and at once closes the group up to its
    /// revision: until then, readers at the former closed revision find shards whose history begins above it. Returns
    /// the former state, so that the caller can drop it elsewhere.
    pub(crate) fn adopt(
        &self,
        base: Revision,
        prepared: Vec<(ShardId, Arc<Shard>, Restored)>,
    ) -> Vec<impl Send + use<>> {
        let table = |id: &ShardId| self.tables.table(&id.table);
        let tables: Vec<Arc<Table>> = prepared.iter().map(|(id, ..)| table(id)).collect();
        let before = prepared.into_iter().map(|(_, shard, restored)| shard.adopt(restored)).collect();
        self.close(base, &tables);
        tables.iter().for_each(|table| table.turn());
        before
    }

    /// Returns the memory of all present objects of the group, in bytes.
    pub(crate) fn object_bytes(&self) -> usize {
        self.tables.shards_of(self.clock.group_number()).iter().map(|(_, shard)| shard.object_bytes()).sum()
    }

    /// Drops history that exceeds its bound, all at once. Called while nobody reads.
    pub(crate) fn bound_history(&mut self) {
        for ShardHandle { table, shard, history_bytes_max, .. } in self.handles.values() {
            while shard.trim(Revision::ZERO, *history_bytes_max, table.revision(), Instant::now()) {}
        }
    }

    /// Drops history that no client may ask for any more.
    pub(crate) fn trim(&mut self, now: Instant) {
        self.closed_times.note(now, self.clock.closed());
        let aged = self.closed_times.closed_for(self.history_age_max, now);
        let unshared = self.closed_times.closed_for(SHARED_ENCODING_AGE, now);
        for (id, shard) in self.tables.shards_of(self.clock.group_number()) {
            let table = self.tables.table(&id.table);
            if shard.is_aging() {
                // A table must stay readable at its closed revision, which an idle group may hold far back.
                let (through, ended) = (table.revision(), self.outlived(&table, &id, now));
                self.handle(&id).actor.do_send(Trim { aged, unshared, now, through, ended });
            }
        }
    }

    /// Returns the last revision of a shard's division if the division has been superseded for at least the history
    /// window. Returns `None` otherwise. The window is measured in time, since a group that serves nothing any more is
    /// not closed further.
    fn outlived(&mut self, table: &Table, id: &ShardId, now: Instant) -> Option<Revision> {
        let end = ended(table, id)?;
        let since = *self.superseded.entry(id.clone()).or_insert(now);
        (now.duration_since(since) >= self.history_age_max).then_some(end)
    }

    /// Returns the revision up to which the whole group is closed.
    pub(crate) fn base(&self) -> Revision {
        self.clock.closed()
    }

    /// Returns the largest revision that this group has assigned or closed.
    pub(crate) fn last(&self) -> Revision {
        self.clock.closed()
    }
}

/// Returns the last revision at which a shard was read: its division has ended, and a later one is read. `None` while
/// the shard is still read.
fn ended(table: &Table, id: &ShardId) -> Option<Revision> {
    let front = table.front();
    if front.epoch() <= id.epoch {
        return None;
    }
    let divisions = table.divisions();
    match divisions.iter().find(|division| division.epoch() == id.epoch).map(|division| division.extent()) {
        Some(Extent::Ended(end)) => Some(end),
        Some(Extent::Closed(_)) => None,
        None => front.base(), // the map no longer names so old a division
    }
}

/// The state of every shard of a group at one moment.
pub(crate) struct Captured {
    /// The revision at which the log of the group began.
    pub(crate) begun: Revision,
    /// The revision up to which the whole group is closed.
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
