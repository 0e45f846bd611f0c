//! One group on this replica.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix::Addr;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ClientWriteError, LinearizableReadError, RaftError};
use openraft::raft::ReadPolicy;
use openraft::{BasicNode, Config, Raft, SnapshotPolicy};
use tokio::sync::{Mutex, oneshot, watch};

use super::log_store::LogStore;
use super::network::Alone;
use super::state_machine::StateMachine;
use super::types::{Reaction, TypeConfig};
use crate::group::{Applier, Batch, Lead, Log, Proposer, Replies};
use crate::limits::{LEADER_TIMEOUT, SNAPSHOT_HELD_FACTOR};
use crate::snapshot::Snapshots;
use crate::wal::{GroupId, Wal};
use crate::{ReadError, Revision, WriteError};

type GroupRaft = Raft<TypeConfig, StateMachine>;

/// What a group is started with.
pub(crate) struct NodeOptions {
    pub(crate) node: u64,
    pub(crate) group: GroupId,
    pub(crate) name: Arc<str>,
    pub(crate) wal: Wal,
    pub(crate) applier: Applier,
    pub(crate) snapshots: Snapshots,
    pub(crate) snapshot_log_bytes: u64,
    /// Called when the group stops by itself, as it does when its storage fails.
    pub(crate) on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Why a group cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Storage(#[from] io::Error),
    #[error("the group cannot be started: {0}")]
    Raft(String),
}

fn refused(error: impl std::fmt::Display) -> StartError {
    StartError::Raft(error.to_string())
}

/// One group on this replica. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Node {
    node: u64,
    raft: GroupRaft,
    log: LogStore,
    snapshot_log_bytes: u64,
    /// Bytes appended when the last snapshot was begun, while none is being written.
    snapshot_at: Arc<Mutex<u64>>,
    stopping: Arc<AtomicBool>,
    on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

/// How a group is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStatus {
    /// Name of the group.
    pub name: String,
    /// The replica that leads it, when known.
    pub leader: Option<u64>,
    /// Its term.
    pub term: u64,
    /// Index of its last entry.
    pub last_index: u64,
    /// Index of the last entry that is known to be committed.
    pub commit_index: u64,
    /// Index of the last entry that is applied here.
    pub applied_index: u64,
    /// Index of the last entry that a snapshot includes.
    pub snapshot_index: u64,
}

impl Node {
    /// Starts a group: restores its newest snapshot and begins to follow its log.
    pub(crate) async fn start(options: NodeOptions) -> Result<(Node, Proposals), StartError> {
        let NodeOptions { node, group, name, wal, applier, snapshots, .. } = options;
        let config = Config {
            cluster_name: name.to_string(),
            heartbeat_interval: 500,
            election_timeout_min: 1_500,
            election_timeout_max: 3_000,
            max_payload_entries: 1_024,
            snapshot_policy: SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: 0,
            // A leader that restarts must be elected anew: else it might serve reads before it applied everything.
            enable_leader_restore: Some(false),
            enable_pre_vote: Some(true),
            ..Config::default()
        };
        let config = Arc::new(config.validate().map_err(refused)?);
        let log = LogStore::new(wal, group);
        let machine = StateMachine::open(applier, snapshots).await?;
        let raft = GroupRaft::new(node, config, Alone, log.clone(), machine).await.map_err(refused)?;
        let snapshot_log_bytes = options.snapshot_log_bytes;
        let proposals = Proposals { raft: raft.clone(), wal: log.wal().clone(), order: Arc::default() };
        let (snapshot_at, stopping, on_fatal) = (Arc::default(), Arc::default(), options.on_fatal);
        Ok((Node { node, raft, log, snapshot_log_bytes, snapshot_at, stopping, on_fatal }, proposals))
    }

    /// Makes this replica lead, when it is the only one; waits until it leads and has applied everything.
    pub(crate) async fn lead_alone(&self, genesis: Revision) -> Result<(), StartError> {
        if self.raft.is_initialized().await.map_err(refused)? {
            self.raft.trigger().elect(false).await.map_err(refused)?;
        } else {
            let members = BTreeMap::from([(self.node, BasicNode { addr: String::new() })]);
            self.raft.initialize(members).await.map_err(refused)?;
        }
        let node = self.node;
        let wait = self.raft.wait(Some(LEADER_TIMEOUT));
        wait.metrics(move |metrics| leads(metrics, node), "leads").await.map_err(refused)?;
        let base = self.raft.with_state_machine(|machine| Box::pin(async { machine.applier().base() })).await;
        if base.map_err(refused)? <= Revision::FIRST {
            self.raft.client_write(Batch::closing(genesis)).await.map_err(refused)?;
        }
        Ok(())
    }

    /// Tells the proposer whenever this replica begins or ceases to lead, until the group is shut down.
    pub(crate) async fn follow_leadership(self, proposer: Addr<Proposer<Proposals>>, ready: watch::Sender<bool>) {
        let mut server = self.raft.server_metrics();
        let mut term = None;
        loop {
            let (leader, current) = {
                let metrics = server.borrow_watched();
                (metrics.current_leader, metrics.vote.leader_id.term)
            };
            if leader == Some(self.node) && term != Some(current) {
                let node = self.node;
                let decided = move |metrics: &Metrics| leads(metrics, node) || metrics.current_leader != Some(node);
                let wait = self.raft.wait(Some(LEADER_TIMEOUT));
                if wait.metrics(decided, "applied its own entry").await.is_ok_and(|metrics| leads(&metrics, node)) {
                    let last = self.raft.with_state_machine(|machine| Box::pin(async { machine.applier().last() }));
                    let Ok(last) = last.await else { return };
                    term = Some(current);
                    let _ = proposer.send(Lead { above: Some(last), leader }).await;
                    let _ = ready.send(true);
                }
            } else if leader != Some(self.node) {
                term = None;
                let _ = proposer.send(Lead { above: None, leader }).await;
            }
            if server.changed().await.is_err() {
                break;
            }
        }
        if !self.stopping.load(Ordering::Acquire) {
            (self.on_fatal)("a group has stopped because its storage failed");
        }
    }

    /// A point up to which reads here are linearizable.
    pub(crate) async fn barrier(&self) -> Result<(), ReadError> {
        {
            // The only voter has acknowledged nothing that it has not applied: writes are answered after that.
            let metrics = self.raft.server_metrics();
            let metrics = metrics.borrow_watched();
            let mut voters = metrics.membership_config.voter_ids();
            if metrics.current_leader == Some(self.node) && voters.next() == Some(self.node) && voters.next().is_none()
            {
                return Ok(());
            }
        }
        match self.raft.ensure_linearizable(ReadPolicy::ReadIndex).await {
            Ok(_) => Ok(()),
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward))) => {
                Err(ReadError::NotLeader { leader: forward.leader_id })
            }
            Err(RaftError::APIError(_)) => Err(ReadError::Unavailable),
            Err(RaftError::Fatal(_)) => Err(ReadError::Closed),
        }
    }

    /// Drops history that nobody may ask for any more.
    pub(crate) async fn trim(&self, unix_ms: u64, now: Instant) {
        let trim = self.raft.external_state_machine_request(move |machine| {
            Box::pin(async move { machine.applier().trim(unix_ms, now) })
        });
        let _ = trim.await; // a group that is shut down has nothing to trim
    }

    /// Writes a snapshot when the log has grown enough since the last, and gives back the log before it. One that
    /// cannot be written, as on a full disk, is tried again later.
    pub(crate) async fn snapshot_when_due(&self) {
        let Ok(mut snapshot_at) = self.snapshot_at.try_lock() else { return };
        let appended = self.log.appended();
        // A group that is seldom written to must not keep the log of the others from being given back.
        let grown = (appended - *snapshot_at).max(self.log.held() / SNAPSHOT_HELD_FACTOR);
        if grown < self.snapshot_log_bytes {
            return;
        }
        let live = self.raft.with_state_machine(|machine| Box::pin(async { machine.applier().object_bytes() })).await;
        if live.is_ok_and(|live| grown >= live as u64) && self.snapshot().await.is_ok() {
            *snapshot_at = appended;
        }
    }

    async fn snapshot(&self) -> Result<(), StartError> {
        let started = Instant::now();
        let building = self.raft.with_state_machine(|machine| Box::pin(async { machine.capture() })).await;
        let building = building.map_err(refused)?;
        let written = tokio::task::spawn_blocking(move || building.write()).await.map_err(refused)?;
        let (meta, path) = written.inspect_err(|error| tracing::warn!(%error, "a snapshot could not be written"))?;
        let index = meta.last_log_id.map(|last| last.index());
        let announced = self.raft.with_state_machine(move |machine| Box::pin(async { machine.announce(meta, path) }));
        announced.await.map_err(refused)?;
        self.raft.trigger().snapshot().await.map_err(refused)?;
        if let Some(index) = index {
            let built = self.raft.wait(Some(Duration::from_secs(10)));
            let known = move |metrics: &Metrics| metrics.snapshot.is_some_and(|snapshot| snapshot.index() >= index);
            built.metrics(known, "knows the snapshot").await.map_err(refused)?;
            self.raft.trigger().purge_log(index).await.map_err(refused)?;
        }
        tracing::info!(index, elapsed_ms = started.elapsed().as_millis() as u64, "wrote a snapshot");
        Ok(())
    }

    pub(crate) fn status(&self, name: &str) -> GroupStatus {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let index = |id: Option<super::types::LogIdentity>| id.map_or(0, |id| id.index());
        GroupStatus {
            name: name.to_owned(),
            leader: metrics.current_leader,
            term: metrics.current_term,
            last_index: metrics.last_log_index.unwrap_or(0),
            commit_index: index(metrics.local_committed),
            applied_index: index(metrics.last_applied),
            snapshot_index: index(metrics.snapshot),
        }
    }

    /// Whether the group has a leader and this replica takes part.
    pub(crate) fn is_led(&self) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        metrics.running_state.is_ok() && metrics.current_leader.is_some()
    }

    pub(crate) async fn shutdown(&self) {
        self.stopping.store(true, Ordering::Release);
        let _ = self.raft.shutdown().await;
    }
}

type Metrics = openraft::RaftMetrics<TypeConfig>;

/// Whether a node leads and has applied an entry of its term, and with it everything before.
fn leads(metrics: &Metrics, node: u64) -> bool {
    let applied = metrics.last_applied.as_ref().map(|applied| applied.committed_leader_id().term);
    metrics.state.is_leader() && metrics.current_leader == Some(node) && applied == Some(metrics.current_term)
}

/// Proposes batches to a group.
pub(crate) struct Proposals {
    raft: GroupRaft,
    wal: Wal,
    /// Batches are proposed in the order of their revisions, also when one has to wait for room.
    order: Arc<Mutex<()>>,
}

impl Log for Proposals {
    fn propose(&mut self, batch: Batch, replies: Replies) -> impl Future<Output = ()> + 'static {
        let (raft, wal, order) = (self.raft.clone(), self.wal.clone(), self.order.clone());
        async move {
            let (done, decided) = oneshot::channel();
            let in_order = order.lock().await;
            let reservation = match wal.reserve(batch.bytes()).await {
                Ok(reservation) => reservation,
                Err(_) => return replies.fail(WriteError::NoSpace),
            };
            let reaction = Reaction(Box::new(move |result| {
                match result {
                    Ok(response) => {
                        let response: openraft::raft::ClientWriteResponse<TypeConfig> = response;
                        replies.outcomes(response.data.0);
                    }
                    Err(ClientWriteError::ForwardToLeader(forward)) => {
                        replies.fail(WriteError::NotLeader { leader: forward.leader_id });
                    }
                    Err(_) => replies.fail(WriteError::Unknown),
                }
                drop(reservation);
                let _ = done.send(());
            }));
            // When the group is shut down the reaction is dropped, and with it the replies: the outcome is unknown.
            let _ = raft.client_write_ff(batch, Some(reaction)).await;
            drop(in_order);
            let _ = decided.await;
        }
    }
}
