//! Starts groups, while the store is being opened and later.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use actix::{Actor, Addr, System};
use tokio::sync::watch;

use super::asking::closer::Closer;
use super::asking::leader_client::LeaderClient;
use super::asking::reads::Reads;
use super::groups::{Group, Groups};
use crate::clock::GroupClock;
use crate::disk::{Disk, aside};
use crate::group::{Applier, Proposer, Tables};
use crate::machine::Machine;
use crate::peer::Peers;
use crate::raft::{NodeOptions, Proposals, StateMachine};
use crate::shard_map::GroupNumber;
use crate::snapshot::Snapshots;
use crate::tasks::{self, Task};
use crate::wal::{Wal, WalError};
use crate::{OpenError, Options};

/// Starts the groups that this replica takes part in.
pub(crate) struct Starter {
    pub(crate) machine: Machine,
    pub(crate) options: Options,
    pub(crate) tables: Arc<Tables>,
    pub(crate) groups: Groups,
    pub(crate) wal: Wal,
    /// The id of this replica.
    pub(crate) id: u64,
    pub(crate) peers: Option<Arc<dyn Peers>>,
    pub(crate) on_lost: Arc<dyn Fn() + Send + Sync>,
    /// The state machine of the default group, which is built while the log is being read.
    pub(crate) applying: Cell<Option<Task<Result<StateMachine, Failure>>>>,
}

/// The reason why a group could not be started.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Returns the directory of a group's snapshots.
fn snapshots_of(options: &Options, group: &str) -> PathBuf {
    options.directory.join("snapshots").join(group)
}

/// Brings the snapshots of these groups into the form that new ones would have, on a thread where that blocks nothing
/// else.
pub(crate) async fn renew_snapshots(
    options: &Options,
    disk: &Arc<dyn Disk>,
    groups: Vec<String>,
) -> io::Result<Result<(), WalError>> {
    let (files, options) = (disk.clone(), options.clone());
    let renew = move || {
        let renewed = |group: &String| Snapshots::open(files.clone(), snapshots_of(&options, group))?.renew();
        groups.iter().try_for_each(renewed)
    };
    aside(&**disk, renew).await
}

/// Opens the state machine of a group with the content of its newest snapshot.
pub(crate) async fn open_machine(
    clock: &Arc<GroupClock>,
    options: &Options,
    tables: &Arc<Tables>,
    disk: Arc<dyn Disk>,
) -> Result<StateMachine, Failure> {
    let snapshots = Snapshots::open(disk, snapshots_of(options, clock.name()))?;
    let thread = System::current().arbiter().clone();
    let applier = Applier::new(thread, clock.clone(), tables.clone(), options);
    Ok(StateMachine::open(applier, snapshots).await?)
}

impl Starter {
    /// Returns the group with this number, and starts it if it is not running.
    pub(crate) async fn start(&self, group_number: GroupNumber) -> Result<Arc<Group>, OpenError> {
        let clock = self.tables.clock(group_number);
        if let Some(group) = self.groups.get(clock.name()) {
            return Ok(group);
        }
        let started = self.start_with(&clock).await;
        let failed = |source| OpenError::Group { group: clock.name().to_string(), source };
        Ok(self.groups.insert(clock.name().clone(), started.map_err(failed)?))
    }

    async fn start_with(&self, clock: &Arc<GroupClock>) -> Result<Group, Failure> {
        let Starter { options, tables, wal, id, peers, .. } = self;
        let machine = match self.applying.take().filter(|_| clock.group_number() == 0) {
            Some(applying) => applying.await??,
            None => open_machine(clock, options, tables, self.machine.disk.clone()).await?,
        };
        let node_options = NodeOptions {
            node: *id,
            group: wal.group(clock.name()),
            name: clock.name().clone(),
            wal: wal.clone(),
            peers: peers.clone(),
            machine,
            snapshot_log_bytes: options.snapshot_log_bytes,
            is_survivor: options.is_survivor,
            on_fatal: options.on_fatal.clone(),
            on_lost: self.on_lost.clone(),
        };
        let (node, proposals) = node_options.start().await?;
        let proposer: Addr<Proposer<Proposals>> = Proposer::new(proposals, clock.clone()).start();
        let (leads, led) = watch::channel(false);
        let genesis = clock.hybrid().now().max(options.above);
        tasks::detached_here("time", node.resting().clone().keep_time());
        tasks::detached_here("leadership", node.clone().follow_leadership(proposer.clone(), leads, genesis));
        let client = LeaderClient::new(node, *id, clock.clone(), proposer.clone(), peers.clone());
        clock.serve(match client.has_others() {
            true => Closer::new(client.clone()).start().recipient(),
            false => proposer.recipient(),
        });
        Ok(Group { reads: Reads::start(client.clone()), leader_client: client, leads: led })
    }
}
