//! Assigns the revisions of a group's writes.

use crate::Revision;
use crate::shard_map::GroupNumber;

/// The distance between neighbouring revisions of one group, which leaves one revision for each group number.
const STEP: u64 = 1 << GroupNumber::BITS;

/// Assigns revisions in increasing order, near the clock and above every revision assigned before. Their low bits are
/// the number of the group, so that no other group assigns the same ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequencer {
    last: Revision,
    group_number: GroupNumber,
}

impl Sequencer {
    /// Continues above `last`, the largest revision in the log.
    pub(crate) fn above(last: Revision, group_number: GroupNumber) -> Sequencer {
        Sequencer { last, group_number }
    }

    /// Returns the next revision at the time `now`. `None` when no revision of 18 digits is left.
    pub(crate) fn next(&mut self, now: Revision) -> Option<Revision> {
        let above = if seeded!(RevisionFromClockAlone) { Revision::FIRST } else { self.last.next() };
        let revision = self.own(above.max(now));
        // A clock beyond the last revision must not use up the revisions that are left.
        let revision = if revision >= Revision::LAST { self.own(above) } else { revision };
        if revision > Revision::LAST {
            return None;
        }
        self.last = revision;
        Some(revision)
    }

    /// Assigns nothing up to `revision` any more, nor up to the time `now`. Returns the revision up to which this
    /// holds. `None` when no revision could follow.
    pub(crate) fn close(&mut self, revision: Revision, now: Revision) -> Option<Revision> {
        if revision >= Revision::LAST {
            return None;
        }
        self.pass(revision);
        self.pass(if now < Revision::LAST { now } else { Revision::FIRST });
        Some(self.last)
    }

    /// Assigns nothing up to `revision` any more.
    pub(crate) fn pass(&mut self, revision: Revision) {
        self.last = self.last.max(revision);
    }

    /// Returns the smallest revision from `least` on that this group may assign.
    fn own(self, least: Revision) -> Revision {
        let number = least.get() / STEP * STEP + u64::from(self.group_number);
        Revision::new(if number < least.get() { number + STEP } else { number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(unix_ms: u64) -> Revision {
        Revision::from_unix_ms(unix_ms)
    }

    #[test]
    fn revisions_rise_whatever_the_clock_shows() {
        let mut sequencer = Sequencer::above(Revision::ZERO, 7);
        let mut last = Revision::ZERO;
        for unix_ms in [0, 1_790_000_000_000, 1_790_000_000_000, 5, u64::MAX, 1_790_000_000_001] {
            let next = sequencer.next(at(unix_ms)).unwrap();
            assert!(next > last && next < Revision::LAST, "{next} after {last}");
            assert_eq!(next.get() % 256, 7);
            last = next;
        }
        assert_eq!(last.unix_ms(), 1_790_000_000_001);
        let mut exhausted = Sequencer::above(Revision::LAST.previous(), Revision::LAST.get() as u8);
        assert_eq!(exhausted.next(at(0)), Some(Revision::LAST));
        assert_eq!(exhausted.next(at(0)), None);
    }

    #[test]
    fn groups_never_assign_the_same_revision() {
        let mut seen = std::collections::BTreeSet::new();
        for group_number in [0, 1, 2, 128, 255] {
            let mut sequencer = Sequencer::above(Revision::FIRST, group_number);
            for _ in 0..1_000 {
                assert!(seen.insert(sequencer.next(at(1_790_000_000_000)).unwrap()));
            }
        }
    }

    #[test]
    fn no_revision_is_assigned_up_to_the_closed_one() {
        let mut sequencer = Sequencer::above(Revision::ZERO, 3);
        let written = sequencer.next(at(1_790_000_000_000)).unwrap();
        let far = Revision::new(written.get() + 1_000_000_000);
        assert_eq!(sequencer.close(far, at(1_790_000_000_001)), Some(far));
        assert!(sequencer.next(at(1_790_000_000_001)).unwrap() > far);
        let later = Revision::from_unix_ms(1_790_001_000_000);
        assert_eq!(sequencer.close(written, at(1_790_001_000_000)), Some(later), "closes up to the clock");
        assert_eq!(sequencer.close(written, at(u64::MAX)), Some(later), "a clock that is off closes nothing");
        assert_eq!(sequencer.close(Revision::LAST, at(0)), None);
    }
}
