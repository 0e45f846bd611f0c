//! The rule by which replicas stop leading, for every way in which members can be connected.

use super::exceeds;

/// The connections between members.
#[derive(Clone, Copy)]
struct Links {
    members: usize,
    /// For each pair of members, whether the first one is connected to the second: it can call it.
    calls: u64,
}

impl Links {
    fn of(members: usize, calls: &[(usize, usize)]) -> Links {
        Links { members, calls: calls.iter().fold(0, |calls, (from, to)| calls | 1 << (from * members + to)) }
    }

    /// Returns the links between members of the same part, and none between parts.
    fn parted(part_of: &[usize]) -> Links {
        let pairs = (0..part_of.len()).flat_map(|from| (0..part_of.len()).map(move |to| (from, to)));
        Links::of(part_of.len(), &pairs.filter(|(from, to)| part_of[*from] == part_of[*to]).collect::<Vec<_>>())
    }

    /// Returns every possible set of links.
    fn all(members: usize) -> impl Iterator<Item = Links> {
        let pairs = (0..members).flat_map(move |from| (0..members).map(move |to| (from, to)));
        let pairs: Vec<(usize, usize)> = pairs.filter(|(from, to)| from != to).collect();
        (0..1_u64 << pairs.len()).map(move |chosen| {
            let chosen = pairs.iter().enumerate().filter(|(number, _)| chosen >> number & 1 == 1);
            chosen.fold(Links { members, calls: 0 }, |links, (_, (from, to))| Links {
                calls: links.calls | 1 << (from * members + to),
                ..links
            })
        })
    }

    fn others(self, member: usize) -> impl Iterator<Item = usize> {
        (0..self.members).filter(move |other| *other != member)
    }

    fn calls(self, from: usize, to: usize) -> bool {
        self.calls >> (from * self.members + to) & 1 == 1
    }

    fn hears(self, member: usize, other: usize) -> bool {
        self.calls(member, other) || self.calls(other, member)
    }

    fn reached(self, member: usize) -> u32 {
        1 + self.others(member).filter(|other| self.calls(member, *other) && self.calls(*other, member)).count() as u32
    }

    /// Returns whether a member stops leading in favour of another.
    fn is_exceeded_by(self, member: usize, other: usize) -> bool {
        self.hears(member, other) && exceeds(self.reached(other), self.reached(member), self.members)
    }

    /// Returns whether a member stops leading.
    fn reaches_fewer(self, member: usize) -> bool {
        self.others(member).any(|other| self.is_exceeded_by(member, other))
    }

    /// Returns the members to which a member that stops leading hands over.
    fn successors(self, member: usize) -> impl Iterator<Item = usize> {
        self.others(member).filter(move |other| {
            self.calls(member, *other) && self.is_exceeded_by(member, *other) && !self.reaches_fewer(*other)
        })
    }
}

/// Returns all links of three members, and of five a part.
fn many() -> impl Iterator<Item = Links> {
    Links::all(3).chain(Links::all(5).step_by(101))
}

#[test]
fn a_leader_that_only_it_can_call_others_hands_over() {
    // The link of 0 and 1 is cut, and 2 cannot connect to 0.
    let links = Links::of(3, &[(0, 2), (1, 2), (2, 1)]);
    assert_eq!([0, 1, 2].map(|member| links.reaches_fewer(member)), [true, false, false]);
    assert_eq!(links.successors(0).collect::<Vec<_>>(), [2]);
    // Of five members, nobody can connect to 0, which calls all.
    let mut links = Links::parted(&[0, 1, 1, 1, 1]);
    (1..5).for_each(|to| links.calls |= 1 << to);
    assert_eq!([0, 1, 2, 3, 4].map(|member| links.reaches_fewer(member)), [true, false, false, false, false]);
    assert_eq!(links.successors(0).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn a_leader_stays_while_no_other_reaches_a_majority() {
    // 1 and 2 reach each other, and 3 and 4 hear only 0, which calls them all.
    assert!(!Links::of(5, &[(1, 2), (2, 1), (0, 1), (0, 2), (0, 3), (0, 4)]).reaches_fewer(0));
    // No two reach each other.
    assert!(!Links::of(3, &[(0, 1), (0, 2)]).reaches_fewer(0));
}

#[test]
fn nobody_stops_leading_in_a_partition() {
    for parts in [[0, 0, 1], [0, 1, 2]] {
        assert!((0..3).all(|member| !Links::parted(&parts).reaches_fewer(member)), "{parts:?}");
    }
    for parts in [[0, 0, 0, 1, 1], [0, 0, 0, 0, 1], [0, 0, 1, 1, 2], [0, 0, 0, 1, 2]] {
        assert!((0..5).all(|member| !Links::parted(&parts).reaches_fewer(member)), "{parts:?}");
    }
}

#[test]
fn a_member_that_has_just_started_deposes_nobody() {
    for members in [3, 5] {
        let (last, others) = (members - 1, 0..members - 1);
        // The others are all connected, and any of the connections of the last one have come up.
        let part_of: Vec<usize> = (0..members).map(|member| usize::from(member == last)).collect();
        for up in 0..1_u64 << (2 * last) {
            let is_up = |number: usize| up >> number & 1;
            let mut links = Links::parted(&part_of);
            for other in others.clone() {
                links.calls |=
                    is_up(other) << (other * members + last) | is_up(last + other) << (last * members + other);
            }
            assert!(others.clone().all(|other| !links.is_exceeded_by(other, last)), "{members} {up:b}");
        }
    }
}

#[test]
fn a_group_that_is_handed_over_does_not_come_back() {
    for links in many() {
        let members = || 0..links.members;
        for member in members() {
            for successor in links.successors(member) {
                assert!(!links.reaches_fewer(successor), "it would hand over, too");
                assert!(2 * links.reached(successor) as usize > links.members, "it could not lead");
            }
        }
        let most = members().max_by_key(|member| links.reached(*member)).expect("a member");
        assert!(!links.reaches_fewer(most), "nobody may lead");
    }
}
