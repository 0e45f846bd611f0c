//! Read points: until when a replica waits before it shows what it has.

use std::sync::Arc;

use futures_util::future::{select_all, try_join_all};
use tokio::time::Instant;

use super::Store;
use crate::clock::GroupClock;
use crate::limits::{CLOSING_TIMEOUT, LOCAL_READ_WAIT, REACHING_INTERVAL};
use crate::replica::groups::Group;
use crate::shard_map::{DEFAULT_GROUP, MAP_KEY, group_name};
use crate::table::Extent;
use crate::{Object, ReadError, Revision, Table, TooLarge};

impl Store {
    /// Waits until this replica has everything of all tables that was acknowledged before this call, anywhere. At
    /// once on the only replica, which always has.
    ///
    /// # Errors
    /// Leadership cannot be confirmed.
    pub async fn catch_up(&self) -> Result<(), ReadError> {
        loop {
            let slots = self.shared.tables.map().needed_slots();
            try_join_all(slots.iter().map(|slot| async move {
                let group = self.shared.running.groups.wait_for(&group_name(*slot)).await;
                group.reads.barrier().await
            }))
            .await?;
            self.learned().await?;
            // What was acknowledged before may be in groups that came into use since.
            if self.shared.tables.map().needed_slots().is_subset(&slots) {
                return Ok(());
            }
        }
    }

    /// Waits for the same of one object and of every table that is not spread over groups.
    ///
    /// # Errors
    /// Leadership cannot be confirmed.
    pub async fn catch_up_with(&self, table: &Table, key: &str) -> Result<(), ReadError> {
        let home = table.home(key);
        if home.clock.slot() == 0 && table.is_home(key, &home) {
            return self.barrier_of(table, key).await;
        }
        let default = self.group(DEFAULT_GROUP)?;
        futures_util::try_join!(default.reads.barrier(), self.barrier_of(table, key)).map(drop)
    }

    /// A linearizable read point: whatever was acknowledged before this call is visible in the table at the revision
    /// that is answered, here. A table of several groups has those close that are behind the last change of others.
    ///
    /// # Errors
    /// Leadership cannot be confirmed, or a group cannot be closed.
    pub async fn barrier(&self, table: &Table) -> Result<Revision, ReadError> {
        self.founded().await?;
        let slots = |clocks: &[Arc<GroupClock>]| clocks.iter().map(|clock| clock.slot()).collect::<Vec<_>>();
        let clocks = loop {
            // What was acknowledged is in the division that is read, or in the next one once that has ended.
            let clocks = table.clocks();
            try_join_all(clocks.iter().map(|clock| self.confirm(clock))).await?;
            if matches!(table.front().extent(), Extent::Ended(_)) && table.after(table.front().epoch()).is_none() {
                self.learn().await?;
            } else if slots(&table.clocks()) == slots(&clocks) {
                break clocks;
            }
        };
        if clocks.len() > 1 && !seeded!(UnclosedBarrier) {
            // Only changes are to be seen: groups that closed further without one, as they do for other tables, do not
            // matter, so that reading an idle table writes nothing unless what it shows is of a while ago.
            let last = table.last_change();
            try_join_all(clocks.iter().map(|clock| clock.close_to(last))).await?;
            let deadline = Instant::now() + CLOSING_TIMEOUT;
            table.wait_applied(last, deadline).await.map_err(|_| ReadError::Unavailable)?;
        }
        Ok(table.revision())
    }

    /// An object as it is after everything that was acknowledged of it before this call.
    ///
    /// # Errors
    /// Leadership cannot be confirmed.
    pub async fn most_recent(&self, table: &Table, key: &str) -> Result<Option<Arc<Object>>, ReadError> {
        self.barrier_of(table, key).await?;
        let latest = table.latest(key);
        if let Some(latest) = &latest {
            self.promised(latest.revision()).await?; // it may have been written since, or deleted
        }
        Ok(latest.filter(|object| !object.is_tombstone()))
    }

    /// An object as this replica has it, whoever else has more, and no newer than lists of what it has show it after
    /// that: what is not closed yet is waited for, but not for long.
    pub async fn local(&self, table: &Table, key: &str) -> Option<Arc<Object>> {
        let latest = table.latest(key)?;
        if table.revision() < latest.revision() {
            self.settle(table, latest.revision()).await;
            return table.get_closed(key);
        }
        Some(latest).filter(|object| !object.is_tombstone())
    }

    /// Waits until lists of what this replica has show all that it has of a table by now, but not for long: what is
    /// not closed may never be while there is no majority.
    pub async fn settled(&self, table: &Table) {
        let last = table.last_change();
        if table.revision() < last {
            self.settle(table, last).await;
        }
    }

    /// Has what lists show be of now where it is of a while ago, so that what they tell is good for the history window:
    /// in a table in which nothing happens, revisions do not rise by themselves. Without a majority that is not waited
    /// for long.
    pub async fn freshened(&self, table: &Table) {
        let clocks = table.clocks();
        let stale = clocks.iter().filter(|clock| clock.is_stale()).max_by_key(|clock| clock.hybrid().now());
        if let Some(now) = stale.map(|clock| clock.hybrid().now()) {
            self.settle(table, now).await;
        }
    }

    async fn settle(&self, table: &Table, revision: Revision) {
        table.clocks().iter().for_each(|clock| clock.demand(revision));
        let _ = table.wait_applied(revision, Instant::now() + LOCAL_READ_WAIT).await; // what is closed is shown then
    }

    /// Waits until whoever is shown what there is at a revision gets larger ones from then on, in whichever group, as
    /// who wrote it does.
    ///
    /// # Errors
    /// The store is being shut down.
    pub async fn promised(&self, revision: Revision) -> Result<(), ReadError> {
        self.group(DEFAULT_GROUP)?.leader.node().promised(revision).await;
        Ok(())
    }

    /// A linearizable read point of one object: whatever was acknowledged of it before this call is what
    /// [`Table::get`] answers here.
    ///
    /// # Errors
    /// Leadership cannot be confirmed.
    pub(crate) async fn barrier_of(&self, table: &Table, key: &str) -> Result<(), ReadError> {
        self.founded().await?;
        loop {
            let home = table.home(key);
            self.confirm(&home.clock).await?;
            if table.is_home(key, &home) {
                return Ok(());
            }
            // It may have been written to elsewhere since.
            match table.after(home.epoch) {
                None => self.learn().await?,
                Some(next) if table.home(key).epoch == home.epoch => {
                    self.confirm(&next.place(key).clock).await?;
                    if table.home(key).epoch == home.epoch {
                        return Ok(()); // nobody could yet
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// Waits until everything of a table up to `revision` is visible here and nothing can be added to that any more.
    /// Where there are several groups, those of the table that are behind close, once it is known that somebody has
    /// assigned that revision, perhaps for another table: one that nobody has assigned was told to nobody.
    ///
    /// # Errors
    /// The deadline passed before.
    pub async fn reach(&self, table: &Table, revision: Revision, deadline: Instant) -> Result<(), TooLarge> {
        let mut maps = self.shared.tables.maps();
        let founded = maps.wait_for(|(_, founded)| *founded > Revision::ZERO);
        if !matches!(tokio::time::timeout_at(deadline, founded).await, Ok(Ok(_))) {
            return Err(TooLarge { current: table.revision() });
        }
        loop {
            // Which groups these are changes when the table is divided anew.
            let pause = deadline.min(Instant::now() + REACHING_INTERVAL);
            let several = self.shared.tables.map().data_groups() > 0;
            if several && table.revision() < revision {
                let clocks = table.clocks();
                let is_assigned = clocks.iter().any(|clock| clock.hybrid().latest() >= revision);
                let any = select_all(clocks.iter().map(|clock| Box::pin(clock.reached(revision))));
                let closed = async {
                    if !is_assigned {
                        any.await;
                    }
                    try_join_all(clocks.iter().map(|clock| clock.close_to(revision))).await
                };
                let _ = tokio::time::timeout_at(pause, closed).await; // what came of it is seen below
            }
            match table.wait_applied(revision, pause).await {
                Err(_) if pause < deadline => {}
                reached => return reached,
            }
        }
    }

    async fn confirm(&self, clock: &GroupClock) -> Result<(), ReadError> {
        self.group(clock.name())?.reads.barrier().await
    }

    fn group(&self, name: &str) -> Result<Arc<Group>, ReadError> {
        self.shared.running.groups.get(name).ok_or(ReadError::Unavailable)
    }

    /// Waits until this replica has a shard map: before that, where tables are is not known.
    async fn founded(&self) -> Result<(), ReadError> {
        let tables = &self.shared.tables;
        if !tables.is_founded() {
            self.learn().await?;
        }
        if tables.is_founded() { Ok(()) } else { Err(ReadError::Unavailable) }
    }

    /// Waits until this replica keeps to the newest shard map.
    pub(crate) async fn learn(&self) -> Result<(), ReadError> {
        self.group(DEFAULT_GROUP)?.reads.barrier().await?;
        self.learned().await
    }

    /// Waits until this replica keeps to the shard map that it has.
    async fn learned(&self) -> Result<(), ReadError> {
        let tables = &self.shared.tables;
        let map = tables.map_table().get(MAP_KEY).map_or(Revision::ZERO, |map| map.revision());
        let learned = tables.maps().wait_for(|(_, revision)| *revision >= map).await.map(drop);
        learned.map_err(|_| ReadError::Closed)
    }
}
