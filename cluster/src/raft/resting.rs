//! Decides when a group rests on this replica, and when it wakes.

use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_proto::replication as message;
use futures_util::FutureExt;
use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use openraft::raft::ReadPolicy;
use tokio::time::{Instant, sleep};

use super::exclusion::Exclusion;
use super::rest::{Phase, Rest};
use super::roster::Roster;
use super::state_machine::GroupRaft;
use super::wire;
use crate::limits::{EXCLUDED_INTERVAL, HEARTBEAT_INTERVAL, REST_AFTER, REST_WAKING};
use crate::peer::peer_view::PeerView;

/// A group whose leader wants it to rest.
pub(crate) struct RestProposal {
    /// The request to the others.
    pub(crate) resting: message::Resting,
    /// The members to ask: all that can be called, by id, with their addresses.
    pub(crate) members: BTreeMap<u64, String>,
    events: u64,
}

/// The rest of a group on this replica, and its timers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Resting {
    name: Arc<str>,
    raft: GroupRaft,
    rest: Arc<Rest>,
    roster: Roster,
    exclusion: Exclusion,
}

impl Resting {
    pub(super) fn new(
        name: Arc<str>,
        raft: GroupRaft,
        rest: Arc<Rest>,
        roster: Roster,
        exclusion: Exclusion,
    ) -> Resting {
        Resting { name, raft, rest, roster, exclusion }
    }

    pub(super) fn rest(&self) -> &Rest {
        &self.rest
    }

    /// Lets openraft's election timer run only while this replica would have to notice a missing leader, until the
    /// group is shut down. Leaders send heartbeats by [`Resting::beat`] instead. A replica that is not a member needs
    /// no leader, and asks now and then whether it has become one.
    pub(crate) async fn keep_time(self) {
        let mut server = self.raft.server_metrics();
        let mut follows = self.rest.follows();
        let mut excluded = self.exclusion.told();
        loop {
            let leads = server.borrow_watched().current_leader == Some(self.roster.own());
            let rests = *follows.borrow_and_update();
            excluded.mark_unchanged();
            let is_excluded = self.exclusion.is_excluded();
            self.raft.runtime_config().tick(!leads && !rests && !is_excluded);
            tokio::select! {
                biased;
                changed = server.changed() => if changed.is_err() { return },
                _ = follows.changed() => {}
                _ = excluded.changed() => {}
                () = sleep(EXCLUDED_INTERVAL), if is_excluded => self.stand_if_others_would_vote().await,
            }
        }
    }

    /// Makes a majority confirm that this replica leads, if the group rested until now: before that openraft takes no
    /// entries.
    pub(super) async fn wake(&self) {
        if self.rest.phase() == Phase::Awake && self.rest.woke().elapsed() > REST_WAKING {
            return;
        }
        self.rest.note_event();
        let acked = self.raft.metrics().borrow_watched().last_quorum_acked;
        if acked.is_none_or(|acked| acked.into_inner().elapsed() >= HEARTBEAT_INTERVAL) {
            // If the leader cannot be confirmed, the next operation fails and states the reason.
            let _ = self.raft.get_read_linearizer(ReadPolicy::ReadIndex).await;
        }
    }

    /// Sends heartbeats, if this replica leads and the group is awake.
    pub(crate) fn beat(&self) {
        if self.roster.leader() == Some(self.roster.own()) && self.rest.phase() == Phase::Awake {
            // A heartbeat that cannot be queued at once is skipped: then so much else is sent that no replica misses
            // this leader.
            let _ = self.raft.trigger().heartbeat().now_or_never();
        }
    }

    /// Handles a change of the reachable replicas: wakes the group if the change concerns it.
    pub(crate) fn peers_changed(&self, view: &PeerView) {
        match self.rest.phase() {
            Phase::Awake => {}
            // A member that comes back may lack entries, and one that goes may leave no majority.
            Phase::AskingOthers | Phase::Leading => self.rest.note_event(),
            Phase::Following { leader, connection } if view.incoming_connection(leader) != Some(connection) => {
                self.rest.note_event()
            }
            Phase::Following { .. } => {}
        }
    }

    /// Stops sending heartbeats if the group can rest: this replica leads, nothing has happened for a while, nothing is
    /// in progress, and all members that can be called have every entry and are a majority. Returns the request to the
    /// others; `None` when the group cannot rest.
    pub(crate) fn begin_rest(&self, view: &PeerView, now: Instant) -> Option<RestProposal> {
        let rest = &self.rest;
        if self.roster.leader() != Some(self.roster.own())
            || rest.phase() != Phase::Awake
            || now < rest.since() + REST_AFTER
        {
            return None;
        }
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let last = metrics.last_applied?;
        let membership = metrics.membership_config.membership();
        let is_still = metrics.state.is_leader()
            && metrics.last_log_index == Some(last.index())
            && membership.get_joint_config().len() == 1
            && metrics.membership_config.log_id() == metrics.committed_membership_config.log_id();
        let replication = metrics.replication.as_ref()?;
        let others = membership.nodes().filter(|(id, _)| **id != self.roster.own() && view.answers(**id));
        let members: BTreeMap<u64, String> = others.map(|(id, node)| (*id, node.address.clone())).collect();
        let have_all = members.keys().all(|id| replication.get(id).copied().flatten() == Some(last));
        let voters = || membership.voter_ids();
        let there = voters().filter(|id| *id == self.roster.own() || members.contains_key(id)).count();
        if !is_still || !have_all || 2 * there <= voters().count() {
            return None;
        }
        let (group, ballot, last) = (self.name.to_string(), wire::ballot(&metrics.vote), wire::log_place(&last));
        let resting = message::Resting { group, ballot, last };
        Some(RestProposal { resting, members, events: rest.begin() })
    }

    /// Rests when all members that were asked do; otherwise heartbeats continue.
    pub(crate) fn finish_rest(&self, proposal: &RestProposal, all_rest: bool) {
        if !all_rest || !self.rest.finish(proposal.events) {
            self.rest.note_event();
        }
    }

    /// Lets the group rest if this replica has exactly the leader's state and the leader is present. Returns whether it
    /// rests.
    pub(crate) fn agree_to_rest(&self, resting: &message::Resting, view: &PeerView) -> bool {
        let leader = resting.ballot.node;
        let Some(connection) = view.incoming_connection(leader) else { return false };
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let last = wire::log_id(&resting.last);
        let agrees = leader != self.roster.own()
            && wire::ballot(&metrics.vote) == resting.ballot
            && metrics.current_leader == Some(leader)
            && metrics.last_applied == Some(last)
            && metrics.last_log_index == Some(last.index());
        if agrees {
            self.rest.follow(leader, connection);
        }
        agrees
    }

    /// Asks for pre-votes, as if this replica missed the leader, and stands for election when a majority grants them.
    pub(crate) async fn stand_if_others_would_vote(&self) {
        let _ = self.raft.trigger().elect(true).await; // fails only when the group is shut down
    }

    /// Returns the answer to a candidate that asks for a pre-vote while this group rests: its leader is present. If
    /// this replica is the leader, it wakes and sends heartbeats, so that the candidate hears from it, provided that
    /// the candidate is a member. `None` when the call must be decided by openraft.
    pub(super) fn refuse_while_resting(
        &self,
        call: &message::VoteCall,
        is_member: bool,
    ) -> Option<message::VoteAnswer> {
        match self.rest.phase() {
            Phase::Awake => return None,
            // The leader's process ended and came back, so it does not lead any more.
            Phase::Following { leader, .. } if leader == call.ballot.node => return None,
            Phase::Following { .. } => {}
            Phase::AskingOthers | Phase::Leading if !is_member => {}
            Phase::AskingOthers | Phase::Leading => {
                self.rest.note_event();
                self.beat();
            }
        }
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let last = metrics.last_applied.as_ref().map(wire::log_place);
        Some(message::VoteAnswer { ballot: wire::ballot(&metrics.vote), granted: false, last, excluded: None })
    }
}
