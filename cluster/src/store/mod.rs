//! The handle on a store: writing, shutting down, and, in [`reading`], read points.

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
#[cfg(test)]
use crate::replica::attempts::Attempts;
use crate::replica::running::Running;
use crate::replica::standing::Standing;
use crate::replica::writing::make;
use crate::shard_map::{DEFAULT_GROUP, Slot, group_name};
use crate::wal::WalUsage;
use crate::{OpenError, Options, Outcome, Table, TableId, Tenure, Write, WriteError};

/// A handle on the store of this replica. Cheap to clone; usable from any thread and runtime. The store ends with its
/// last handle, or by [`Store::shutdown`].
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    tables: Arc<Tables>,
    running: Running,
    /// Ends it, and tells when it has ended.
    end: Mutex<Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>>,
}

/// What a store is doing, for metrics.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Writes of all groups that wait for their outcome.
    pub writes_waiting: usize,
    /// Bytes of these.
    pub writes_waiting_bytes: usize,
    /// The write-ahead log.
    pub wal: WalUsage,
    /// Every group.
    pub groups: Vec<GroupStatus>,
}

/// What a store that runs is told, and tells.
struct Life {
    started: oneshot::Sender<Result<Running, OpenError>>,
    stopped: oneshot::Receiver<()>,
    /// Dropped when everything has ended.
    ended: oneshot::Sender<()>,
}

impl Store {
    /// Opens the store. That of the only replica has everything and takes writes when it is open. One of several shows
    /// what its own log says, and becomes a member, or goes on as one, in its own time: see [`Store::standing`].
    ///
    /// # Errors
    /// The directory cannot be used, is used by another process, or holds what is damaged or of a later release.
    pub async fn open(options: Options) -> Result<Store, OpenError> {
        let lock = lock(&options)?;
        check_finished(&options.directory)?;
        let machine = if options.unsafe_no_fsync { Machine::throwaway() } else { Machine::local() };
        Store::open_on(machine, Some(lock), options).await
    }

    /// Opens it on a machine, and runs it on a thread of its own.
    pub(crate) async fn open_on(machine: Machine, lock: Option<File>, options: Options) -> Result<Store, OpenError> {
        let (started, clock) = (options.clone(), HybridClock::new(machine.clock.clone()));
        let start = move |tables, Life { started: told, stopped, ended }| {
            let run = move || {
                actix::System::new().block_on(boot::run(machine, started, tables, told, stopped));
                drop(lock); // the files are closed by now
                drop(ended);
            };
            std::thread::Builder::new().name("store".into()).spawn(run).map(drop).map_err(|_| OpenError::Ended)
        };
        Store::begin(&options, clock, start).await
    }

    /// Opens it on a machine, and runs it beside the caller, which must be within a `System` of actix.
    #[cfg(test)]
    pub(crate) async fn open_here(machine: Machine, options: Options) -> Result<Store, OpenError> {
        let (started, clock) = (options.clone(), HybridClock::new(machine.clock.clone()));
        let start = move |tables, Life { started: told, stopped, ended }| {
            actix::spawn(async move {
                boot::run(machine, started, tables, told, stopped).await;
                drop(ended);
            });
            Ok(())
        };
        Store::begin(&options, clock, start).await
    }

    async fn begin(
        options: &Options,
        clock: HybridClock,
        start: impl FnOnce(Arc<Tables>, Life) -> Result<(), OpenError>,
    ) -> Result<Store, OpenError> {
        let tables = Arc::new(Tables::new(options, clock));
        let (started, running) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        start(tables.clone(), Life { started, stopped, ended })?;
        let running = match running.await.unwrap_or(Err(OpenError::Ended)) {
            Ok(running) => running,
            Err(error) => {
                let _ = end.await; // until it let go of the directory
                return Err(error);
            }
        };
        Ok(Store { shared: Arc::new(Shared { tables, running, end: Mutex::new(Some((stop, end))) }) })
    }

    pub(crate) fn running(&self) -> &Running {
        &self.shared.running
    }

    pub(crate) fn registry(&self) -> &Arc<Tables> {
        &self.shared.tables
    }

    /// What this replica is to its cluster, now and from then on.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.shared.running.standing.clone()
    }

    /// Waits until this replica is a member that has everything which was acknowledged before; for ever when the store
    /// is closed before.
    pub async fn ready(&self) {
        let mut standing = self.standing();
        if standing.wait_for(|standing| *standing == Standing::Member).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Id of this replica.
    pub fn node(&self) -> u64 {
        self.shared.running.id
    }

    /// Whether there may be other replicas, now or as long as this store is open.
    pub fn may_have_others(&self) -> bool {
        self.shared.running.peers.is_some()
    }

    /// The table of this name; it comes into being when first asked for.
    pub fn table(&self, id: &TableId) -> Arc<Table> {
        self.shared.tables.table(id)
    }

    /// Every table that was asked for or written to.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.shared.tables.of_users()
    }

    /// Makes one conditional write, and waits until it is durable and visible here.
    ///
    /// # Errors
    /// See [`WriteError`], which also says what may be concluded. A caller that stops waiting may conclude nothing.
    pub fn write(&self, write: Write) -> impl Future<Output = Result<Outcome, WriteError>> + Send {
        self.write_from(write, None)
    }

    /// As [`Store::write`]; what was decided in a tenure is written only while that lasts.
    ///
    /// # Errors
    /// As [`Store::write`]; [`WriteError::NotLeader`] when the tenure is over and the write was not made.
    pub async fn write_from(&self, write: Write, tenure: Option<Tenure>) -> Result<Outcome, WriteError> {
        make(&self.shared.tables, &self.shared.running.groups, write, tenure).await
    }

    /// A write of which attempts can be made one by one.
    #[cfg(test)]
    pub(crate) fn attempts(&self, write: Write) -> Attempts<'_> {
        Attempts::new(&self.shared.running.groups, self.table(&write.table), write)
    }

    /// The tenure of this replica, when it leads the group `default` and that has all of a table; also when it is the
    /// only replica.
    pub fn tenure(&self, table: &Table) -> Option<Tenure> {
        if table.is_spread() || table.clocks().first().is_none_or(|clock| clock.slot() != 0) {
            return None;
        }
        let group = self.shared.running.groups.get(DEFAULT_GROUP)?;
        group.leader.node().tenure().map(Tenure)
    }

    /// Whether this replica leads the group `default` still, in the same term, as far as it knows.
    pub fn holds(&self, tenure: Tenure) -> bool {
        let default = self.shared.running.groups.get(DEFAULT_GROUP);
        default.is_some_and(|group| group.leader.node().tenure() == Some(tenure.0))
    }

    /// Whether this replica leads the group `default`, now and from then on: what of several replicas one should do,
    /// the one that leads does.
    pub fn leadership(&self) -> watch::Receiver<bool> {
        let default = self.shared.running.groups.get(DEFAULT_GROUP);
        default.map_or_else(|| watch::channel(false).1, |group| group.leads.clone())
    }

    /// The addresses at which clients reach others that are reachable, as far as these say, and which of these are
    /// members with a vote. Others may become such without coming or going.
    pub fn servers(&self) -> Vec<(String, bool)> {
        let running = &self.shared.running;
        let servers = running.peers.as_ref().map(|peers| peers.servers()).unwrap_or_default();
        let default = running.groups.get(DEFAULT_GROUP);
        let voters = default.map(|group| group.leader.node().voters()).unwrap_or_default();
        servers.into_iter().map(|(id, address)| (address, voters.contains(&id))).collect()
    }

    /// Waits until another member comes or goes after this was called; for ever where there is none.
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
            group.leader.node().snapshot_now().await?;
        }
        Ok(())
    }

    /// The groups in which tables are kept now; one that is being founded for the shards to come is none yet.
    fn serving_nodes(&self) -> Vec<Node> {
        let slots: BTreeSet<Slot> = self.shared.tables.map().serving_slots();
        let groups = slots.into_iter().filter_map(|slot| self.shared.running.groups.get(&group_name(slot)));
        groups.map(|group| group.leader.node().clone()).collect()
    }

    /// Whether this replica is a member that has started and every group has a leader, so that writes and linearizable
    /// reads can be tried.
    pub fn is_available(&self) -> bool {
        *self.shared.running.standing.borrow() == Standing::Member && self.serving_nodes().iter().all(Node::is_led)
    }

    /// What the store is doing.
    pub fn status(&self) -> Status {
        let Running { groups, wal, .. } = &self.shared.running;
        let groups = groups.all();
        Status {
            writes_waiting: groups.values().map(|group| group.leader.admission().writes()).sum(),
            writes_waiting_bytes: groups.values().map(|group| group.leader.admission().bytes()).sum(),
            wal: wal.usage(),
            groups: groups.iter().map(|(name, group)| group.leader.node().status(name)).collect(),
        }
    }

    /// How far the wall clock of this machine is behind the foremost one of the cluster, or behind what it showed
    /// itself. Less than a few milliseconds say nothing.
    pub fn clock_behind(&self) -> Duration {
        self.shared.tables.hybrid_clock().behind()
    }

    /// Stops the store and waits until it has let go of its directory. Other handles then answer `Closed`.
    pub async fn shutdown(self) {
        let Some((stop, ended)) = self.shared.end.lock().take() else { return };
        let _ = stop.send(());
        let _ = ended.await;
    }
}
