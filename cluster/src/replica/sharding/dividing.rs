//! Divides a table into other shards while it is in use.
//!
//! The shard map names the next division of the table. From then on every replica does the work of the groups that it
//! leads. It derives the next step from replicated state, so that a later leader continues:
//!
//! 1. The leader of each new shard's group fills the shard: with the objects at one revision, then with the changes
//!    since.
//! 2. Once all new shards are nearly up to date, the leader of the default group marks the old division as ending in
//!    the map.
//! 3. The leaders of the old shards' groups end those shards. Writers wait from here on.
//! 4. The leaders of the new shards' groups add the last changes and open the shards. Writers continue.
//! 5. The leader of the default group makes the new division the serving one. The old one keeps its history.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use super::mapping;
use crate::change::ChangeRange;
use crate::entry::{Action, Filling, Operation, ShardId, ShardStep};
use crate::group::Tables;
use crate::limits::{
    DIVIDING_INTERVAL, DIVIDING_RETRY_INTERVAL, FILLING_BYTES_MAX, FILLING_HOLD, FILLING_INTERVAL, FILLING_LAG_MS,
    FILLING_OBJECTS_MAX, SCAN_UNDER_LOCK_MAX,
};
use crate::replica::groups::{Group, Groups};
use crate::replica::starter::Starter;
use crate::shard_map::{DEFAULT_GROUP, Epoch, Placement, ShardMap};
use crate::table::shard::Shard;
use crate::table::{Division, Extent};
use crate::tasks::{self, Task};
use crate::{
    Compacted, Expectation, Key, Object, Revision, Selection, Snapshot, SnapshotError, Table, TableId, WriteError,
};

/// Takes part in every division of a table for as long as the store is open.
pub(crate) async fn follow(starter: Rc<Starter>) {
    let mut maps = starter.tables.maps();
    let mut dividing: BTreeMap<(TableId, Epoch), Task> = BTreeMap::new();
    loop {
        let map = maps.borrow_and_update().0.clone();
        dividing.retain(|_, task| !task.is_finished());
        for (table, next) in map.tables.iter().filter_map(|(table, placement)| Some((table, placement.next.as_ref()?)))
        {
            let begin = || {
                let change = Change { starter: starter.clone(), id: table.clone(), next: next.epoch };
                tasks::owned("division", change.make())
            };
            dividing.entry((table.clone(), next.epoch)).or_insert_with(begin);
        }
        if maps.changed().await.is_err() {
            return;
        }
    }
}

/// One change of the division of a table.
struct Change {
    starter: Rc<Starter>,
    id: TableId,
    /// The epoch of the new division.
    next: Epoch,
}

/// The reason why a step was not taken.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Compacted(#[from] Compacted),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Another leader has taken a step meanwhile.
    #[error("another step was taken instead")]
    Superseded,
}

impl Change {
    fn tables(&self) -> &Tables {
        &self.starter.tables
    }

    /// Returns the table's placement in the map; `None` once this change has been completed.
    fn placement(&self, map: &ShardMap) -> Option<Placement> {
        let placement = map.tables.get(&self.id)?;
        placement.next.as_ref().filter(|next| next.epoch == self.next)?;
        Some(placement.clone())
    }

    /// Does this replica's part of the work until the change is completed.
    async fn make(self) {
        let table = self.tables().table(&self.id);
        let mut maps = self.tables().maps();
        let began = Instant::now();
        tracing::info!(table = %self.id, epoch = self.next, "dividing a table into other shards");
        let mut fillers: Vec<Task> = Vec::new();
        loop {
            let turned = table.turned().notified();
            tokio::pin!(turned);
            turned.as_mut().enable(); // before looking, so that no change is missed
            let (map, at) = maps.borrow_and_update().clone();
            let Some(placement) = self.placement(&map) else { break };
            let divisions = table.divisions();
            let found = |epoch: Epoch| divisions.iter().find(|division| division.epoch() == epoch).cloned();
            if let (Some(before), Some(next)) = (found(placement.serving.epoch), found(self.next)) {
                if fillers.is_empty() {
                    fillers = self.fill(&table, &before, &next);
                }
                if placement.ending {
                    self.end(&before).await;
                }
                if self.leads(DEFAULT_GROUP) {
                    self.proceed(&map, at, &placement, &before, &next).await;
                }
            }
            tokio::select! {
                biased;
                () = turned => {}
                _ = maps.changed() => {}
                () = sleep(DIVIDING_INTERVAL) => {}
            }
        }
        let elapsed_ms = began.elapsed().as_millis() as u64;
        tracing::info!(table = %self.id, epoch = self.next, elapsed_ms, "the table is divided into other shards");
    }

    fn group(&self, name: &str) -> Option<Arc<Group>> {
        self.starter.groups.get(name)
    }

    fn leads(&self, group: &str) -> bool {
        self.group(group).is_some_and(|group| *group.leads.borrow())
    }

    /// Ends the shards of the old division whose groups this replica leads.
    async fn end(&self, before: &Division) {
        let ending = before.shards().iter().enumerate().map(|(number, placed)| async move {
            let group = self.group(placed.clock.name()).filter(|group| *group.leads.borrow());
            if let Some(group) = group.filter(|_| placed.shard.stage().ended().is_none()) {
                let shard = ShardId { table: self.id.clone(), epoch: before.epoch(), number: number as u16 };
                if let Err(error) = group.leader_client.advance(ShardStep { shard, action: Action::End }).await {
                    tracing::debug!(%error, table = %self.id, number, "a shard could not be ended");
                }
            }
        });
        join_all(ending).await;
    }

    /// Advances the shard map when the condition for its next state holds.
    async fn proceed(&self, map: &ShardMap, at: Revision, placement: &Placement, before: &Division, next: &Division) {
        let changed = match before.extent() {
            Extent::Ended(_) if next.is_open() => map.divided(&self.id, self.next),
            _ if !placement.ending && is_near(before, next) => map.ending(&self.id, self.next),
            _ => None,
        };
        let Some(changed) = changed else { return };
        let Starter { tables, groups, .. } = &*self.starter;
        match mapping::write(tables, groups, Expectation::Revision(at), &changed).await {
            Ok(_) => mapping::look(tables),
            Err(error) => {
                tracing::debug!(%error, table = %self.id, "the shard map could not be changed");
                sleep(DIVIDING_RETRY_INTERVAL).await;
            }
        }
    }

    /// Starts to fill the shards of the next division. A filler works whenever this replica leads the group of its
    /// shard.
    fn fill(&self, table: &Arc<Table>, before: &Arc<Division>, next: &Arc<Division>) -> Vec<Task> {
        let filler = |(number, placed): (usize, &crate::table::PlacedShard)| Filler {
            groups: self.starter.groups.clone(),
            table: table.clone(),
            before: before.clone(),
            next: next.clone(),
            shard: placed.shard.clone(),
            id: ShardId { table: self.id.clone(), epoch: self.next, number: number as u16 },
            held: None,
        };
        next.shards().iter().enumerate().map(filler).map(|filler| tasks::owned("filling", filler.run())).collect()
    }
}

/// Returns whether the new shards lack so few changes that the old division can end.
fn is_near(before: &Division, next: &Division) -> bool {
    let last = before.last_change();
    next.shards().iter().all(|placed| {
        let through = placed.shard.stage().filled().through;
        through.is_some_and(|through| through >= last || last.unix_ms() <= through.unix_ms() + FILLING_LAG_MS)
    })
}

/// Fills one shard of the next division, and opens it.
struct Filler {
    groups: Groups,
    table: Arc<Table>,
    before: Arc<Division>,
    next: Arc<Division>,
    shard: Arc<Shard>,
    id: ShardId,
    /// Keeps the history after the revision up to which the shard has been filled.
    held: Option<Snapshot>,
}

impl Filler {
    async fn run(mut self) {
        let name = self.next.shards()[usize::from(self.id.number)].clock.name().clone();
        let group = self.groups.wait_for(&name).await;
        let mut leads = group.leads.clone();
        while self.shard.stage().opened().is_none() {
            if !*leads.borrow_and_update() {
                self.held = None;
                // Another leader may fill and open the shard meanwhile.
                let _ = timeout(DIVIDING_INTERVAL, leads.changed()).await;
                continue;
            }
            if let Err(error) = self.go_on(&group).await {
                tracing::debug!(%error, shard = ?self.id, "the filling of a shard was interrupted");
                sleep(DIVIDING_RETRY_INTERVAL).await;
            }
        }
    }

    /// Takes the next step, if there is one.
    async fn go_on(&mut self, group: &Group) -> Result<(), StepError> {
        let table = self.table.clone();
        let turned = table.turned().notified();
        tokio::pin!(turned);
        turned.as_mut().enable(); // before looking, so that no change is missed
        let progress = self.shard.stage().filled();
        let Some(through) = progress.through else { return self.copy(group, progress.step).await };
        let (target, ended) = match self.before.extent() {
            Extent::Ended(end) if end == through => return self.take(group, Action::Open { above: end }).await,
            Extent::Ended(end) => (end, true),
            Extent::Closed(closed) => (closed, false),
        };
        let filling = match self.changes(through, target) {
            Ok(filling) => filling,
            Err(Compacted { .. }) => return self.copy(group, progress.step).await,
        };
        let reached = filling.through.unwrap_or(through);
        let lags = self.before.last_change() > through && reached.unix_ms() > through.unix_ms() + FILLING_LAG_MS / 2;
        if reached > through && (ended || lags || !filling.operations.is_empty()) {
            self.take(group, Action::Fill(Filling { step: progress.step + 1, ..filling })).await?;
            if !ended {
                self.held = Some(table.snapshot_for(reached, FILLING_HOLD)?);
            }
            return Ok(());
        }
        let _ = timeout(FILLING_INTERVAL, turned).await;
        Ok(())
    }

    /// Copies the objects of the old division at one revision.
    async fn copy(&mut self, group: &Group, mut step: u64) -> Result<(), StepError> {
        let revision = match self.before.extent() {
            Extent::Closed(revision) | Extent::Ended(revision) => revision,
        };
        let snapshot = self.table.snapshot_for(revision, FILLING_HOLD)?;
        self.held = Some(snapshot.clone());
        let mut cursor = snapshot.cursor(Selection::default(), None);
        let (mut objects, mut bytes, mut more) = (Vec::new(), 0, true);
        let mut filling = Filling { anew: true, ..Filling::default() };
        while more {
            more = cursor.read(SCAN_UNDER_LOCK_MAX.min(FILLING_OBJECTS_MAX), &mut objects)?;
            for object in objects.drain(..).filter(|object: &Arc<Object>| self.is_own(object.key())) {
                bytes += object.memory();
                filling.operations.push((object.key().clone(), object.revision(), Operation::Put(object)));
            }
            if more && bytes < FILLING_BYTES_MAX && filling.operations.len() < FILLING_OBJECTS_MAX {
                tokio::task::yield_now().await;
                continue;
            }
            step += 1;
            let began = Instant::now();
            let taken = Filling { step, through: (!more).then_some(revision), ..std::mem::take(&mut filling) };
            self.take(group, Action::Fill(taken)).await?;
            bytes = 0;
            sleep(began.elapsed()).await; // leaves half of the time to clients
        }
        Ok(())
    }

    fn is_own(&self, key: &Key) -> bool {
        self.next.number_of(key.as_str()) == self.id.number
    }

    /// Returns a step with the changes after one revision and up to another, as many as fit into one step.
    fn changes(&self, after: Revision, target: Revision) -> Result<Filling, Compacted> {
        let (mut changes, mut operations, mut bytes) = (Vec::new(), Vec::new(), 0);
        let of = ChangeRange { after, through: target, max: FILLING_OBJECTS_MAX };
        let mut through = self.before.changes(of, &mut changes)?;
        for change in changes {
            if bytes >= FILLING_BYTES_MAX {
                break;
            }
            let object = change.object();
            if self.is_own(object.key()) {
                bytes += object.memory();
                let operation = Operation::of(object);
                operations.push((object.key().clone(), change.revision(), operation));
            }
            if bytes >= FILLING_BYTES_MAX {
                through = change.revision();
            }
        }
        Ok(Filling { operations, through: Some(through), ..Filling::default() })
    }

    async fn take(&self, group: &Group, action: Action) -> Result<(), StepError> {
        let step = if let Action::Fill(filling) = &action { Some(filling.step) } else { None };
        group.leader_client.advance(ShardStep { shard: self.id.clone(), action }).await?;
        let filled = self.shard.stage().filled().step;
        match step.is_none_or(|step| step == filled) {
            true => Ok(()),
            false => Err(StepError::Superseded),
        }
    }
}
