//! Which revision the next write gets.

use crate::Revision;

/// Hands out revisions in increasing order, near the wall clock and never below what was handed out before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequencer {
    last: Revision,
}

impl Sequencer {
    /// Goes on above `last`, the largest revision in the log.
    pub(crate) fn above(last: Revision) -> Sequencer {
        Sequencer { last }
    }

    /// The next revision at this wall time; none when the 18 digits are used up.
    pub(crate) fn next(&mut self, unix_ms: u64) -> Option<Revision> {
        let revision = self.last.next().max(Revision::from_unix_ms(unix_ms));
        // A clock that stands beyond the last revision must not use up those that are left.
        let revision = if revision >= Revision::LAST { self.last.next() } else { revision };
        if revision > Revision::LAST {
            return None;
        }
        self.last = revision;
        Some(revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_whatever_the_clock_says() {
        let mut sequencer = Sequencer::above(Revision::ZERO);
        let mut last = Revision::ZERO;
        for unix_ms in [0, 1_790_000_000_000, 1_790_000_000_000, 5, u64::MAX, 1_790_000_000_001] {
            let next = sequencer.next(unix_ms).unwrap();
            assert!(next > last && next < Revision::LAST, "{next} after {last}");
            last = next;
        }
        assert_eq!(last.unix_ms(), 1_790_000_000_001);
        let mut exhausted = Sequencer::above(Revision::LAST.previous());
        assert_eq!(exhausted.next(0), Some(Revision::LAST));
        assert_eq!(exhausted.next(0), None);
    }
}
