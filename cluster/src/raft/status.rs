//! How a group is doing, and who its members are.

use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;

use super::node::{Metrics, Node};
use super::rest::Phase;
use super::types::LogIdentity;
use crate::limits::QUORUM_SILENCE_MAX;

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
    /// Whether nothing happens in it, and nobody counts the time.
    pub rests: bool,
    /// Whether it has a leader that a majority follows, as far as this replica knows.
    pub is_led: bool,
    /// When this replica leads it, how many entries each of the others is not known to have.
    pub lags: Vec<Lag>,
}

/// How far behind its leader a member of a group is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Name of the member.
    pub member: String,
    /// Entries that it is not known to have made durable.
    pub entries: u64,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id: another one each time that it begins with an empty disk.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Where other replicas reach it, `HOST:PORT`.
    pub address: String,
    /// Whether it has a vote. Without one it is sent everything and counts for nothing.
    pub votes: bool,
}

/// How far behind each of the others is, by the metrics of the leader.
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
        let is_led = self.is_led(); // which looks at the same, under the same lock
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

    /// Whether these voters are a majority, before and after a change of members that is under way.
    pub(crate) fn is_quorum(&self, counts: impl Fn(u64) -> bool) -> bool {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        let mut sets = metrics.membership_config.membership().get_joint_config().iter();
        sets.all(|voters| 2 * voters.iter().filter(|voter| counts(**voter)).count() > voters.len())
    }

    /// Whether the group has a leader and this replica takes part. When it leads itself, a majority must have said so
    /// lately, and else it and the leader must call each other: one that was left alone goes on believing what was, and
    /// one that the leader cannot call is told nothing.
    pub(crate) fn is_led(&self) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let is_alone = || metrics.membership_config.voter_ids().nth(1).is_none();
        // A majority that rests says nothing, and is there; one that was woken has yet to say so.
        let is_followed = || {
            let acked =
                metrics.last_quorum_acked.is_some_and(|acked| acked.into_inner().elapsed() < QUORUM_SILENCE_MAX);
            acked || self.rest().phase() != Phase::Awake || self.rest().woke().elapsed() < QUORUM_SILENCE_MAX
        };
        let is_led = match metrics.current_leader {
            Some(leader) if leader != self.node => self.is_in_touch(leader),
            Some(_) => is_alone() || is_followed(),
            None => false,
        };
        metrics.running_state.is_ok() && is_led
    }
}
