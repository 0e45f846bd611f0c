//! The members of a group and its leader, as far as this replica knows them.

use std::collections::BTreeSet;

use openraft::async_runtime::WatchReceiver;

use super::state_machine::GroupRaft;
use super::status::{Member, described};
use super::types::{LeaderId, Metrics};
use crate::roster::Replica;

/// The members of a group and its leader, as far as this replica knows them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Roster {
    own: u64,
    raft: GroupRaft,
}

impl Roster {
    pub(super) fn new(own: u64, raft: GroupRaft) -> Roster {
        Roster { own, raft }
    }

    /// Returns the id of this replica.
    pub(super) fn own(&self) -> u64 {
        self.own
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

    /// Returns the members that are set at the end of the log, which [`Roster::members`] may return only a moment
    /// later. `None` when the group is shut down.
    pub(crate) async fn members_in_log(&self) -> Option<Vec<Member>> {
        self.raft.with_raft_state(|state| described(state.membership_state.effective().membership())).await.ok()
    }

    /// Returns the ids of the voters.
    pub(crate) fn voters(&self) -> Vec<u64> {
        self.raft.voter_ids().collect()
    }

    /// Returns the ids of the voters; during a change of members, only those that vote both before and after it.
    pub(crate) fn lasting_voters(&self) -> BTreeSet<u64> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        lasting(metrics.membership_config.membership().get_joint_config())
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
        leads(&metrics, self.own) && voters.next() == Some(self.own) && voters.next().is_none()
    }

    /// Returns whether this replica is the only member, as far as it knows.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(&self.members()[..], [only] if only.id == self.own)
    }

    /// Returns whether the log has this name and address for this replica, as far as it knows.
    pub(crate) fn is_described(&self, replica: &Replica) -> bool {
        let metrics = self.raft.server_metrics();
        metrics.borrow_watched().membership_config.membership().get_node(&self.own) == Some(replica)
    }

    /// Returns whether the voters that `counts` accepts are a majority; during a change of members, of both the old and
    /// the new ones.
    pub(crate) fn is_quorum(&self, counts: impl Fn(u64) -> bool) -> bool {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        let mut sets = metrics.membership_config.membership().get_joint_config().iter();
        sets.all(|voters| 2 * voters.iter().filter(|voter| counts(**voter)).count() > voters.len())
    }
}

fn lasting(sets: &[BTreeSet<u64>]) -> BTreeSet<u64> {
    sets.iter().cloned().reduce(|lasting, next| &lasting & &next).unwrap_or_default()
}

/// Returns whether a node leads and has applied an entry of its term, and with it everything before.
pub(super) fn leads(metrics: &Metrics, node: u64) -> bool {
    let own = LeaderId { term: metrics.current_term, node_id: node };
    let applied = metrics.last_applied.as_ref().map(|applied| *applied.committed_leader_id());
    metrics.state.is_leader() && metrics.current_leader == Some(node) && applied == Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voters_that_come_or_go_do_not_last() {
        assert_eq!(lasting(&[]), BTreeSet::new());
        assert_eq!(lasting(&[BTreeSet::from([1, 2])]), BTreeSet::from([1, 2]));
        assert_eq!(lasting(&[BTreeSet::from([1, 2, 3]), BTreeSet::from([1, 3, 4])]), BTreeSet::from([1, 3]));
    }
}
