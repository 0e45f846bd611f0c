//! Spreads the leaders of groups over the members.

use super::handing_over::able;
use super::placement::Placement;
use crate::limits::BALANCE_INTERVAL;

/// Hands groups over, one at a time: each to its preferred leader, and others while this replica leads more than its
/// share and another replica leads less. Hands over all groups while this replica is drained.
pub(crate) async fn keep_balanced(placement: &Placement) {
    loop {
        tokio::time::sleep(BALANCE_INTERVAL).await;
        let groups = placement.groups();
        if placement.is_drained() {
            let _ = placement.hand_over_all().await; // groups that no other replica can take yet are tried again
            continue;
        }
        let leaders: Option<Vec<u64>> = groups.iter().map(|(_, node)| node.roster().leader()).collect();
        let Some(leaders) = leaders else { continue }; // wait until elections have ended
        let own = placement.own();
        let seen = groups.iter().zip(leaders).map(|((name, _), leader)| GroupLeadership {
            leader,
            preferred: placement.preferred(name),
            is_held: placement.is_held(name),
        });
        let has_caught_up = |group: usize, to| groups[group].1.leadership().has_caught_up(to);
        let handed = next_to_hand_over(own, &seen.collect::<Vec<_>>(), &able(own, &groups), has_caught_up);
        if let Some((group, to)) = handed
            && let Err(error) = groups[group].1.leadership().hand_over(to).await
        {
            tracing::debug!(%error, "a group could not be handed over");
        }
    }
}

/// A group, as its leader sees it when it decides about handing over.
struct GroupLeadership {
    leader: u64,
    /// The preferred leader of the group, if it has one.
    preferred: Option<u64>,
    /// Whether the group was transferred lately and must still stay with its leader.
    is_held: bool,
}

/// Returns the index of the group that this replica hands over next, and the new leader. A group that prefers another
/// member goes there. Only then are other groups moved to spread leaders evenly, and none away from its preferred
/// leader. A preferred member that cannot lead, or is not a member any more, does not count.
fn next_to_hand_over(
    own: u64,
    groups: &[GroupLeadership],
    able: &[u64],
    has_caught_up: impl Fn(usize, u64) -> bool,
) -> Option<(usize, u64)> {
    let movable = || groups.iter().enumerate().filter(|(_, group)| group.leader == own && !group.is_held);
    let home = |group: &GroupLeadership| group.preferred.filter(|preferred| able.contains(preferred));
    let mut away = movable().filter_map(|(number, group)| Some((number, home(group).filter(|home| *home != own)?)));
    away.find(|(number, home)| has_caught_up(*number, *home)).or_else(|| {
        let leaders: Vec<u64> = groups.iter().map(|group| group.leader).collect();
        let to = underloaded(own, &leaders, able)?;
        let mut free = movable().filter(|(number, group)| home(group).is_none() && has_caught_up(*number, to));
        free.next().map(|(number, _)| (number, to))
    })
}

/// Returns the replica that leads the fewest groups, if it leads at least two fewer than this replica.
fn underloaded(own: u64, leaders: &[u64], voters: &[u64]) -> Option<u64> {
    let led = |member: u64| leaders.iter().filter(|leader| **leader == member).count();
    let least = voters.iter().copied().filter(|voter| *voter != own).min_by_key(|voter| led(*voter))?;
    (led(own) >= led(least) + 2).then_some(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_move_until_all_replicas_lead_equally_many_groups() {
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
    /// Returns groups with these leaders and preferred leaders; 0 stands for no preference.
    fn groups<const N: usize>(of: [(u64, u64); N]) -> Vec<GroupLeadership> {
        let seen = |(leader, preferred)| GroupLeadership {
            leader,
            preferred: (preferred > 0).then_some(preferred),
            is_held: false,
        };
        of.map(seen).into()
    }

    /// Returns the leaders once every group has been handed over as it should be, if every replica has caught up.
    fn balanced(groups: &mut [GroupLeadership], able: &[u64]) -> Vec<u64> {
        for _ in 0..100 {
            let next = able.iter().find_map(|own| next_to_hand_over(*own, groups, able, |_, _| true));
            let Some((group, to)) = next else { return groups.iter().map(|group| group.leader).collect() };
            groups[group].leader = to;
        }
        panic!("it does not come to an end");
    }

    #[test]
    fn a_group_stays_with_its_preferred_member_and_others_are_spread_around_it() {
        let able = [1, 2, 3];
        let mut seen = groups([(1, 2), (1, 2), (1, 2), (1, 2), (1, 0), (1, 0), (1, 0), (1, 0)]);
        let leaders = balanced(&mut seen, &able);
        assert_eq!(leaders[..4], [2; 4]);
        let led = |member| leaders[4..].iter().filter(|leader| **leader == member).count();
        assert_eq!((led(1), led(2), led(3)), (2, 0, 2), "all that a member leads counts");
        // Even if one member then leads everything.
        assert_eq!(balanced(&mut groups([(2, 2), (2, 2), (3, 2)]), &able), [2; 3]);
        // Each of two preferred members gets its own groups.
        assert_eq!(balanced(&mut groups([(1, 1), (1, 2), (2, 1), (2, 2)]), &able), [1, 2, 1, 2]);
    }

    #[test]
    fn preferences_for_a_member_that_cannot_lead_have_no_effect() {
        for (able, gone) in [(&[1, 3][..], 2), (&[1, 2, 3], 9)] {
            let mut seen = groups([(1, gone), (1, gone), (1, gone), (1, gone), (1, gone), (1, gone)]);
            let leaders = balanced(&mut seen, able);
            let led = |member| leaders.iter().filter(|leader| *leader == member).count();
            assert!(able.iter().all(|member| led(member) == 6 / able.len()), "{leaders:?}");
        }
    }

    #[test]
    fn a_group_goes_to_its_preferred_member_unless_it_is_held_or_the_member_lags() {
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
