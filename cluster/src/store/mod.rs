//! The handle on a store: opening it, writing, its state, shutting it down. [`reading`] has the read points.

mod reading;

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use crate::backup::check_finished;
use crate::boot;
use crate::clock::HybridClock;
use crate::group::Tables;
use crate::lock::lock;
use crate::machine::Machine;
use crate::raft::{GroupStatus, Node};
use crate::replica::running::Running;
use crate::replica::standing::Standing;
use crate::replica::writing::make;
#[cfg(test)]
use crate::replica::writing::retried_write::RetriedWrite;
use crate::shard_map::{DEFAULT_GROUP, GroupNumber, group_name};
use crate::tasks;
use crate::wal::WalUsage;
use crate::{OpenError, Options, Outcome, Table, TableId, Tenure, Write, WriteError};

/// A handle on the store of this replica. It is cheap to clone and can be used from any thread and runtime. The store
/// stops when its last handle is dropped, or by [`Store::shutdown`].
#[derive(Clone)]
pub struct Store {
    shared: Arc<SharedStore>,
}

struct SharedStore {
    tables: Arc<Tables>,
    running: Running,
    /// Stops the store, and reports when it has stopped. `None` once [`Store::shutdown`] was called.
    end: Mutex<Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>>,
}

/// The state of a store, for metrics.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// The number of writes, of all groups, that wait for their outcome.
    pub writes_waiting: usize,
    /// The total size of these writes, in bytes.
    pub writes_waiting_bytes: usize,
    /// The use of the write-ahead log.
    pub wal: WalUsage,
    /// Bytes of memory that the history of one table may take.
    pub history_bytes_max: usize,
    /// The state of every group.
    pub groups: Vec<GroupStatus>,
}

/// The channels between a handle and the running store.
struct StoreChannels {
    started: oneshot::Sender<Result<Running, OpenError>>,
    stopped: oneshot::Receiver<()>,
    /// Dropped when the store has stopped and has closed its files.
    ended: oneshot::Sender<()>,
}

impl Store {
    /// Opens the store. A store with a single replica is complete and takes writes once this returns. A replica with
    /// peers shows the content of its own log, and joins or rejoins its cluster in the background: see
    /// [`Store::standing`].
    ///
    /// # Errors
    /// Fails when the directory cannot be used, is in use by another process, or contains data that is damaged or
    /// written by a later release.
    pub async fn open(options: Options) -> Result<Store, OpenError> {
        let lock = lock(&options)?;
        check_finished(&options.directory)?;
        let machine = if options.unsafe_no_fsync { Machine::throwaway() } else { Machine::local() };
        Store::open_on(machine, Some(lock), options).await
    }

    /// Opens the store on the given machine, and runs it on a thread of its own.
    pub(crate) async fn open_on(machine: Machine, lock: Option<File>, options: Options) -> Result<Store, OpenError> {
        let (own_options, clock) = (options.clone(), HybridClock::new(machine.clock.clone()));
        let start = move |tables, StoreChannels { started, stopped, ended }| {
            let run = move || {
                actix::System::new().block_on(boot::run(machine, own_options, tables, started, stopped));
                drop(lock); // the files are closed by now
                drop(ended);
            };
            tasks::thread("store", None, run).map(drop).map_err(|_| OpenError::Ended)
        };
        Store::begin(&options, clock, start).await
    }

    /// Opens the store on the given machine, and runs it on the caller's thread, which must have a `System` of actix.
    #[cfg(test)]
    pub(crate) async fn open_here(machine: Machine, options: Options) -> Result<Store, OpenError> {
        let (own_options, clock) = (options.clone(), HybridClock::new(machine.clock.clone()));
        let start = move |tables, StoreChannels { started, stopped, ended }| {
            tasks::detached_here("store", async move {
                boot::run(machine, own_options, tables, started, stopped).await;
                drop(ended);
            });
            Ok(())
        };
        Store::begin(&options, clock, start).await
    }

    async fn begin(
        options: &Options,
        clock: HybridClock,
        start: impl FnOnce(Arc<Tables>, StoreChannels) -> Result<(), OpenError>,
    ) -> Result<Store, OpenError> {
        let tables = Arc::new(Tables::new(options, clock));
        let (started, running) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        start(tables.clone(), StoreChannels { started, stopped, ended })?;
        let running = match running.await.unwrap_or(Err(OpenError::Ended)) {
            Ok(running) => running,
            Err(error) => {
                let _ = end.await; // the directory is released by then
                return Err(error);
            }
        };
        Ok(Store { shared: Arc::new(SharedStore { tables, running, end: Mutex::new(Some((stop, end))) }) })
    }

    pub(crate) fn running(&self) -> &Running {
        &self.shared.running
    }

    pub(crate) fn registry(&self) -> &Arc<Tables> {
        &self.shared.tables
    }

    /// Returns a receiver of this replica's standing in its cluster: the present one, and every change.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.shared.running.standing.clone()
    }

    /// Waits until this replica is a member that has applied everything acknowledged before. Waits for ever when the
    /// store is closed first.
    pub async fn ready(&self) {
        let mut standing = self.standing();
        if standing.wait_for(|standing| *standing == Standing::Member).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the id of this replica.
    pub fn node(&self) -> u64 {
        self.shared.running.id
    }

    /// Returns whether this store can have other replicas while it is open: it was given a membership.
    pub fn may_have_others(&self) -> bool {
        self.shared.running.peers.is_some()
    }

    /// Returns the table of this name, and creates it when there is none.
    pub fn table(&self, id: &TableId) -> Arc<Table> {
        self.shared.tables.table(id)
    }

    /// Returns every table that was asked for or written to.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.shared.tables.of_users()
    }

    /// Makes one conditional write, and waits until it is durable and visible here.
    ///
    /// # Errors
    /// See [`WriteError`], which also states the conclusions that a caller may draw. A caller that stops waiting may
    /// draw none.
    pub fn write(&self, write: Write) -> impl Future<Output = Result<Outcome, WriteError>> + Send {
        self.write_from(write, None)
    }

    /// Works as [`Store::write`], but makes the write only while `tenure` lasts, if one is given: for a write that
    /// depends on state that was read in that tenure.
    ///
    /// # Errors
    /// As [`Store::write`]; [`WriteError::NotLeader`] when the tenure is over and the write was not made.
    pub async fn write_from(&self, write: Write, tenure: Option<Tenure>) -> Result<Outcome, WriteError> {
        make(&self.shared.tables, &self.shared.running.groups, write, tenure).await
    }

    /// Returns a write whose attempts a test makes one by one.
    #[cfg(test)]
    pub(crate) fn retried_write(&self, write: Write) -> RetriedWrite<'_> {
        RetriedWrite::new(&self.shared.running.groups, self.table(&write.table), write)
    }

    /// Returns the present tenure when this replica leads the group `default` and that group has every shard of the
    /// table. A single replica leads its group too. `None` otherwise.
    pub fn tenure(&self, table: &Table) -> Option<Tenure> {
        if table.is_spread() || table.clocks().first().is_none_or(|clock| clock.group_number() != 0) {
            return None;
        }
        let group = self.shared.running.groups.get(DEFAULT_GROUP)?;
        group.leader_client.node().tenure().map(Tenure)
    }

    /// Returns whether this replica still leads the group `default` in the term of `tenure`, as far as it knows.
    pub fn holds(&self, tenure: Tenure) -> bool {
        let default = self.shared.running.groups.get(DEFAULT_GROUP);
        default.is_some_and(|group| group.leader_client.node().tenure() == Some(tenure.0))
    }

    /// Returns a receiver that shows whether this replica leads the group `default`, now and after every change. Work
    /// that only one replica must do is done by that leader.
    pub fn leadership(&self) -> watch::Receiver<bool> {
        let default = self.shared.running.groups.get(DEFAULT_GROUP);
        default.map_or_else(|| watch::channel(false).1, |group| group.leads.clone())
    }

    /// Returns the client addresses of the other replicas that are reachable, as they announce them, and for each
    /// whether it is a voting member. That may change without a replica coming or going.
    pub fn servers(&self) -> Vec<(String, bool)> {
        let running = &self.shared.running;
        let servers = running.peers.as_ref().map(|peers| peers.servers()).unwrap_or_default();
        let default = running.groups.get(DEFAULT_GROUP);
        let voters = default.map(|group| group.leader_client.node().roster().voters()).unwrap_or_default();
        servers.into_iter().map(|(id, address)| (address, voters.contains(&id))).collect()
    }

    /// Waits until another member comes or goes after this call. Waits for ever on a store without other replicas.
    pub fn members_changed(&self) -> impl Future<Output = ()> + use<> {
        let liveness = self.shared.running.peers.as_ref().map(|peers| peers.liveness());
        async move {
            if let Some(mut liveness) = liveness
                && liveness.changed().await.is_ok()
            {
                return;
            }
            std::future::pending().await
        }
    }

    /// Writes a snapshot of every group now.
    pub(crate) async fn write_snapshots(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        for group in self.shared.running.groups.all().values() {
            group.leader_client.node().snapshots().write_now().await?;
        }
        Ok(())
    }

    /// Returns the nodes of the groups that tables are read from now, without a group that is still being founded for
    /// new shards.
    fn serving_nodes(&self) -> Vec<Node> {
        let group_numbers: BTreeSet<GroupNumber> = self.shared.tables.map().serving_groups();
        let groups = group_numbers
            .into_iter()
            .filter_map(|group_number| self.shared.running.groups.get(&group_name(group_number)));
        groups.map(|group| group.leader_client.node().clone()).collect()
    }

    /// Returns whether this replica is a member that has caught up since it started, and every group has a leader, so
    /// that writes and linearizable reads can be tried.
    pub fn is_available(&self) -> bool {
        *self.shared.running.standing.borrow() == Standing::Member && self.serving_nodes().iter().all(Node::is_led)
    }

    /// Returns the state of the store.
    pub fn status(&self) -> Status {
        let Running { groups, wal, .. } = &self.shared.running;
        let groups = groups.all();
        Status {
            writes_waiting: groups.values().map(|group| group.leader_client.waiting_writes().count()).sum(),
            writes_waiting_bytes: groups.values().map(|group| group.leader_client.waiting_writes().bytes()).sum(),
            wal: wal.usage(),
            history_bytes_max: self.shared.tables.history_bytes_max(),
            groups: groups.iter().map(|(name, group)| group.leader_client.node().status(name)).collect(),
        }
    }

    /// Returns how far this machine's wall clock is behind the latest time that it, or another member, has shown. A few
    /// milliseconds mean nothing: the clock of revisions runs ahead of the wall clock while many writes arrive.
    pub fn clock_behind(&self) -> Duration {
        self.shared.tables.hybrid_clock().behind()
    }

    /// Stops the store and waits until it has released its directory. Other handles answer `Closed` from then on.
    pub async fn shutdown(self) {
        let Some((stop, ended)) = self.shared.end.lock().take() else { return };
        let _ = stop.send(());
        let _ = ended.await;
    }
}
