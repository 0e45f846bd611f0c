//! How far a group was closed how long ago.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::Revision;
use crate::clock::HybridClock;
use crate::limits::{AGE_MARKS_MAX, FRESHNESS_PARTS};

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

/// Tells the clock of a replica up to where revisions are out of date, whether or not anything happens.
pub(crate) struct Times {
    clock: HybridClock,
    /// How long a revision is good for after it was the time. What is told is a part of the history window old at most,
    /// and good for that from then on.
    age: Duration,
    /// What the clock showed how long ago.
    shown: Ages,
}

impl Times {
    pub(crate) fn new(clock: HybridClock, history: Duration) -> Times {
        let age = history + history / FRESHNESS_PARTS;
        Times { clock, age, shown: Ages::new(age) }
    }

    /// Looks at the clock; to be called now and then.
    pub(crate) fn pass(&mut self, now: Instant) {
        self.shown.note(now, self.clock.now());
        self.clock.outdate(self.shown.closed_for(self.age, now));
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

    #[tokio::test(start_paused = true)]
    async fn revisions_are_out_of_date_although_nothing_happens() {
        let clock = HybridClock::new(crate::clock::WallClock::new(|| 1_790_000_000_000)); // it stands still
        let (mut times, told) = (Times::new(clock.clone(), AGE), clock.now());
        for second in 0..400 {
            times.pass(Instant::now());
            assert_eq!(told < clock.outdated(), second > 330, "{second}");
            tokio::time::advance(Duration::from_secs(1)).await;
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
