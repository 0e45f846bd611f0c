//! One group on this replica.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use actix::Addr;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{LinearizableReadError, RaftError};
use openraft::raft::ReadPolicy;
use openraft::{Membership, Raft};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::acknowledged::Acknowledged;
use super::addresses::Addresses;
use super::config::config;
use super::exclusion::Excluded;
use super::log_store::LogStore;
use super::network::Network;
use super::proposals::Proposals;
use super::snapshot_sending::Receiver;
use super::snapshotting::Due;
use super::state_machine::StateMachine;
use super::status::Member;
use super::survival;
use super::types::{LeaderId, Replica, TypeConfig, log_ref};
use crate::group::{Applier, Batch, Latest, Lead, Proposer};
use crate::limits::{LEADER_BEGIN_INTERVAL, LEADER_TIMEOUT, OPENING_PROGRESS_INTERVAL, SNAPSHOT_SPARE_SEGMENTS};
use crate::peer::Peers;
use crate::progress::Progress;
use crate::snapshot::Snapshots;
use crate::wal::{GroupId, Wal};
use crate::{ReadError, Revision};

pub(super) type GroupRaft = Raft<TypeConfig, StateMachine>;

/// What a group is started with.
pub(crate) struct NodeOptions {
    pub(crate) node: u64,
    pub(crate) group: GroupId,
    pub(crate) name: Arc<str>,
    pub(crate) wal: Wal,
    /// How other replicas are reached; none when there are to be none.
    pub(crate) peers: Option<Arc<dyn Peers>>,
    pub(crate) applier: Applier,
    pub(crate) snapshots: Snapshots,
    pub(crate) snapshot_log_bytes: u64,
    /// Whether this replica goes on alone, whatever the log says of others.
    pub(crate) is_survivor: bool,
    /// Called when the group stops by itself, as it does when its storage fails.
    pub(crate) on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
    /// Called when this replica finds that it has lost what it acknowledged.
    pub(crate) on_lost: Arc<dyn Fn() + Send + Sync>,
}

/// Why a group cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Storage(#[from] io::Error),
    #[error("the snapshot that the log goes on after is missing; restore the data directory from a backup")]
    NoSnapshot,
    #[error("the group cannot be started: {0}")]
    Raft(String),
}

pub(super) fn refused(error: impl std::fmt::Display) -> StartError {
    StartError::Raft(error.to_string())
}

/// One group on this replica. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Node {
    pub(super) node: u64,
    name: Arc<str>,
    pub(super) raft: GroupRaft,
    /// Where snapshots that the leader sends come in.
    pub(super) receiver: Receiver,
    pub(super) peers: Option<Arc<dyn Peers>>,
    /// Where this replica was told that it is no member.
    pub(super) excluded: Excluded,
    pub(super) log: LogStore,
    /// What is known to be assigned, in any group.
    pub(super) latest: Latest,
    /// Index of the last entry that is applied.
    applied: watch::Receiver<u64>,
    /// The term in which this replica leads and has applied all that was in the log before; zero when it does not.
    tenure: Arc<AtomicU64>,
    pub(super) snapshot_log_bytes: u64,
    /// What the next snapshot waits for; locked while one is being written.
    pub(super) snapshot_due: Arc<Mutex<Due>>,
    pub(super) stopping: Arc<AtomicBool>,
    on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
    pub(super) on_lost: Arc<dyn Fn() + Send + Sync>,
    addresses: Addresses,
}

impl Node {
    /// Starts a group: restores its newest snapshot and begins to follow its log.
    pub(crate) async fn start(options: NodeOptions) -> Result<(Node, Proposals), StartError> {
        let NodeOptions { node, group, name, wal, peers, applier, snapshots, .. } = options;
        let config = Arc::new(config(&name, peers.is_some()).validate().map_err(refused)?);
        let receiver = Receiver::new(snapshots.clone(), SNAPSHOT_SPARE_SEGMENTS * wal.segment_bytes());
        let log = LogStore::new(wal, group);
        let latest = applier.latest().clone();
        let machine = StateMachine::open(applier, snapshots).await?;
        let applied = machine.progress();
        if log.state().purged.is_some_and(|purged| purged.index > *applied.borrow()) {
            return Err(StartError::NoSnapshot);
        }
        if let Some(last) = machine.last() {
            log.follow_snapshot(log_ref(&last)).await?;
        }
        log.last_revision()?.into_iter().for_each(|last| latest.learn(last));
        if options.is_survivor {
            survival::be_alone(&log, &machine, node).await?;
        }
        let (excluded, rest, addresses) = (Excluded::default(), log.rest().clone(), Addresses::default());
        let network = Network {
            peers: peers.clone(),
            group: name.clone(),
            node,
            excluded: excluded.clone(),
            rest,
            acknowledged: Acknowledged::default(),
            addresses: addresses.clone(),
        };
        let raft = GroupRaft::new(node, config, network, log.clone(), machine).await.map_err(refused)?;
        let snapshot_log_bytes = options.snapshot_log_bytes;
        let (snapshot_due, stopping) = (Arc::default(), Arc::default());
        let (on_fatal, on_lost) = (options.on_fatal, options.on_lost);
        let tenure = Arc::default();
        let node = Node {
            node,
            name,
            raft,
            receiver,
            peers,
            excluded,
            log,
            latest,
            applied,
            tenure,
            snapshot_log_bytes,
            snapshot_due,
            stopping,
            on_fatal,
            on_lost,
            addresses,
        };
        let proposals = Proposals::new(node.clone());
        Ok((node, proposals))
    }

    /// Id of this replica.
    pub(crate) fn id(&self) -> u64 {
        self.node
    }

    /// Name of the group.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether another replica has a connection with this one.
    pub(crate) fn is_reachable(&self, member: u64) -> bool {
        self.peers.as_ref().is_some_and(|peers| peers.is_reachable(member))
    }

    /// Whether another replica may be given the group to lead: there is a connection with it, and it is not drained.
    pub(crate) fn may_lead(&self, member: u64) -> bool {
        self.peers.as_ref().is_some_and(|peers| peers.is_reachable(member) && !peers.is_drained(member))
    }

    /// Whether a majority has room for more in the log, as far as the others have said that they lack it. Whether this
    /// replica has it shows when it is reserved.
    pub(crate) fn can_grow(&self) -> bool {
        let is_full = |voter| self.peers.as_ref().is_some_and(|peers| peers.is_full(voter));
        self.is_quorum(|voter| voter == self.node || !is_full(voter))
    }

    /// Whether the disk of this replica has room for what leaders write.
    pub(crate) fn has_room(&self) -> bool {
        !*self.log.wal().lacks_room().borrow()
    }

    /// Whether the group has members, as far as this replica knows.
    pub(crate) async fn is_formed(&self) -> bool {
        self.raft.is_initialized().await.unwrap_or(false)
    }

    /// Forms the group of these members, this one among them, and stands for election. One that is formed already is
    /// left as it is, unless this replica is alone in it.
    pub(crate) async fn form(&self, members: BTreeMap<u64, Replica>) -> Result<(), StartError> {
        if self.is_formed().await {
            self.stand_if_alone().await;
            return Ok(());
        }
        self.raft.initialize(members).await.map_err(refused)
    }

    /// Lets this replica stand for election at once if it is the only member: nobody else can lead, and nobody's lease
    /// needs to be waited for.
    pub(crate) async fn stand_if_alone(&self) {
        if self.is_alone() && self.leader().is_none() {
            let _ = self.raft.trigger().elect(false).await; // a group that is shut down has no elections
        }
    }

    /// Waits until everything is applied that was known to be committed when the log was opened.
    pub(crate) async fn recovered(&self) {
        let committed = self.log.committed().unwrap_or_default();
        let what = "applying the entries of the write-ahead log";
        let mut progress = Progress::of(what, committed, OPENING_PROGRESS_INTERVAL);
        while tokio::time::timeout(OPENING_PROGRESS_INTERVAL, self.reached(committed)).await.is_err() {
            progress.at(*self.applied.borrow());
        }
    }

    /// The ids and descriptions of all members that this replica knows of, and whether each has a vote.
    pub(crate) fn members(&self) -> Vec<Member> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        described(metrics.membership_config.membership())
    }

    /// The members as the log has them now, which [`Node::members`] may tell a moment later. None when the group is
    /// shut down.
    pub(crate) async fn members_in_log(&self) -> Option<Vec<Member>> {
        self.raft.with_raft_state(|state| described(state.membership_state.effective().membership())).await.ok()
    }

    /// The ids of those that have a vote.
    pub(crate) fn voters(&self) -> Vec<u64> {
        self.raft.voter_ids().collect()
    }

    /// Tells the proposer whenever this replica begins or ceases to lead, until the group is shut down. A leader that
    /// finds the group without a past begins it at `genesis`.
    pub(crate) async fn follow_leadership(
        self,
        proposer: Addr<Proposer<Proposals>>,
        leads: watch::Sender<bool>,
        genesis: Revision,
    ) {
        let mut server = self.raft.server_metrics();
        let mut term = None;
        loop {
            let (leader, current) = {
                let metrics = server.borrow_watched();
                self.addresses.learn(metrics.membership_config.membership().nodes());
                (metrics.current_leader, metrics.vote.leader_id.term)
            };
            if leader == Some(self.node) && term != Some(current) {
                term = None;
                self.tenure.store(0, Ordering::Release);
                if let Some((above, begun)) = self.begin_to_lead(genesis).await {
                    term = Some(begun);
                    let _ = proposer.send(Lead { above: Some(above), leader, term: begun }).await;
                    self.tenure.store(begun, Ordering::Release);
                    leads.send_replace(true);
                }
            } else if leader != Some(self.node) {
                term = None;
                self.tenure.store(0, Ordering::Release);
                leads.send_replace(false);
                let _ = proposer.send(Lead { above: None, leader, term: 0 }).await;
            }
            // That a leader has applied what it must is told by no change of these metrics.
            let is_beginning = leader == Some(self.node) && term.is_none();
            let pause = if is_beginning { LEADER_BEGIN_INTERVAL } else { Duration::MAX };
            if let Ok(Err(_)) = tokio::time::timeout(pause, server.changed()).await {
                break;
            }
        }
        if !self.stopping.load(Ordering::Acquire) {
            (self.on_fatal)("a group has stopped because its storage failed");
        }
    }

    /// The term in which this replica leads, as far as it knows, having applied all that was acknowledged before it
    /// did.
    pub(crate) fn tenure(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.tenure.load(Ordering::Acquire))
    }

    /// Waits until everything is applied that was in the log before this replica began to lead; the largest revision
    /// of it, and the term. None when it does not lead after all.
    async fn begin_to_lead(&self, genesis: Revision) -> Option<(Revision, u64)> {
        let node = self.node;
        let decided = move |metrics: &Metrics| {
            leads(metrics, node) || metrics.current_leader != Some(node) || seeded!(HastyLeader)
        };
        let wait = self.raft.wait(Some(LEADER_TIMEOUT));
        let metrics = wait.metrics(decided, "applied its own entry").await.ok()?;
        if !leads(&metrics, node) && !seeded!(HastyLeader) {
            return None;
        }
        let base = self.raft.with_state_machine(|machine| Box::pin(async { machine.applier().base() })).await;
        if base.ok()? <= Revision::FIRST {
            self.raft.client_write(Batch::closing(genesis)).await.ok()?;
        }
        let last = self.raft.with_state_machine(|machine| Box::pin(async { machine.applier().last() })).await;
        Some((last.ok()?, metrics.current_term))
    }

    /// Who leads, as far as this replica knows.
    pub(crate) fn leader(&self) -> Option<u64> {
        self.raft.server_metrics().borrow_watched().current_leader
    }

    /// Who leads, in which term, and its address, as soon as this replica knows all of that: one that was just admitted
    /// hears of the leader before it has the log that says where that is. None when the group is shut down.
    pub(crate) async fn leader_located(&self) -> Option<(u64, u64, String)> {
        let mut server = self.raft.server_metrics();
        loop {
            let located = {
                let metrics = server.borrow_watched();
                let replica = |leader| metrics.membership_config.membership().get_node(&leader);
                let leader = metrics.current_leader.and_then(|leader| Some((leader, replica(leader)?)));
                leader.map(|(leader, replica)| (leader, metrics.vote.leader_id.term, replica.address.clone()))
            };
            if located.is_some() {
                return located;
            }
            server.changed().await.ok()?;
        }
    }

    /// The member's address, as the log has it.
    pub(crate) fn address(&self, member: u64) -> Option<String> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        metrics.membership_config.membership().get_node(&member).map(|replica| replica.address.clone())
    }

    /// Waits until somebody else leads than now, or somebody at all. False when the group is shut down.
    pub(crate) async fn leader_changed(&self) -> bool {
        let mut server = self.raft.server_metrics();
        let known = server.borrow_watched().current_leader;
        while server.changed().await.is_ok() {
            if server.borrow_watched().current_leader != known {
                return true;
            }
        }
        false
    }

    /// Whether this replica leads and is the only one that votes: then it has acknowledged nothing that it has not
    /// applied. Writes are answered after that, and those from before a restart precede the entry of its own that a
    /// leader has applied.
    pub(crate) fn leads_alone(&self) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let mut voters = metrics.membership_config.voter_ids();
        leads(&metrics, self.node) && voters.next() == Some(self.node) && voters.next().is_none()
    }

    /// The index up to which a replica must have applied the log for its reads to be linearizable: a quorum confirms
    /// that this replica leads.
    pub(crate) async fn read_index(&self) -> Result<u64, ReadError> {
        self.rest().stir();
        if seeded!(LeaseRead) && self.leader() == Some(self.node) {
            return Ok(*self.applied.borrow());
        }
        match self.raft.get_read_linearizer(ReadPolicy::ReadIndex).await {
            Ok(linearizer) => Ok(linearizer.read_log_id().index()),
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward))) => {
                Err(ReadError::NotLeader { leader: forward.leader_id })
            }
            Err(RaftError::APIError(_)) => Err(ReadError::Unavailable),
            Err(RaftError::Fatal(_)) => Err(ReadError::Closed),
        }
    }

    /// Waits until the log is applied here up to an index.
    pub(crate) async fn reached(&self, index: u64) -> Result<(), ReadError> {
        match self.applied.clone().wait_for(|applied| *applied >= index).await {
            Ok(_) => Ok(()),
            Err(_) => Err(ReadError::Closed),
        }
    }

    /// Drops history that nobody may ask for any more.
    pub(crate) async fn trim(&self, now: Instant) {
        let trim = self
            .raft
            .external_state_machine_request(move |machine| Box::pin(async move { machine.applier().trim(now) }));
        let _ = trim.await; // a group that is shut down has nothing to trim
    }

    pub(crate) async fn shutdown(&self) {
        self.stopping.store(true, Ordering::Release);
        let _ = self.raft.shutdown().await;
    }
}

/// The members, as people are told of them.
pub(super) fn described(membership: &Membership<u64, Replica>) -> Vec<Member> {
    let voters: BTreeSet<u64> = membership.voter_ids().collect();
    let member = |(id, replica): (&u64, &Replica)| Member {
        id: *id,
        name: replica.name.clone(),
        address: replica.address.clone(),
        votes: voters.contains(id),
    };
    membership.nodes().map(member).collect()
}

pub(super) type Metrics = openraft::RaftMetrics<TypeConfig>;

/// Whether a node leads and has applied an entry of its term, and with it everything before.
fn leads(metrics: &Metrics, node: u64) -> bool {
    let own = LeaderId { term: metrics.current_term, node_id: node };
    let applied = metrics.last_applied.as_ref().map(|applied| *applied.committed_leader_id());
    metrics.state.is_leader() && metrics.current_leader == Some(node) && applied == Some(own)
}
