//! How far a group was closed how long ago.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::Revision;
use crate::limits::AGE_MARKS_MAX;

/// How far a group was closed how long ago, by the clock of the process: history ages by that. Revisions are of wall
/// clocks, which may be set to any time, and then all of history would seem to be old at once.
///
/// What was closed before the process began ages from there on.
pub(super) struct Ages {
    /// The longest age that is asked for.
    age_max: Duration,
    /// When the group was seen to be closed how far, oldest first.
    marks: VecDeque<(Instant, Revision)>,
}

impl Ages {
    pub(super) fn new(age_max: Duration) -> Ages {
        Ages { age_max, marks: VecDeque::new() }
    }

    /// The group is closed up to a revision now.
    pub(super) fn note(&mut self, now: Instant, closed: Revision) {
        let interval = self.age_max / AGE_MARKS_MAX;
        if self.marks.back().is_none_or(|(last, _)| now.duration_since(*last) >= interval) {
            self.marks.push_back((now, closed));
        }
        // One mark as old as that is enough.
        while self.marks.get(1).is_some_and(|(next, _)| now.duration_since(*next) >= self.age_max) {
            self.marks.pop_front();
        }
    }

    /// Up to where the group was closed for at least so long; zero when that is not known.
    pub(super) fn closed_for(&self, age: Duration, now: Instant) -> Revision {
        let old = self.marks.iter().rev().find(|(at, _)| now.duration_since(*at) >= age);
        old.map_or(Revision::ZERO, |(_, closed)| *closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(300);

    fn revision(number: u64) -> Revision {
        Revision::new(Revision::FIRST.get() + number)
    }

    #[test]
    fn what_was_closed_ages_by_the_clock_of_the_process_alone() {
        let (mut ages, began) = (Ages::new(AGE), Instant::now());
        let second = |number: u64| began + Duration::from_secs(number);
        assert_eq!(ages.closed_for(Duration::ZERO, began), Revision::ZERO, "nothing is known");
        // At the tenth second a wall clock jumps ahead.
        let closed = |number: u64| revision(if number < 10 { number } else { number + 3_600_000 });
        for number in 0..=900 {
            ages.note(second(number), closed(number));
            let aged = ages.closed_for(AGE, second(number));
            let known = number.checked_sub(300).map_or(Revision::ZERO, closed);
            assert!(aged <= known, "nothing is old before its time: {number}");
            let coarse = number.checked_sub(302).map_or(Revision::ZERO, closed);
            assert!(aged >= coarse, "and everything is soon after: {number}");
        }
    }

    #[test]
    fn few_marks_are_kept_of_any_age() {
        for age in [1, 300, 86_400] {
            let (mut ages, began) = (Ages::new(Duration::from_secs(age)), Instant::now());
            for number in 0..200_000 {
                ages.note(began + Duration::from_secs(number), revision(number));
                assert!(ages.marks.len() <= AGE_MARKS_MAX as usize + 2);
            }
        }
    }
}
