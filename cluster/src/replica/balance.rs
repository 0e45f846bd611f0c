//! Spreading the leaders of groups over the members.

use std::collections::BTreeMap;

use super::placement::{Named, Placement};
use crate::limits::BALANCE_INTERVAL;
use crate::raft::Unchanged;

/// Hands groups over, one at a time: to whoever is preferred to lead them, and while this replica leads more than its
/// share and another leads less; and all of them while it is drained.
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
        let seen = groups.iter().zip(leaders).map(|((name, _), leader)| Seen {
            leader,
            preferred: placement.preferred(name),
            is_held: placement.is_held(name),
        });
        let has_caught_up = |group: usize, to| groups[group].1.has_caught_up(to);
        let handed = next_to_hand_over(own, &seen.collect::<Vec<_>>(), &able(own, &groups), has_caught_up);
        if let Some((group, to)) = handed
            && let Err(error) = groups[group].1.hand_over(to).await
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

/// A group, as whoever leads it decides by.
struct Seen {
    leader: u64,
    /// Who is to lead it whenever that can.
    preferred: Option<u64>,
    /// Whether it stays where it is for now.
    is_held: bool,
}

/// The number of the group that this replica is to hand over next, and to whom. One that is preferred elsewhere goes
/// there; only then are others moved to spread leaders evenly, and none away from where it is preferred. Who is
/// preferred and cannot lead, or is no member, counts as nobody.
fn next_to_hand_over(
    own: u64,
    groups: &[Seen],
    able: &[u64],
    has_caught_up: impl Fn(usize, u64) -> bool,
) -> Option<(usize, u64)> {
    let movable = || groups.iter().enumerate().filter(|(_, group)| group.leader == own && !group.is_held);
    let home = |group: &Seen| group.preferred.filter(|preferred| able.contains(preferred));
    let mut away = movable().filter_map(|(number, group)| Some((number, home(group).filter(|home| *home != own)?)));
    away.find(|(number, home)| has_caught_up(*number, *home)).or_else(|| {
        let leaders: Vec<u64> = groups.iter().map(|group| group.leader).collect();
        let to = underloaded(own, &leaders, able)?;
        let mut free = movable().filter(|(number, group)| home(group).is_none() && has_caught_up(*number, to));
        free.next().map(|(number, _)| (number, to))
    })
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
    /// Groups by their leader and who is preferred, which 0 stands for nobody of.
    fn groups<const N: usize>(of: [(u64, u64); N]) -> Vec<Seen> {
        let seen =
            |(leader, preferred)| Seen { leader, preferred: (preferred > 0).then_some(preferred), is_held: false };
        of.map(seen).into()
    }

    /// Who leads when everybody has handed over what it is to, and nobody lacks anything.
    fn settled(groups: &mut [Seen], able: &[u64]) -> Vec<u64> {
        for _ in 0..100 {
            let next = able.iter().find_map(|own| next_to_hand_over(*own, groups, able, |_, _| true));
            let Some((group, to)) = next else { return groups.iter().map(|group| group.leader).collect() };
            groups[group].leader = to;
        }
        panic!("it does not come to an end");
    }

    #[test]
    fn a_preferred_group_goes_to_its_member_and_stays_there_and_the_others_make_up_for_it() {
        let able = [1, 2, 3];
        let mut seen = groups([(1, 2), (1, 2), (1, 2), (1, 2), (1, 0), (1, 0), (1, 0), (1, 0)]);
        let leaders = settled(&mut seen, &able);
        assert_eq!(leaders[..4], [2; 4]);
        let led = |member| leaders[4..].iter().filter(|leader| **leader == member).count();
        assert_eq!((led(1), led(2), led(3)), (2, 0, 2), "all that a member leads counts");
        // Even if it leads everything by that.
        assert_eq!(settled(&mut groups([(2, 2), (2, 2), (3, 2)]), &able), [2; 3]);
        // Of two members that are preferred, each gets its own.
        assert_eq!(settled(&mut groups([(1, 1), (1, 2), (2, 1), (2, 2)]), &able), [1, 2, 1, 2]);
    }

    #[test]
    fn others_lead_as_if_nothing_were_preferred_while_the_member_cannot() {
        for (able, gone) in [(&[1, 3][..], 2), (&[1, 2, 3], 9)] {
            let mut seen = groups([(1, gone), (1, gone), (1, gone), (1, gone), (1, gone), (1, gone)]);
            let leaders = settled(&mut seen, able);
            let led = |member| leaders.iter().filter(|leader| *leader == member).count();
            assert!(able.iter().all(|member| led(member) == 6 / able.len()), "{leaders:?}");
        }
    }

    #[test]
    fn a_group_is_handed_to_who_is_preferred_unless_it_is_held_or_that_lags() {
        let mut seen = groups([(1, 2), (1, 2), (3, 2)]);
        let to_2 = |lags: usize| move |group, to| to == 2 && group != lags;
        assert_eq!(next_to_hand_over(1, &seen, &[1, 2, 3], to_2(9)), Some((0, 2)));
        assert_eq!(next_to_hand_over(1, &seen, &[1, 2, 3], to_2(0)), Some((1, 2)));
        seen[0].is_held = true;
        assert_eq!(next_to_hand_over(1, &seen, &[1, 2, 3], to_2(9)), Some((1, 2)));
        assert_eq!(next_to_hand_over(1, &seen, &[1, 2, 3], to_2(1)), None, "it waits for its member, not for another");
        assert_eq!(next_to_hand_over(1, &groups([(1, 1), (1, 1), (1, 1)]), &[1, 2], |_, _| true), None);
    }
}
