//! One Raft group on this replica.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use actix::Addr;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{LinearizableReadError, RaftError};
use openraft::raft::ReadPolicy;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::addresses::Addresses;
use super::exclusion::Excluded;
use super::log_store::LogStore;
use super::proposals::Proposals;
use super::snapshot_receiving::Receiver;
use super::snapshotting::SnapshotCondition;
use super::state_machine::GroupRaft;
use super::status::{Member, described};
use super::types::{LeaderId, Metrics};
use crate::clock::GroupClock;
use crate::entry::Batch;
use crate::group::{Lead, Proposer};
use crate::limits::{LEADER_BEGIN_INTERVAL, LEADER_TIMEOUT};
use crate::peer::Peers;
use crate::{ReadError, Revision};

/// One Raft group on this replica. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Node {
    pub(super) node: u64,
    pub(super) name: Arc<str>,
    pub(super) raft: GroupRaft,
    /// Receives the snapshots that the leader sends.
    pub(super) receiver: Receiver,
    pub(super) peers: Option<Arc<dyn Peers>>,
    /// Set when this replica is told that it is not a member.
    pub(super) excluded: Excluded,
    pub(super) log: LogStore,
    /// The clock with the closed revision of the group.
    pub(super) clock: Arc<GroupClock>,
    /// The index of the last entry that is applied.
    pub(super) applied: watch::Receiver<u64>,
    /// The term in which this replica leads and has applied everything before its election; zero when there is none.
    pub(super) tenure: Arc<AtomicU64>,
    pub(super) snapshot_log_bytes: u64,
    /// The condition for the next snapshot; locked while one is being written.
    pub(super) snapshot_due: Arc<Mutex<SnapshotCondition>>,
    pub(super) stopping: Arc<AtomicBool>,
    pub(super) on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
    pub(super) on_lost: Arc<dyn Fn() + Send + Sync>,
    pub(super) addresses: Addresses,
}

impl Node {
    /// Returns the id of this replica.
    pub(crate) fn id(&self) -> u64 {
        self.node
    }

    /// Returns the name of the group.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns whether another replica is connected to this one.
    pub(crate) fn is_reachable(&self, member: u64) -> bool {
        self.peers.as_ref().is_some_and(|peers| peers.is_reachable(member))
    }

    /// Returns whether this replica and another one are connected in both directions.
    pub(crate) fn is_connected_both_ways(&self, member: u64) -> bool {
        let contacts = self.peers.as_ref().and_then(|peers| peers.contacts().get(&member).copied());
        contacts.is_some_and(|contacts| contacts.outgoing.is_some() && contacts.incoming.is_some())
    }

    /// Returns whether another replica may be given leadership: it is connected and not drained.
    pub(crate) fn may_lead(&self, member: u64) -> bool {
        self.peers.as_ref().is_some_and(|peers| peers.is_reachable(member) && !peers.is_drained(member))
    }

    /// Returns whether a majority has room for more entries, as far as other replicas have announced a lack of room.
    /// This replica counts as having room: if it has none, reserving room fails.
    pub(crate) fn can_grow(&self) -> bool {
        let is_full = |voter| self.peers.as_ref().is_some_and(|peers| peers.is_full(voter));
        self.is_quorum(|voter| voter == self.node || !is_full(voter))
    }

    /// Returns whether the disk of this replica has room for what leaders write.
    pub(crate) fn has_room(&self) -> bool {
        !*self.log.wal().lacks_room().borrow()
    }

    /// Returns all members that this replica knows of.
    pub(crate) fn members(&self) -> Vec<Member> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        described(metrics.membership_config.membership())
    }

    /// Returns the ids of all members that this replica knows of.
    pub(super) fn member_ids(&self) -> Vec<u64> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        metrics.membership_config.membership().nodes().map(|(id, _)| *id).collect()
    }

    /// Returns the members that are set at the end of the log, which [`Node::members`] may return only a moment later.
    /// `None` when the group is shut down.
    pub(crate) async fn members_in_log(&self) -> Option<Vec<Member>> {
        self.raft.with_raft_state(|state| described(state.membership_state.effective().membership())).await.ok()
    }

    /// Returns the ids of the voters.
    pub(crate) fn voters(&self) -> Vec<u64> {
        self.raft.voter_ids().collect()
    }

    /// Tells the proposer whenever this replica starts or stops leading, until the group is shut down. A leader of a
    /// group without history lets it begin at `genesis`.
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
            // These metrics do not change when the leader has applied its first entry, so they are read again after a
            // pause.
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

    /// Returns the term in which this replica leads, as far as it knows, and has applied everything acknowledged before
    /// its election. `None` otherwise.
    pub(crate) fn tenure(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.tenure.load(Ordering::Acquire))
    }

    /// Waits until everything before this replica's election is applied. Returns the largest revision until then, and
    /// the term. Returns `None` when this replica does not lead after all.
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

    /// Returns the id of the leader, as far as this replica knows.
    pub(crate) fn leader(&self) -> Option<u64> {
        self.raft.server_metrics().borrow_watched().current_leader
    }

    /// Waits until the leader and its address are known; returns its id, the term and the address. A replica that was
    /// just admitted hears from the leader before it has the log entry with its address. `None` when the group is shut
    /// down.
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

    /// Returns the member's address according to the log.
    pub(crate) fn address(&self, member: u64) -> Option<String> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        metrics.membership_config.membership().get_node(&member).map(|replica| replica.address.clone())
    }

    /// Waits until the leader changes. Returns false when the group is shut down.
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

    /// Returns whether this replica leads and is the only voter. It has then applied everything that it has
    /// acknowledged: writes are answered only once they are applied, and those from before a restart precede the
    /// leader's own entry, which it has applied.
    pub(crate) fn leads_alone(&self) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let mut voters = metrics.membership_config.voter_ids();
        leads(&metrics, self.node) && voters.next() == Some(self.node) && voters.next().is_none()
    }

    /// Returns the index up to which a replica must have applied the log for its reads to be linearizable, after a
    /// quorum has confirmed that this replica leads.
    pub(crate) async fn read_index(&self) -> Result<u64, ReadError> {
        self.rest().note_event();
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

    /// Waits until the log is applied here up to an index. Fails when the group is shut down.
    pub(crate) async fn reached(&self, index: u64) -> Result<(), ReadError> {
        match self.applied.clone().wait_for(|applied| *applied >= index).await {
            Ok(_) => Ok(()),
            Err(_) => Err(ReadError::Closed),
        }
    }

    /// Drops history that no client may ask for any more.
    pub(crate) async fn trim(&self, now: Instant) {
        let trim = self
            .raft
            .external_state_machine_request(move |machine| Box::pin(async move { machine.applier().trim(now) }));
        let _ = trim.await; // fails only when the group is shut down
    }

    pub(crate) async fn shutdown(&self) {
        self.stopping.store(true, Ordering::Release);
        let _ = self.raft.shutdown().await;
    }
}

/// Returns whether a node leads and has applied an entry of its term, and with it everything before.
fn leads(metrics: &Metrics, node: u64) -> bool {
    let own = LeaderId { term: metrics.current_term, node_id: node };
    let applied = metrics.last_applied.as_ref().map(|applied| *applied.committed_leader_id());
    metrics.state.is_leader() && metrics.current_leader == Some(node) && applied == Some(own)
}
