//! Remembers when each revision was closed, to find the revision up to which history can be trimmed.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::Revision;
use crate::clock::HybridClock;
use crate::limits::{AGE_MARKS_MAX, FRESHNESS_PARTS};

/// The revisions up to which a group was closed at past times of the monotonic clock. History ages by that clock:
/// revisions follow wall clocks, and if one was set forward all of history would suddenly seem too old.
///
/// Revisions that were closed before the process started age from its start on.
pub(super) struct Ages {
    /// The longest age that is asked for.
    age_max: Duration,
    /// Times with the revision that was closed then, oldest first.
    marks: VecDeque<(Instant, Revision)>,
}

impl Ages {
    pub(super) fn new(age_max: Duration) -> Ages {
        Ages { age_max, marks: VecDeque::new() }
    }

    /// Records that the group is closed up to `closed` now.
    pub(super) fn note(&mut self, now: Instant, closed: Revision) {
        let interval = self.age_max / AGE_MARKS_MAX;
        if self.marks.back().is_none_or(|(last, _)| now.duration_since(*last) >= interval) {
            self.marks.push_back((now, closed));
        }
        // One mark of at least the longest age is enough.
        while self.marks.get(1).is_some_and(|(next, _)| now.duration_since(*next) >= self.age_max) {
            self.marks.pop_front();
        }
    }

    /// Returns the revision up to which the group has been closed for at least `age`; zero when that is not known.
    pub(super) fn closed_for(&self, age: Duration, now: Instant) -> Revision {
        let old = self.marks.iter().rev().find(|(at, _)| now.duration_since(*at) >= age);
        old.map_or(Revision::ZERO, |(_, closed)| *closed)
    }
}

/// Tells the clock of a replica which revisions have left the history window, even while nothing is written.
pub(crate) struct Times {
    clock: HybridClock,
    /// How long a revision is valid after it was the present time: the history window, and the age that a revision may
    /// already have when a client receives it.
    age: Duration,
    /// What the clock showed at past times.
    shown: Ages,
}

impl Times {
    pub(crate) fn new(clock: HybridClock, history: Duration) -> Times {
        let age = history + history / FRESHNESS_PARTS;
        Times { clock, age, shown: Ages::new(age) }
    }

    /// Reads the clock. Must be called at intervals.
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
        // After ten seconds a wall clock jumps ahead.
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
