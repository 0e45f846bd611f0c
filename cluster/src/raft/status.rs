//! The status of a group and its members.

use std::collections::BTreeSet;

use openraft::async_runtime::WatchReceiver;
use openraft::{Instant as _, Membership};

use super::node::Node;
use super::rest::Phase;
use super::types::{LogIdentity, Metrics};
use crate::limits::QUORUM_SILENCE_MAX;
use crate::roster::Replica;

/// The status of a group on this replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStatus {
    /// The name of the group.
    pub name: String,
    /// The id of the leader, when known.
    pub leader: Option<u64>,
    /// The present term.
    pub term: u64,
    /// The index of the last entry in the log.
    pub last_index: u64,
    /// The index of the last entry that is known to be committed.
    pub commit_index: u64,
    /// The index of the last entry that is applied here.
    pub applied_index: u64,
    /// The index of the last entry that a snapshot includes.
    pub snapshot_index: u64,
    /// Whether the group rests: it is idle, and sends no heartbeats.
    pub rests: bool,
    /// Whether it has a leader that a majority follows, as far as this replica knows.
    pub is_led: bool,
    /// How far behind each other member is. Empty unless this replica leads.
    pub lags: Vec<Lag>,
}

/// How far a member of a group is behind its leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lag {
    /// The name of the member.
    pub member: String,
    /// The number of entries that it is not known to have made durable.
    pub entries: u64,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The id of the replica: a member that starts again with an empty disk gets a new one.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The address at which other replicas reach it, `HOST:PORT`.
    pub address: String,
    /// Whether it has a vote. A member without a vote is a learner: it is sent all entries, but its acknowledgement
    /// does not count.
    pub votes: bool,
}

/// Returns the members of a membership.
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

/// Returns how far behind each other member is, from the metrics of the leader.
fn lags(metrics: &Metrics, own: u64) -> Vec<Lag> {
    let members = metrics.membership_config.membership();
    let last = metrics.last_log_index.unwrap_or(0);
    let others = metrics.replication.iter().flatten().filter(|(id, _)| **id != own);
    let lag = |(id, matched): (&u64, &Option<LogIdentity>)| {
        let has = matched.map_or(0, |matched| matched.index());
        Some(Lag { member: members.get_node(id)?.name.clone(), entries: last.saturating_sub(has) })
    };
    others.filter_map(lag).collect()
}

impl Node {
    pub(crate) fn status(&self, name: &str) -> GroupStatus {
        let is_led = self.is_led(); // before `metrics` below, which holds the same lock
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let index = |id: Option<LogIdentity>| id.map_or(0, |id| id.index());
        GroupStatus {
            name: name.to_owned(),
            leader: metrics.current_leader,
            term: metrics.current_term,
            last_index: metrics.last_log_index.unwrap_or(0),
            commit_index: index(metrics.local_committed),
            applied_index: index(metrics.last_applied),
            snapshot_index: index(metrics.snapshot),
            rests: matches!(self.rest().phase(), Phase::Leading | Phase::Following { .. }),
            is_led,
            lags: lags(&metrics, self.node),
        }
    }

    /// Returns whether the voters that `counts` accepts are a majority; during a change of members, of both the old and
    /// the new ones.
    pub(crate) fn is_quorum(&self, counts: impl Fn(u64) -> bool) -> bool {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        let mut sets = metrics.membership_config.membership().get_joint_config().iter();
        sets.all(|voters| 2 * voters.iter().filter(|voter| counts(**voter)).count() > voters.len())
    }

    /// Returns whether the group has a leader and this replica takes part. If this replica leads, a majority must have
    /// acknowledged that lately. If it follows, it and the leader must be connected in both directions: a replica that
    /// was cut off would go on believing in the old leader, and one that the leader cannot call gets no entries.
    pub(crate) fn is_led(&self) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let is_alone = || metrics.membership_config.voter_ids().nth(1).is_none();
        // A majority that rests sends no acknowledgements and is still there. One that was just woken has yet to send
        // them.
        let is_followed = || {
            let acked =
                metrics.last_quorum_acked.is_some_and(|acked| acked.into_inner().elapsed() < QUORUM_SILENCE_MAX);
            acked || self.rest().phase() != Phase::Awake || self.rest().woke().elapsed() < QUORUM_SILENCE_MAX
        };
        let is_led = match metrics.current_leader {
            Some(leader) if leader != self.node => self.is_connected_both_ways(leader),
            Some(_) => is_alone() || is_followed(),
            None => false,
        };
        metrics.running_state.is_ok() && is_led
    }
}
