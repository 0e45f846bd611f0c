//! Hands groups over to replicas that can lead them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::reach;
use crate::raft::{Node, Unchanged};

/// A group with its name.
pub(crate) type NamedGroup = (Arc<str>, Node);

/// Hands over all groups that this replica leads, each to the replica that leads the fewest. With `reached`, the number
/// of voters that this replica reaches, it hands over only to replicas that should lead because they reach more.
///
/// # Errors
/// Names the groups that no other replica can lead now.
pub(super) async fn hand_over_all(own: u64, groups: &[NamedGroup], reached: Option<u32>) -> Result<(), String> {
    let mut kept = Vec::new();
    for (name, node) in groups.iter().filter(|(_, node)| node.roster().leader() == Some(own)) {
        let led = |member: u64| groups.iter().filter(|(_, node)| node.roster().leader() == Some(member)).count();
        let able = match reached {
            Some(reached) => exceeding(own, groups, reached),
            None => able(own, groups),
        };
        let others = able.into_iter().filter(|other| *other != own && node.leadership().has_caught_up(*other));
        let handed = match others.min_by_key(|other| led(*other)) {
            Some(to) => hand_over(node, to).await,
            None => false,
        };
        if !handed {
            kept.push(&**name);
        }
    }
    match kept.is_empty() {
        true => Ok(()),
        false => Err(format!("nobody else can lead {} yet", kept.join(", "))),
    }
}

/// Hands a group over. Returns whether another replica leads it, or will.
async fn hand_over(node: &Node, to: u64) -> bool {
    match node.connections().is_connected_both_ways(to) {
        true => matches!(node.leadership().hand_over(to).await, Ok(()) | Err(Unchanged::NotLeader(_))),
        false => node.leadership().hand_over_unheard(to).await,
    }
}

/// Returns the replicas that may be given a group: they have a vote in every group, and are this replica, or are
/// connected with it in both directions and not drained.
pub(super) fn able(own: u64, groups: &[NamedGroup]) -> Vec<u64> {
    voting_everywhere(groups, |node, voter| {
        let connections = node.connections();
        voter == own || connections.may_lead(voter) && connections.is_connected_both_ways(voter)
    })
}

/// Returns the replicas that should lead because they reach more voters than `reached`: they have a vote in every
/// group, are not drained, and this replica can call them, even if they cannot call it.
fn exceeding(own: u64, groups: &[NamedGroup], reached: u32) -> Vec<u64> {
    voting_everywhere(groups, |node, voter| {
        let (connections, voters) = (node.connections(), node.roster().voters().len());
        let can_take = voter != own && connections.may_lead(voter) && connections.is_connected_to(voter);
        can_take && reach::exceeds(connections.reached_voters(voter), reached, voters)
    })
}

/// Returns the replicas that have and keep a vote in every group, and that `counts` accepts for every group.
fn voting_everywhere(groups: &[NamedGroup], counts: impl Fn(&Node, u64) -> bool) -> Vec<u64> {
    let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, node) in groups {
        for voter in node.roster().lasting_voters() {
            *votes.entry(voter).or_default() += usize::from(counts(node, voter));
        }
    }
    votes.into_iter().filter(|(_, votes)| *votes == groups.len()).map(|(id, _)| id).collect()
}
