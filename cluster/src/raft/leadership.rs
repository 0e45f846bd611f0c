//! Hands over the leadership of a group, and takes it over from a leader that is gone.

use std::sync::Arc;
use std::time::Duration;

use flotilla_proto::replication as message;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::Fatal;
use openraft::raft::{TransferLeaderRequest, VoteRequest};
use parking_lot::Mutex;

use super::connections::Connections;
use super::exclusion::Exclusion;
use super::mandate::Mandates;
use super::resting::Resting;
use super::roster::Roster;
use super::state_machine::GroupRaft;
use super::types::{Metrics, TypeConfig};
use super::wire;
use crate::limits::{CAUGHT_UP_ENTRIES_MAX, TRANSFER_PATIENCE, TRANSFER_TIMEOUT, TRANSFER_WAIT};

/// The reason why a group was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unchanged {
    /// This replica does not lead the group. Contains the id of the leader, when known.
    #[error("this replica does not lead the group")]
    NotLeader(Option<u64>),
    /// The change is not possible, or not now.
    #[error("{0}")]
    Refused(String),
    /// The members have changed, or are about to, since the change was decided.
    #[error("{0}")]
    Overtaken(String),
}

pub(super) type Changed = Result<(), Unchanged>;

/// The leadership of a group. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Leadership {
    pub(super) name: Arc<str>,
    pub(super) raft: GroupRaft,
    pub(super) roster: Roster,
    pub(super) connections: Connections,
    pub(super) exclusion: Exclusion,
    pub(super) resting: Resting,
    pub(super) mandates: Mandates,
    pub(super) asked: Arc<Mutex<Option<Asked>>>,
}

/// The last time that this replica asked another to lead.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    term: u64,
    to: u64,
}

impl Leadership {
    /// Returns whether a replica has nearly all of the leader's log.
    pub(crate) fn has_caught_up(&self, member: u64) -> bool {
        near(&self.raft.metrics().borrow_watched(), member)
    }

    /// Transfers leadership to another replica, once it has all of the present log. Nothing can be written while it
    /// takes over, so the leader waits beforehand for a replica that is held up by its disk or its link.
    pub(crate) async fn hand_over(&self, to: u64) -> Changed {
        let leader = self.roster.leader();
        if leader == Some(to) {
            return Ok(());
        }
        if leader != Some(self.roster.own()) {
            return Err(Unchanged::NotLeader(leader));
        }
        self.resting.rest().note_event();
        if !self.roster.lasting_voters().contains(&to) {
            return Err(Unchanged::Refused("only a member with a vote can lead".into()));
        }
        if self.keep_up(&[to]).await.is_none() && self.roster.leader() == Some(self.roster.own()) {
            return Err(Unchanged::Refused("the member does not keep up".into()));
        }
        self.hand_over_now(to, TRANSFER_TIMEOUT).await
    }

    async fn hand_over_now(&self, to: u64, timeout: Duration) -> Changed {
        tracing::debug!(group = %self.name, to = %format_args!("{to:x}"), "handing over the leadership of a group");
        let refused = |error: String| Unchanged::Refused(error);
        self.ask_to_lead(to).await.map_err(|error| refused(error.to_string()))?;
        let own = self.roster.own();
        let over = move |metrics: &Metrics| metrics.current_leader.is_some_and(|leader| leader != own);
        match self.raft.wait(Some(timeout)).metrics(over, "another leads").await {
            Ok(metrics) if metrics.current_leader == Some(to) => Ok(()),
            Ok(metrics) => Err(Unchanged::NotLeader(metrics.current_leader)), // the caller may ask that leader instead
            Err(_) => Err(refused("the member has not taken over".into())),
        }
    }

    /// Asks a replica to lead without waiting for it: no answer would be received.
    pub(crate) async fn hand_over_without_answer(&self, to: u64) {
        let _ = self.ask_to_lead(to).await; // fails only when the group is shut down
    }

    /// Asks a replica to lead. From then on this one takes no writes and sends no heartbeats in its term.
    async fn ask_to_lead(&self, to: u64) -> Result<(), Fatal<TypeConfig>> {
        *self.asked.lock() = Some(Asked { term: self.term(), to });
        self.raft.trigger().transfer_leader(to).await
    }

    fn term(&self) -> u64 {
        self.raft.metrics().borrow_watched().current_term
    }

    /// Stands for a new term if this replica has asked another to lead and is the only voter. The other has lost its
    /// vote at the same time, and nobody else can lead.
    pub(crate) async fn lead_on_alone(&self) {
        let Some(Asked { term, to }) = *self.asked.lock() else { return };
        if term != self.term() || !self.roster.leads_alone() {
            return;
        }
        self.resting.rest().note_event();
        // Openraft lets no leader stand for election, but a leader follows a candidate for a later term that has its
        // whole log. The vote for the other replica is sent to nobody, so that replica does not win that term.
        let ballot = message::Ballot { term: term + 1, node: to, committed: false };
        let applied = self.raft.metrics().borrow_watched().last_applied;
        let mut candidacy = VoteRequest::new(wire::vote(&ballot), applied);
        candidacy.leadership_transfer = true;
        if self.raft.vote(candidacy).await.is_ok_and(|answer| answer.vote_granted) {
            tracing::info!(group = %self.name, "leading on: the replica that was asked to lead has no vote any more");
            let _ = self.raft.trigger().elect(false).await; // fails only when the group is shut down
        }
    }

    /// Hands over to a replica that cannot call this one, and so cannot say that it leads. Returns whether it was asked
    /// to lead. If it lacks entries, and none was applied while this replica waited for it, no entries reach it any
    /// more. It cannot lead at once then, but the voters elect it or another one, since this replica sends no
    /// heartbeats any more.
    pub(crate) async fn hand_over_unheard(&self, to: u64) -> bool {
        let applied = || self.raft.metrics().borrow_watched().last_applied.map(|last| last.index());
        let before = applied();
        let is_due = self.keep_up(&[to]).await.is_some() || applied() == before;
        if is_due {
            self.hand_over_without_answer(to).await;
        }
        is_due
    }

    /// Waits until one of the given replicas has all of the present log, and returns it. `None` when none has in time,
    /// or this replica does not lead any more.
    pub(crate) async fn keep_up(&self, members: &[u64]) -> Option<u64> {
        let last = self.raft.metrics().borrow_watched().last_log_index;
        let first = |metrics: &Metrics| members.iter().copied().find(|member| matched(metrics, *member) >= last);
        let mut metrics = self.raft.metrics();
        let kept = async {
            loop {
                let now = metrics.borrow_watched().clone();
                match first(&now) {
                    None if now.replication.is_some() && metrics.changed().await.is_ok() => {}
                    found => return found,
                }
            }
        };
        tokio::time::timeout(TRANSFER_WAIT, kept).await.ok().flatten()
    }

    /// Transfers leadership to the replica that has the most of the log, if this replica leads and another can be
    /// reached.
    pub(crate) async fn give_up(&self) {
        self.resting.rest().note_event();
        let mut successors = self.successors();
        if successors.is_empty() {
            return;
        }
        // The first replica that has everything takes over fastest, so it is asked first.
        if let Some(first) = self.keep_up(&successors).await {
            successors.sort_by_key(|member| (!self.connections.may_lead(*member), *member != first));
        }
        let last = successors[successors.len() - 1];
        for successor in successors {
            if self.roster.leader() != Some(self.roster.own()) {
                return; // another replica leads already, or will
            }
            let timeout = if successor == last { TRANSFER_TIMEOUT } else { TRANSFER_PATIENCE };
            match self.hand_over_now(successor, timeout).await {
                Ok(()) | Err(Unchanged::NotLeader(_)) => return,
                Err(error) if successor == last => {
                    tracing::warn!(group = %self.name, %error, "the leadership of a group could not be handed over");
                }
                Err(error) => tracing::debug!(group = %self.name, %error, "asking another member to take over"),
            }
        }
    }

    /// Stands for election at once, although the leader may have sent something a moment ago: it is known to be gone.
    pub(crate) async fn succeed(&self) {
        if self.exclusion.is_excluded() {
            return;
        }
        self.resting.rest().note_event();
        let from = self.raft.metrics().borrow_watched().vote;
        if !self.mandates.is_last(&wire::ballot(&from)).await {
            tracing::debug!(group = %self.name, "another replica has succeeded the leader, or no majority answers");
            return;
        }
        // This is the request that the leader would send to hand over. A replica that has more of the log refuses its
        // vote and stands itself.
        let handed = TransferLeaderRequest::new(from, self.roster.own(), None);
        if let Ok(Err(error)) = self.raft.handle_transfer_leader(handed).await {
            tracing::debug!(%error, "this replica cannot succeed the leader");
        }
    }

    /// Returns the reachable voters besides this replica, those with the most of the log first. Empty when this replica
    /// does not lead.
    fn successors(&self) -> Vec<u64> {
        let voters = self.roster.lasting_voters();
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let replication = metrics.replication.as_ref();
        let able = |member: &u64| {
            voters.contains(member) && *member != self.roster.own() && self.connections.is_reachable(*member)
        };
        let others = replication.into_iter().flat_map(|replication| replication.keys().copied());
        let mut others: Vec<u64> = others.filter(able).collect();
        // A drained replica is asked last: it leads only if no other does.
        others
            .sort_by_key(|member| (!self.connections.may_lead(*member), std::cmp::Reverse(matched(&metrics, *member))));
        others
    }
}

/// Returns the index of the last entry that a replica is known to have, from the metrics of its leader. `None` when
/// there is none.
fn matched(metrics: &Metrics, member: u64) -> Option<u64> {
    let replication = metrics.replication.as_ref()?;
    Some(replication.get(&member).copied().flatten()?.index())
}

/// Returns whether a replica has nearly all of the log, from the metrics of its leader.
pub(super) fn near(metrics: &Metrics, member: u64) -> bool {
    matched(metrics, member).is_some_and(|index| index + CAUGHT_UP_ENTRIES_MAX >= metrics.last_log_index.unwrap_or(0))
}
