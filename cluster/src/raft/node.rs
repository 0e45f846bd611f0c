//! One Raft group on this replica.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::Addr;
use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use tokio::sync::watch;
use tokio::time::Instant;

use super::administration::Administration;
use super::connections::Connections;
use super::exclusion::Exclusion;
use super::formation::Formation;
use super::leadership::Leadership;
use super::log_store::LogStore;
use super::promises::Promises;
use super::proposals::Proposals;
use super::reading::Reading;
use super::rest::Phase;
use super::resting::Resting;
use super::roster::Roster;
use super::service::Service;
use super::snapshotting::Snapshotting;
use super::state_machine::GroupRaft;
use super::status::GroupStatus;
use super::tenure::Tenure;
use crate::Revision;
use crate::group::Proposer;
use crate::limits::QUORUM_SILENCE_MAX;

/// Tells the clock which members may lead: the members of these groups, which must be all groups of this replica.
pub(crate) fn know_members(nodes: &[Node]) {
    if let Some(clock) = nodes.first().map(|node| node.0.promises.clock().hybrid()) {
        clock.set_members(&nodes.iter().flat_map(|node| node.0.roster.member_ids()).collect());
    }
}

/// One Raft group on this replica. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Node(Arc<Parts>);

/// The parts of a group on this replica, each with its own subject.
pub(super) struct Parts {
    pub(super) name: Arc<str>,
    pub(super) raft: GroupRaft,
    pub(super) log: LogStore,
    pub(super) roster: Roster,
    pub(super) connections: Connections,
    pub(super) exclusion: Exclusion,
    pub(super) resting: Resting,
    pub(super) tenure: Tenure,
    pub(super) formation: Formation,
    pub(super) leadership: Leadership,
    pub(super) administration: Administration,
    pub(super) reading: Reading,
    pub(super) promises: Promises,
    pub(super) snapshots: Snapshotting,
    pub(super) service: Service,
    pub(super) stopping: AtomicBool,
    pub(super) on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Node {
    pub(super) fn new(parts: Parts) -> Node {
        Node(Arc::new(parts))
    }

    /// Returns the id of this replica.
    pub(crate) fn id(&self) -> u64 {
        self.0.roster.own()
    }

    /// Returns the name of the group.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// Returns the members of the group and its leader, as far as this replica knows.
    pub(crate) fn roster(&self) -> &Roster {
        &self.0.roster
    }

    /// Returns the connections to the group's other replicas.
    pub(crate) fn connections(&self) -> &Connections {
        &self.0.connections
    }

    /// Returns the part that knows whether this replica is a member.
    pub(crate) fn exclusion(&self) -> &Exclusion {
        &self.0.exclusion
    }

    /// Returns the rest of the group and its timers.
    pub(crate) fn resting(&self) -> &Resting {
        &self.0.resting
    }

    /// Returns the part that forms the group.
    pub(crate) fn formation(&self) -> &Formation {
        &self.0.formation
    }

    /// Returns the leadership of the group.
    pub(crate) fn leadership(&self) -> &Leadership {
        &self.0.leadership
    }

    /// Returns the part that changes the members.
    pub(crate) fn administration(&self) -> &Administration {
        &self.0.administration
    }

    /// Returns the part that knows how far the log must be applied before the group can be read.
    pub(crate) fn reading(&self) -> &Reading {
        &self.0.reading
    }

    /// Returns the promises of other members about revisions.
    pub(crate) fn promises(&self) -> &Promises {
        &self.0.promises
    }

    /// Returns the part that writes the snapshots of the group.
    pub(crate) fn snapshots(&self) -> &Snapshotting {
        &self.0.snapshots
    }

    /// Returns the part that answers the other replicas.
    pub(crate) fn service(&self) -> &Service {
        &self.0.service
    }

    #[cfg(test)]
    pub(super) fn log(&self) -> &LogStore {
        &self.0.log
    }

    /// Returns whether the disk of this replica has room for the log of a leader.
    pub(crate) fn has_room(&self) -> bool {
        !*self.0.log.wal().lacks_room().borrow()
    }

    /// Tells the proposer whenever this replica starts or stops leading, until the group is shut down. A leader of a
    /// group without history lets it begin at `genesis`.
    pub(crate) async fn follow_leadership(
        self,
        proposer: Addr<Proposer<Proposals>>,
        leads: watch::Sender<bool>,
        genesis: Revision,
    ) {
        self.0.tenure.follow(proposer, leads, genesis).await;
        if !self.is_stopping() {
            (self.0.on_fatal)("a group has stopped because its storage failed");
        }
    }

    /// Returns the term in which this replica leads, as far as it knows, and has applied everything acknowledged before
    /// its election. `None` otherwise.
    pub(crate) fn tenure(&self) -> Option<NonZeroU64> {
        self.0.tenure.current()
    }

    pub(crate) fn status(&self, name: &str) -> GroupStatus {
        let is_led = self.is_led(); // before `metrics` below, which holds the same lock
        let metrics = self.0.raft.metrics();
        let metrics = metrics.borrow_watched();
        let rests = matches!(self.0.resting.rest().phase(), Phase::Leading | Phase::Following { .. });
        GroupStatus::new(name, &metrics, self.id(), rests, is_led)
    }

    /// Returns whether the group has a leader and this replica takes part. If this replica leads, a majority must have
    /// acknowledged that lately. If it follows, it and the leader must be connected in both directions: a replica that
    /// was cut off would go on believing in the old leader, and one that the leader cannot call gets no entries.
    pub(crate) fn is_led(&self) -> bool {
        let metrics = self.0.raft.metrics();
        let metrics = metrics.borrow_watched();
        let is_alone = || metrics.membership_config.voter_ids().nth(1).is_none();
        // A majority that rests sends no acknowledgements and is still there. One that was just woken has yet to send
        // them.
        let is_followed = || {
            let acked =
                metrics.last_quorum_acked.is_some_and(|acked| acked.into_inner().elapsed() < QUORUM_SILENCE_MAX);
            acked
                || self.0.resting.rest().phase() != Phase::Awake
                || self.0.resting.rest().woke().elapsed() < QUORUM_SILENCE_MAX
        };
        let is_led = match metrics.current_leader {
            Some(leader) if leader != self.0.roster.own() => self.0.connections.is_connected_both_ways(leader),
            Some(_) => is_alone() || is_followed(),
            None => false,
        };
        metrics.running_state.is_ok() && is_led
    }

    /// Drops history that no client may ask for any more.
    pub(crate) async fn trim(&self, now: Instant) {
        let trim = self
            .0
            .raft
            .external_state_machine_request(move |machine| Box::pin(async move { machine.applier().trim(now) }));
        let _ = trim.await; // fails only when the group is shut down
    }

    /// Returns whether the group is being shut down.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Acquire)
    }

    pub(crate) async fn shutdown(&self) {
        self.0.stopping.store(true, Ordering::Release);
        let _ = self.0.raft.shutdown().await;
    }
}
