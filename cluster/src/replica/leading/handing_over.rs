//! Hands groups over to replicas that can lead them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::raft::{Node, Unchanged};

/// A group with its name.
pub(crate) type NamedGroup = (Arc<str>, Node);

/// Hands over all groups that this replica leads, each to the replica that leads the fewest.
///
/// # Errors
/// Names the groups that no other replica can lead now.
pub(super) async fn hand_over_all(own: u64, groups: &[NamedGroup]) -> Result<(), String> {
    let mut kept = Vec::new();
    for (name, node) in groups.iter().filter(|(_, node)| node.roster().leader() == Some(own)) {
        let led = |member: u64| groups.iter().filter(|(_, node)| node.roster().leader() == Some(member)).count();
        let others =
            able(own, groups).into_iter().filter(|other| *other != own && node.leadership().has_caught_up(*other));
        let handed = match others.min_by_key(|other| led(*other)) {
            Some(to) => matches!(node.leadership().hand_over(to).await, Ok(()) | Err(Unchanged::NotLeader(_))),
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

/// Returns the replicas that may be given a group: they have a vote in every group, and are this replica, or are
/// reachable and not drained.
pub(super) fn able(own: u64, groups: &[NamedGroup]) -> Vec<u64> {
    let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, node) in groups {
        for voter in node.roster().voters() {
            *votes.entry(voter).or_default() += usize::from(voter == own || node.connections().may_lead(voter));
        }
    }
    votes.into_iter().filter(|(_, votes)| *votes == groups.len()).map(|(id, _)| id).collect()
}
