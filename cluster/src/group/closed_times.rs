//! Remembers when each revision was closed, to find the revision up to which history can be trimmed.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::Revision;
use crate::clock::HybridClock;
use crate::limits::{CLOSED_AGE_MAX_DIVISOR, CLOSED_TIMES_MAX};

/// The revisions up to which a group was closed at past times of the monotonic clock. History ages by that clock:
/// revisions follow wall clocks, and if one was set forward all of history would suddenly seem too old.
///
/// Revisions that were closed before the process started age from its start on.
pub(super) struct ClosedTimes {
    /// The longest age that is asked for.
    age_max: Duration,
    /// Times with the revision that was closed then, oldest first.
    times: VecDeque<(Instant, Revision)>,
}

impl ClosedTimes {
    pub(super) fn new(age_max: Duration) -> ClosedTimes {
        ClosedTimes { age_max, times: VecDeque::new() }
    }

    /// Records that the group is closed up to `closed` now.
    pub(super) fn note(&mut self, now: Instant, closed: Revision) {
        let interval = self.age_max / CLOSED_TIMES_MAX;
        if self.times.back().is_none_or(|(last, _)| now.duration_since(*last) >= interval) {
            self.times.push_back((now, closed));
        }
        // One time of at least the longest age is enough.
        while self.times.get(1).is_some_and(|(next, _)| now.duration_since(*next) >= self.age_max) {
            self.times.pop_front();
        }
    }

    /// Returns the revision up to which the group has been closed for at least `age`; zero when that is not known.
    pub(super) fn closed_for(&self, age: Duration, now: Instant) -> Revision {
        let old = self.times.iter().rev().find(|(at, _)| now.duration_since(*at) >= age);
        old.map_or(Revision::ZERO, |(_, closed)| *closed)
    }
}

/// Tells the clock of a replica which revisions have left the history window, even while nothing is written.
pub(crate) struct RevisionExpiry {
    clock: HybridClock,
    /// How long a revision is valid after the clock showed it: the history window, plus the age that a revision may
    /// already have when a client receives it.
    age: Duration,
    /// The readings of the clock at past times.
    past_times: ClosedTimes,
}

impl RevisionExpiry {
    pub(crate) fn new(clock: HybridClock, history: Duration) -> RevisionExpiry {
        let age = history + history / CLOSED_AGE_MAX_DIVISOR;
        RevisionExpiry { clock, age, past_times: ClosedTimes::new(age) }
    }

    /// Reads the clock. Must be called at intervals.
    pub(crate) fn update(&mut self, now: Instant) {
        self.past_times.note(now, self.clock.now());
        self.clock.outdate(self.past_times.closed_for(self.age, now));
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
    fn closed_revisions_age_by_the_clock_of_the_process_alone() {
        let (mut closed_times, began) = (ClosedTimes::new(AGE), Instant::now());
        let second = |number: u64| began + Duration::from_secs(number);
        assert_eq!(closed_times.closed_for(Duration::ZERO, began), Revision::ZERO, "nothing is known");
        // After ten seconds a wall clock jumps ahead.
        let closed = |number: u64| revision(if number < 10 { number } else { number + 3_600_000 });
        for number in 0..=900 {
            closed_times.note(second(number), closed(number));
            let aged = closed_times.closed_for(AGE, second(number));
            let known = number.checked_sub(300).map_or(Revision::ZERO, closed);
            assert!(aged <= known, "nothing is old before its time: {number}");
            let coarse = number.checked_sub(302).map_or(Revision::ZERO, closed);
            assert!(aged >= coarse, "and everything is soon after: {number}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn revisions_become_outdated_without_writes() {
        let clock = HybridClock::new(crate::clock::WallClock::new(|| 1_790_000_000_000)); // it stands still
        let (mut expiry, given) = (RevisionExpiry::new(clock.clone(), AGE), clock.now());
        for second in 0..400 {
            expiry.update(Instant::now());
            assert_eq!(given < clock.outdated(), second > 330, "{second}");
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }

    #[test]
    fn the_number_of_remembered_times_is_bounded() {
        for age in [1, 300, 86_400] {
            let (mut closed_times, began) = (ClosedTimes::new(Duration::from_secs(age)), Instant::now());
            for number in 0..200_000 {
                closed_times.note(began + Duration::from_secs(number), revision(number));
                assert!(closed_times.times.len() <= CLOSED_TIMES_MAX as usize + 2);
            }
        }
    }
}
