//! Spreading the leaders of groups over the members.

use std::collections::BTreeMap;

use crate::limits::BALANCE_INTERVAL;
use crate::raft::Node;

/// Hands groups over, one at a time, while this replica leads more than its share and another leads less.
pub(crate) async fn keep_balanced(own: u64, nodes: &[Node]) {
    loop {
        tokio::time::sleep(BALANCE_INTERVAL).await;
        let leaders: Option<Vec<u64>> = nodes.iter().map(Node::leader).collect();
        let Some(leaders) = leaders else { continue }; // let elections come to an end first
        let Some(to) = underloaded(own, &leaders, &voters(nodes)) else { continue };
        let handed = nodes.iter().zip(&leaders).find(|(node, leader)| **leader == own && node.has_caught_up(to));
        if let Some((node, _)) = handed
            && let Err(error) = node.hand_over(to).await
        {
            tracing::debug!(%error, "a group could not be handed over");
        }
    }
}

/// Those that have a vote in every group.
fn voters(nodes: &[Node]) -> Vec<u64> {
    let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
    for member in nodes.iter().flat_map(Node::members).filter(|member| member.votes) {
        *votes.entry(member.id).or_default() += 1;
    }
    votes.into_iter().filter(|(_, votes)| *votes == nodes.len()).map(|(id, _)| id).collect()
}

/// Who is to lead one more, of those that lead at least two less than this replica.
fn underloaded(own: u64, leaders: &[u64], voters: &[u64]) -> Option<u64> {
    let led = |member: u64| leaders.iter().filter(|leader| **leader == member).count();
    let least = voters.iter().copied().filter(|voter| *voter != own).min_by_key(|voter| led(*voter))?;
    (led(own) >= led(least) + 2).then_some(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_move_from_who_has_most_to_who_has_least_until_that_is_even() {
        let voters = [1, 2, 3];
        let mut leaders = vec![1; 9];
        let mut moves = 0;
        loop {
            let step = voters.iter().find_map(|own| underloaded(*own, &leaders, &voters).map(|to| (*own, to)));
            let Some((from, to)) = step else { break };
            *leaders.iter_mut().find(|leader| **leader == from).unwrap() = to;
            moves += 1;
            assert!(moves < 100);
        }
        assert!(voters.iter().all(|voter| leaders.iter().filter(|leader| *leader == voter).count() == 3));
        assert_eq!(underloaded(1, &[1], &voters), None);
        assert_eq!(underloaded(1, &[1, 1], &[1]), None);
    }
}
