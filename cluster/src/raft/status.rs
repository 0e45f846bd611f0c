//! The status of a group and its members.

use std::collections::BTreeSet;

use openraft::Membership;

use super::types::{LogIdentity, Metrics};
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

impl GroupStatus {
    pub(super) fn new(name: &str, metrics: &Metrics, own: u64, rests: bool, is_led: bool) -> GroupStatus {
        let index = |id: Option<LogIdentity>| id.map_or(0, |id| id.index());
        GroupStatus {
            name: name.to_owned(),
            leader: metrics.current_leader,
            term: metrics.current_term,
            last_index: metrics.last_log_index.unwrap_or(0),
            commit_index: index(metrics.local_committed),
            applied_index: index(metrics.last_applied),
            snapshot_index: index(metrics.snapshot),
            rests,
            is_led,
            lags: lags(metrics, own),
        }
    }
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
