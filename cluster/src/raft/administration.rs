//! Changes of a group's members and leader.

use std::collections::BTreeSet;
use std::time::Duration;

use flotilla_proto::replication::{self as message, administration};
use openraft::ChangeMembers;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::raft::{Precondition, TransferLeaderRequest};
use tokio::time::Instant;

use super::node::Node;
use super::status::{Member, described};
use super::types::{LogIdentity, Metrics, TypeConfig};
use super::wire;
use crate::limits::{
    ATTEMPT_INTERVAL, CATCH_UP_INTERVAL, CATCH_UP_SILENCE_MAX, CATCH_UP_TIMEOUT, CHANGES_BEGUN_MAX, TRANSFER_PATIENCE,
    TRANSFER_TIMEOUT, TRANSFER_WAIT,
};
use crate::roster::Replica;

/// The refusal of an admission that was undone meanwhile.
pub(crate) const GONE: &str = "the new member was removed meanwhile";

/// Why a group was not changed.
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

type Changed = Result<(), Unchanged>;

fn unchanged(error: RaftError<TypeConfig, ClientWriteError<TypeConfig>>) -> Unchanged {
    match error {
        RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => Unchanged::NotLeader(forward.leader_id),
        RaftError::APIError(
            error @ (ClientWriteError::PreconditionFailed(_)
            | ClientWriteError::ChangeMembershipError(ChangeMembershipError::InProgress(_))),
        ) => Unchanged::Overtaken(error.to_string()),
        error => Unchanged::Refused(error.to_string()),
    }
}

/// The members of a group at one moment.
struct GroupMembers {
    /// The log entry that sets these members.
    at: Option<LogIdentity>,
    members: Vec<Member>,
    voters: BTreeSet<u64>,
    /// Whether the membership is joint: a former leader started a change and did not finish it, so both majorities
    /// count.
    is_between: bool,
}

impl GroupMembers {
    fn member(&self, id: u64) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }
}

impl Node {
    /// Makes a change, if this replica leads. Safe to repeat.
    pub(crate) async fn administer(&self, request: &message::Administer) -> Changed {
        let member = request.member;
        self.wake().await;
        let mut begun = 1;
        loop {
            let changed = match request.action {
                administration::ADMIT => {
                    let replica = Replica { name: request.name.clone(), address: request.address.clone() };
                    self.admit(member, replica).await
                }
                administration::REMOVE => self.remove(member, false).await,
                administration::UNVOTE => self.remove(member, true).await,
                administration::TRANSFER => self.hand_over(member).await,
                action => Err(Unchanged::Refused(format!("this replica knows no action {action}"))),
            };
            match changed {
                Err(Unchanged::Overtaken(_)) if begun < CHANGES_BEGUN_MAX => {
                    begun += 1;
                    tokio::time::sleep(ATTEMPT_INTERVAL).await;
                }
                changed => return changed,
            }
        }
    }

    fn seen(&self) -> GroupMembers {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        let (at, membership) = (*metrics.membership_config.log_id(), metrics.membership_config.membership());
        let (members, voters) = (described(membership), membership.voter_ids().collect());
        GroupMembers { at, members, voters, is_between: membership.get_joint_config().len() > 1 }
    }

    /// Makes a replica a voting member, once it has caught up. It replaces another member of the same name.
    async fn admit(&self, member: u64, replica: Replica) -> Changed {
        let seen = self.seen();
        let name = replica.name.clone();
        if seen.member(member).is_none_or(|present| present.address != replica.address) {
            let nodes = [(member, replica)].into();
            self.change(Some(&seen), ChangeMembers::SetNodes(nodes), true).await?;
        }
        if !seen.voters.contains(&member) {
            self.caught_up(member).await?;
        }
        let seen = self.seen();
        let namesake = |known: &&Member| known.name == name && known.id != member;
        let replaced: BTreeSet<u64> = seen.members.iter().filter(namesake).map(|known| known.id).collect();
        let mut voters: BTreeSet<u64> = seen.voters.difference(&replaced).copied().collect();
        voters.insert(member);
        if voters != seen.voters || !replaced.is_empty() || seen.is_between {
            self.kept_up_by_most(&voters).await?;
            // Openraft drops voters that leave; learners must be named.
            let learners = replaced.difference(&seen.voters).copied().collect();
            let change = vec![ChangeMembers::ReplaceAllVoters(voters), ChangeMembers::RemoveNodes(learners)];
            self.change(Some(&seen), ChangeMembers::Batch(change), false).await?;
        }
        Ok(())
    }

    /// Returns whether this replica is the only member, as far as it knows.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(&self.members()[..], [only] if only.id == self.node)
    }

    /// Returns whether the log has this name and address for this replica, as far as it knows.
    pub(crate) fn is_described(&self, replica: &Replica) -> bool {
        let metrics = self.raft.server_metrics();
        metrics.borrow_watched().membership_config.membership().get_node(&self.node) == Some(replica)
    }

    /// Records the name and address of this replica in the log. The replica must lead.
    pub(crate) async fn describe(&self, replica: Replica) -> Changed {
        self.change(None, ChangeMembers::SetNodes([(self.id(), replica)].into()), true).await
    }

    /// Removes a replica, or only its vote when it stays. A leader does not remove itself: it hands over, and the
    /// caller must ask the next leader.
    async fn remove(&self, member: u64, stays: bool) -> Changed {
        let seen = self.seen();
        let mut voters = seen.voters.clone();
        let votes = voters.remove(&member);
        if votes {
            if voters.is_empty() {
                return Err(Unchanged::Refused("the last member cannot be removed".into()));
            }
            self.kept_up_by_most(&voters).await?;
        }
        let remains = seen.member(member).is_some();
        if member == self.id() && (votes || remains && !stays) {
            self.give_up_leadership().await;
            return Err(Unchanged::NotLeader(None));
        }
        if votes {
            return self.change(Some(&seen), ChangeMembers::ReplaceAllVoters(voters), stays).await;
        }
        if remains && !stays {
            return self.change(Some(&seen), ChangeMembers::RemoveNodes([member].into()), false).await;
        }
        Ok(())
    }

    /// Waits until a majority of the future voters has nearly all of the leader's log. Otherwise the change could be
    /// neither completed nor undone.
    async fn kept_up_by_most(&self, voters: &BTreeSet<u64>) -> Changed {
        let (node, of) = (self.clone(), voters.clone());
        let count = move |metrics: &Metrics| {
            let keeps_up = |voter: &&u64| **voter == node.id() || node.is_reachable(**voter) && near(metrics, **voter);
            of.iter().filter(keeps_up).count()
        };
        let (all, counted) = (voters.len(), count.clone());
        let most = move |metrics: &Metrics| metrics.replication.is_none() || 2 * counted(metrics) > all;
        match self.raft.wait(Some(TRANSFER_WAIT)).metrics(most, "a majority keeps up").await {
            Ok(metrics) if metrics.replication.is_some() => Ok(()),
            Ok(metrics) => Err(Unchanged::NotLeader(metrics.current_leader)),
            Err(_) => {
                let count = count(&self.raft.metrics().borrow_watched());
                Err(Unchanged::Refused(format!(
                    "{count} of the {all} members that would vote can be reached and have what was written: without a \
                     majority of them nothing could be written any more"
                )))
            }
        }
    }

    /// Changes the members, unless they have changed since `seen`.
    async fn change(&self, seen: Option<&GroupMembers>, change: ChangeMembers<u64, Replica>, retain: bool) -> Changed {
        let unless_changed = seen.map(|seen| Precondition::LastMembershipLogId { last_membership_log_id: seen.at });
        self.raft.change_membership_if(change, retain, unless_changed).await.map(drop).map_err(unchanged)
    }

    /// Waits until a replica has nearly all of the leader's log. Gives up on a replica that has been gone for a while.
    async fn caught_up(&self, member: u64) -> Changed {
        let decided = move |metrics: &Metrics| metrics.replication.is_none() || near(metrics, member);
        let refused = |why: &str| Err(Unchanged::Refused(why.into()));
        let (deadline, mut seen) = (Instant::now() + CATCH_UP_TIMEOUT, Instant::now());
        loop {
            let waited = self.raft.wait(Some(CATCH_UP_INTERVAL)).metrics(decided, "the member has caught up").await;
            if waited.as_ref().is_ok_and(|metrics| metrics.replication.is_some()) {
                return Ok(());
            }
            let Some(members) = self.members_in_log().await else { return Err(Unchanged::NotLeader(None)) };
            if !members.iter().any(|known| known.id == member) {
                return refused(GONE); // a later leader must not admit it again
            }
            match waited {
                Ok(metrics) => return Err(Unchanged::NotLeader(metrics.current_leader)),
                Err(_) if self.is_reachable(member) => seen = Instant::now(),
                Err(_) if seen.elapsed() >= CATCH_UP_SILENCE_MAX => {
                    return refused("the new member is not there any more: start it, and repeat the command");
                }
                Err(_) => {}
            }
            if Instant::now() >= deadline {
                return refused("the new member does not catch up");
            }
        }
    }

    /// Returns whether a replica has nearly all of the leader's log.
    pub(crate) fn has_caught_up(&self, member: u64) -> bool {
        near(&self.raft.metrics().borrow_watched(), member)
    }

    /// Transfers leadership to another replica, once it has all of the present log. Nothing can be written while it
    /// takes over, so the leader waits beforehand for a replica that is held up by its disk or its link.
    pub(crate) async fn hand_over(&self, to: u64) -> Changed {
        let leader = self.leader();
        if leader == Some(to) {
            return Ok(());
        }
        if leader != Some(self.id()) {
            return Err(Unchanged::NotLeader(leader));
        }
        self.rest().note_event();
        if !self.raft.voter_ids().any(|voter| voter == to) {
            return Err(Unchanged::Refused("only a member with a vote can lead".into()));
        }
        if self.keep_up(&[to]).await.is_none() && self.leader() == Some(self.id()) {
            return Err(Unchanged::Refused("the member does not keep up".into()));
        }
        self.hand_over_now(to, TRANSFER_TIMEOUT).await
    }

    async fn hand_over_now(&self, to: u64, timeout: Duration) -> Changed {
        tracing::debug!(group = %self.name(), to = %format_args!("{to:x}"), "handing over the leadership of a group");
        let refused = |error: String| Unchanged::Refused(error);
        self.raft.trigger().transfer_leader(to).await.map_err(|error| refused(error.to_string()))?;
        let own = self.id();
        let over = move |metrics: &Metrics| metrics.current_leader.is_some_and(|leader| leader != own);
        match self.raft.wait(Some(timeout)).metrics(over, "another leads").await {
            Ok(metrics) if metrics.current_leader == Some(to) => Ok(()),
            Ok(metrics) => Err(Unchanged::NotLeader(metrics.current_leader)), // the caller may ask that leader instead
            Err(_) => Err(refused("the member has not taken over".into())),
        }
    }

    /// Asks a replica to lead without waiting for it: no answer would be received.
    pub(crate) async fn hand_over_without_answer(&self, to: u64) {
        let _ = self.raft.trigger().transfer_leader(to).await; // fails only when the group is shut down
    }

    /// Waits until one of the given replicas has all of the present log, and returns it. `None` when none has in time,
    /// or this replica does not lead any more.
    async fn keep_up(&self, members: &[u64]) -> Option<u64> {
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
    pub(crate) async fn give_up_leadership(&self) {
        self.rest().note_event();
        let mut successors = self.successors();
        if successors.is_empty() {
            return;
        }
        // The first replica that has everything takes over fastest, so it is asked first.
        if let Some(first) = self.keep_up(&successors).await {
            successors.sort_by_key(|member| (!self.may_lead(*member), *member != first));
        }
        let last = successors[successors.len() - 1];
        for successor in successors {
            if self.leader() != Some(self.id()) {
                return; // another replica leads already, or will
            }
            let timeout = if successor == last { TRANSFER_TIMEOUT } else { TRANSFER_PATIENCE };
            match self.hand_over_now(successor, timeout).await {
                Ok(()) | Err(Unchanged::NotLeader(_)) => return,
                Err(error) if successor == last => {
                    tracing::warn!(group = %self.name(), %error, "the leadership of a group could not be handed over");
                }
                Err(error) => tracing::debug!(group = %self.name(), %error, "asking another member to take over"),
            }
        }
    }

    /// Stands for election at once, although the leader may have sent something a moment ago: it is known to be gone.
    pub(crate) async fn succeed(&self) {
        if self.is_excluded() {
            return;
        }
        self.rest().note_event();
        let from = self.raft.metrics().borrow_watched().vote;
        if !self.is_last(&wire::ballot(&from)).await {
            tracing::debug!(group = %self.name(), "another replica has succeeded the leader, or no majority answers");
            return;
        }
        // This is the request that the leader would send to hand over. A replica that has more of the log refuses its
        // vote and stands itself.
        let handed = TransferLeaderRequest::new(from, self.id(), None);
        if let Ok(Err(error)) = self.raft.handle_transfer_leader(handed).await {
            tracing::debug!(%error, "this replica cannot succeed the leader");
        }
    }

    /// Returns the reachable voters besides this replica, those with the most of the log first. Empty when this replica
    /// does not lead.
    fn successors(&self) -> Vec<u64> {
        let voters: BTreeSet<u64> = self.raft.voter_ids().collect();
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let replication = metrics.replication.as_ref();
        let able = |member: &u64| voters.contains(member) && *member != self.id() && self.is_reachable(*member);
        let others = replication.into_iter().flat_map(|replication| replication.keys().copied());
        let mut others: Vec<u64> = others.filter(able).collect();
        // A drained replica is asked last: it leads only if no other does.
        others.sort_by_key(|member| (!self.may_lead(*member), std::cmp::Reverse(matched(&metrics, *member))));
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
fn near(metrics: &Metrics, member: u64) -> bool {
    matched(metrics, member).is_some_and(|index| index + CAUGHT_UP_ENTRIES >= metrics.last_log_index.unwrap_or(0))
}

/// How many entries a replica may lack when it is given a vote: it gets them while the change is made.
const CAUGHT_UP_ENTRIES: u64 = 64;
