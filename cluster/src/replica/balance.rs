//! Spreading the leaders of groups over the members.

use std::collections::BTreeMap;

use super::placement::{Named, Placement};
use crate::limits::BALANCE_INTERVAL;
use crate::raft::Unchanged;

/// Hands groups over, one at a time, while this replica leads more than its share and another leads less; and all of
/// them while it is drained.
pub(crate) async fn keep_balanced(placement: &Placement) {
    loop {
        tokio::time::sleep(BALANCE_INTERVAL).await;
        let groups = placement.groups();
        if placement.is_drained() {
            let _ = hand_over_all(placement).await; // what nobody can take yet is tried again
            continue;
        }
        let leaders: Option<Vec<u64>> = groups.iter().map(|(_, node)| node.leader()).collect();
        let Some(leaders) = leaders else { continue }; // let elections come to an end first
        let own = placement.own();
        let Some(to) = underloaded(own, &leaders, &able(own, &groups)) else { continue };
        let movable = |(name, node): &Named| node.has_caught_up(to) && !placement.is_held(name);
        let handed = groups.iter().zip(&leaders).find(|(group, leader)| **leader == own && movable(group));
        if let Some(((_, node), _)) = handed
            && let Err(error) = node.hand_over(to).await
        {
            tracing::debug!(%error, "a group could not be handed over");
        }
    }
}

/// Lets others lead what this replica leads, each time whoever leads least.
///
/// # Errors
/// The groups that nobody else can lead now.
pub(crate) async fn hand_over_all(placement: &Placement) -> Result<(), String> {
    let (own, groups) = (placement.own(), placement.groups());
    let mut kept = Vec::new();
    for (name, node) in groups.iter().filter(|(_, node)| node.leader() == Some(own)) {
        let led = |member: u64| groups.iter().filter(|(_, node)| node.leader() == Some(member)).count();
        let others = able(own, &groups).into_iter().filter(|other| *other != own && node.has_caught_up(*other));
        let handed = match others.min_by_key(|other| led(*other)) {
            Some(to) => matches!(node.hand_over(to).await, Ok(()) | Err(Unchanged::NotLeader(_))),
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

/// Those that may be given a group to lead: they have a vote in every group, and this replica is one of them or
/// reaches them and knows of no wish against it.
fn able(own: u64, groups: &[Named]) -> Vec<u64> {
    let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, node) in groups {
        for voter in node.voters() {
            *votes.entry(voter).or_default() += usize::from(voter == own || node.may_lead(voter));
        }
    }
    votes.into_iter().filter(|(_, votes)| *votes == groups.len()).map(|(id, _)| id).collect()
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
