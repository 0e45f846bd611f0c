//! Read points: how long a replica waits before it answers a read from its own state.

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
    /// Waits until this replica has applied everything, of all tables, that any replica acknowledged before this call.
    /// Returns at once on a single replica.
    ///
    /// # Errors
    /// Fails when leadership cannot be confirmed.
    pub async fn catch_up(&self) -> Result<(), ReadError> {
        loop {
            let group_numbers = self.shared.tables.map().needed_groups();
            try_join_all(group_numbers.iter().map(|group_number| async move {
                let group = self.shared.running.groups.wait_for(&group_name(*group_number)).await;
                group.reads.barrier().await
            }))
            .await?;
            self.learned().await?;
            // Writes may have been acknowledged meanwhile in groups that came into use since `group_numbers` was read.
            if self.shared.tables.map().needed_groups().is_subset(&group_numbers) {
                return Ok(());
            }
        }
    }

    /// Waits until this replica has applied everything that was acknowledged before this call for one object, and for
    /// every table that is kept in the group `default` alone.
    ///
    /// # Errors
    /// Fails when leadership cannot be confirmed.
    pub async fn catch_up_with(&self, table: &Table, key: &str) -> Result<(), ReadError> {
        let write_shard = table.write_shard(key);
        if write_shard.clock.group_number() == 0 && table.is_write_shard(key, &write_shard) {
            return self.barrier_of(table, key).await;
        }
        let default = self.group(DEFAULT_GROUP)?;
        futures_util::try_join!(default.reads.barrier(), self.barrier_of(table, key)).map(drop)
    }

    /// Waits for a linearizable read point and returns its revision: every write to the table that was acknowledged
    /// before this call is visible here at that revision. In a table of several groups, those that lag behind the last
    /// change of the others are asked to close.
    ///
    /// # Errors
    /// Fails when leadership cannot be confirmed, or a group cannot be closed.
    pub async fn barrier(&self, table: &Table) -> Result<Revision, ReadError> {
        self.founded().await?;
        let group_numbers =
            |clocks: &[Arc<GroupClock>]| clocks.iter().map(|clock| clock.group_number()).collect::<Vec<_>>();
        let clocks = loop {
            // An acknowledged write is in the division that is read now, or in the next one once this one has ended.
            let clocks = table.clocks();
            try_join_all(clocks.iter().map(|clock| self.confirm(clock))).await?;
            if matches!(table.front().extent(), Extent::Ended(_)) && table.after(table.front().epoch()).is_none() {
                self.learn().await?;
            } else if group_numbers(&table.clocks()) == group_numbers(&clocks) {
                break clocks;
            }
        };
        if clocks.len() > 1 && !seeded!(UnclosedBarrier) {
            // Only changes must become visible. A group may have closed further without a change to this table, by
            // writes to other tables; that does not count, so that reading an idle table writes nothing.
            // `Store::renew_closed_revision` renews a closed revision that is too old.
            let last = table.last_change();
            try_join_all(clocks.iter().map(|clock| clock.close_to(last))).await?;
            let deadline = Instant::now() + CLOSING_TIMEOUT;
            table.wait_applied(last, deadline).await.map_err(|_| ReadError::Unavailable)?;
        }
        Ok(table.revision())
    }

    /// Returns an object in a state that has every write of it that was acknowledged before this call. `None` when
    /// there is no such object.
    ///
    /// # Errors
    /// Fails when leadership cannot be confirmed.
    pub async fn most_recent(&self, table: &Table, key: &str) -> Result<Option<Arc<Object>>, ReadError> {
        self.barrier_of(table, key).await?;
        let latest = table.latest(key);
        if let Some(latest) = &latest {
            self.wait_promised(latest.revision()).await?; // the version may come from a later write or deletion
        }
        Ok(latest.filter(|object| !object.is_tombstone()))
    }

    /// Returns an object as this replica has it, whatever other replicas have. Later lists of this replica show this
    /// state or a newer one. Waits a short time ([`LOCAL_READ_WAIT`]) until its revision is closed. `None` when there
    /// is no such object.
    pub async fn local(&self, table: &Table, key: &str) -> Option<Arc<Object>> {
        let latest = table.latest(key)?;
        if table.revision() < latest.revision() {
            self.wait_closed(table, latest.revision()).await;
            return table.get_closed(key);
        }
        Some(latest).filter(|object| !object.is_tombstone())
    }

    /// Waits until lists of this replica show everything that it has of a table now, for a short time only
    /// ([`LOCAL_READ_WAIT`]): without a majority the revisions may never be closed.
    pub async fn wait_for_last_change(&self, table: &Table) {
        let last = table.last_change();
        if table.revision() < last {
            self.wait_closed(table, last).await;
        }
    }

    /// Raises the closed revision of a table to about the present time when it is older than a part of the history
    /// window, so that a client can use the revision for the whole history window: revisions of an idle table do not
    /// rise by themselves. Waits a short time only ([`LOCAL_READ_WAIT`]), since closing needs a majority.
    pub async fn renew_closed_revision(&self, table: &Table) {
        let clocks = table.clocks();
        let stale = clocks.iter().filter(|clock| clock.is_stale()).max_by_key(|clock| clock.hybrid().now());
        if let Some(now) = stale.map(|clock| clock.hybrid().now()) {
            self.wait_closed(table, now).await;
        }
    }

    /// Renews the closed revision of a table as [`Store::renew_closed_revision`] does, for a client that will name it
    /// in its next request. Waits longer while clients may not name it ([`Table::horizon`]). The caller has passed a
    /// [`Store::barrier`]: the leaders of all groups have just answered, so they can close.
    ///
    /// # Errors
    /// Fails when the groups are not closed in time ([`CLOSING_TIMEOUT`]).
    pub async fn renew_expired_revision(&self, table: &Table) -> Result<(), ReadError> {
        self.renew_closed_revision(table).await;
        if table.revision() >= table.horizon() {
            return Ok(());
        }
        let clocks = table.clocks();
        let now = clocks.iter().map(|clock| clock.hybrid().now()).max().unwrap_or_default();
        try_join_all(clocks.iter().map(|clock| clock.close_to(now))).await?;
        let deadline = Instant::now() + CLOSING_TIMEOUT;
        table.wait_applied(now, deadline).await.map_err(|_| ReadError::Unavailable)
    }

    async fn wait_closed(&self, table: &Table, revision: Revision) {
        table.clocks().iter().for_each(|clock| clock.demand(revision));
        let _ = table.wait_applied(revision, Instant::now() + LOCAL_READ_WAIT).await; // a timeout is no error here
    }

    /// Waits until all other members have promised to assign only revisions above `revision`, so that a client that has
    /// seen it never receives a smaller one later. A client that wrote it has the same promise.
    ///
    /// # Errors
    /// Fails when the store is shut down.
    pub async fn wait_promised(&self, revision: Revision) -> Result<(), ReadError> {
        self.group(DEFAULT_GROUP)?.leader_client.node().promises().wait_promised(revision).await;
        Ok(())
    }

    /// Waits for a linearizable read point of one object: from then on [`Table::get`] returns a state that has every
    /// write of the object that was acknowledged before this call.
    ///
    /// # Errors
    /// Fails when leadership cannot be confirmed.
    pub(crate) async fn barrier_of(&self, table: &Table, key: &str) -> Result<(), ReadError> {
        self.founded().await?;
        loop {
            let write_shard = table.write_shard(key);
            self.confirm(&write_shard.clock).await?;
            if table.is_write_shard(key, &write_shard) {
                return Ok(());
            }
            // The object may have been written in a later division meanwhile.
            match table.after(write_shard.epoch) {
                None => self.learn().await?,
                Some(next) if table.write_shard(key).epoch == write_shard.epoch => {
                    self.confirm(&next.shard_for(key).clock).await?;
                    if table.write_shard(key).epoch == write_shard.epoch {
                        return Ok(()); // the next division took no writes yet
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// Waits until everything of a table up to `revision` is visible here and closed, so that nothing can be added to
    /// it. In a table of several groups, the groups that lag are asked to close, but only once some group is known to
    /// have assigned that revision, perhaps for another table: no client can have received one that nobody has
    /// assigned.
    ///
    /// # Errors
    /// Fails when the deadline passes first.
    pub async fn reach(&self, table: &Table, revision: Revision, deadline: Instant) -> Result<(), TooLarge> {
        let mut maps = self.shared.tables.maps();
        let founded = maps.wait_for(|(_, founded)| *founded > Revision::ZERO);
        if !matches!(tokio::time::timeout_at(deadline, founded).await, Ok(Ok(_))) {
            return Err(TooLarge { current: table.revision() });
        }
        loop {
            // The table's groups change when it is divided anew, so they are read again after each pause.
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
                let _ = tokio::time::timeout_at(pause, closed).await; // whether it worked is seen below
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

    /// Waits until this replica has a shard map: without one it does not know which groups have which tables. Fails
    /// with [`ReadError::Unavailable`] when there is none.
    async fn founded(&self) -> Result<(), ReadError> {
        let tables = &self.shared.tables;
        if !tables.is_founded() {
            self.learn().await?;
        }
        if tables.is_founded() { Ok(()) } else { Err(ReadError::Unavailable) }
    }

    /// Waits until this replica uses the newest shard map.
    pub(crate) async fn learn(&self) -> Result<(), ReadError> {
        self.group(DEFAULT_GROUP)?.reads.barrier().await?;
        self.learned().await
    }

    /// Waits until this replica uses the newest shard map that it has applied.
    async fn learned(&self) -> Result<(), ReadError> {
        let tables = &self.shared.tables;
        let map = tables.map_table().get(MAP_KEY).map_or(Revision::ZERO, |map| map.revision());
        let learned = tables.maps().wait_for(|(_, revision)| *revision >= map).await.map(drop);
        learned.map_err(|_| ReadError::Closed)
    }
}
