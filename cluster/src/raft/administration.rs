//! Changes of a group's members, and the requests for a change or for another leader.

use std::collections::BTreeSet;

use flotilla_proto::replication::{self as message, administration};
use openraft::ChangeMembers;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::raft::Precondition;
use tokio::time::Instant;

use super::connections::Connections;
use super::leadership::{Changed, Leadership, Unchanged, near};
use super::resting::Resting;
use super::roster::Roster;
use super::state_machine::GroupRaft;
use super::status::{Member, described};
use super::types::{LogIdentity, Metrics, TypeConfig};
use crate::limits::{
    ATTEMPT_INTERVAL, CATCH_UP_INTERVAL, CATCH_UP_SILENCE_MAX, CATCH_UP_TIMEOUT, CHANGES_BEGUN_MAX, TRANSFER_WAIT,
};
use crate::roster::Replica;

/// The refusal of an admission that was undone meanwhile.
pub(crate) const GONE: &str = "the new member was removed meanwhile";

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

/// Changes the members of a group.
pub(crate) struct Administration {
    raft: GroupRaft,
    roster: Roster,
    connections: Connections,
    resting: Resting,
    leadership: Leadership,
}

impl Administration {
    pub(super) fn new(
        raft: GroupRaft,
        roster: Roster,
        connections: Connections,
        resting: Resting,
        leadership: Leadership,
    ) -> Administration {
        Administration { raft, roster, connections, resting, leadership }
    }

    /// Makes a change, if this replica leads. Safe to repeat.
    pub(crate) async fn administer(&self, request: &message::Administer) -> Changed {
        let member = request.member;
        self.resting.wake().await;
        let mut begun = 1;
        loop {
            let changed = match request.action {
                administration::ADMIT => {
                    let replica = Replica { name: request.name.clone(), address: request.address.clone() };
                    self.admit(member, replica).await
                }
                administration::REMOVE => self.remove(member, false).await,
                administration::UNVOTE => self.remove(member, true).await,
                administration::TRANSFER => self.leadership.hand_over(member).await,
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

    /// Records the name and address of this replica in the log. The replica must lead.
    pub(crate) async fn describe(&self, replica: Replica) -> Changed {
        self.change(None, ChangeMembers::SetNodes([(self.roster.own(), replica)].into()), true).await
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
        if member == self.roster.own() && (votes || remains && !stays) {
            self.leadership.give_up().await;
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
        let (own, connections, of) = (self.roster.own(), self.connections.clone(), voters.clone());
        let count = move |metrics: &Metrics| {
            let keeps_up = |voter: &&u64| **voter == own || connections.is_reachable(**voter) && near(metrics, **voter);
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
            let Some(members) = self.roster.members_in_log().await else { return Err(Unchanged::NotLeader(None)) };
            if !members.iter().any(|known| known.id == member) {
                return refused(GONE); // a later leader must not admit it again
            }
            match waited {
                Ok(metrics) => return Err(Unchanged::NotLeader(metrics.current_leader)),
                Err(_) if self.connections.is_reachable(member) => seen = Instant::now(),
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
}
