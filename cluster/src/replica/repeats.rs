//! Remembers repeated writes at the leader: once a later attempt has arrived, an earlier one that arrives after it must
//! not be made any more.
//!
//! Writes that are attempted only once are not remembered. An attempt that was sent before this replica was last
//! elected is bound to the earlier term, and is refused for that.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

use crate::limits::REPEATED_WRITES_MAX;
use crate::object::Attempt;

/// The writes that were attempted more than once, with the number of their latest attempt.
#[derive(Default)]
pub(crate) struct Repeats(Mutex<Known>);

#[derive(Default)]
struct Known {
    times: HashMap<u64, u32>,
    /// Their ids in the order of arrival, to forget the oldest.
    order: VecDeque<u64>,
}

impl Repeats {
    /// Returns whether an attempt may be made that had `before` earlier attempts: only when no later one has arrived.
    pub(crate) fn admits(&self, attempt: Attempt, before: u32) -> bool {
        let mut known = self.0.lock();
        let Known { times, order } = &mut *known;
        if before == 0 {
            return times.is_empty() || !times.contains_key(&attempt.number());
        }
        let last = times.entry(attempt.number()).or_insert_with(|| {
            order.push_back(attempt.number());
            before
        });
        let admits = before >= *last;
        *last = before.max(*last);
        if order.len() > REPEATED_WRITES_MAX {
            order.pop_front().and_then(|oldest| times.remove(&oldest));
        }
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_repeated_is_not_made_when_it_comes_late() {
        let (repeats, write) = (Repeats::default(), Attempt::draw());
        assert!(repeats.admits(write, 0) && repeats.admits(write, 0), "it was not repeated");
        assert!(repeats.admits(write, 2));
        assert!(!repeats.admits(write, 0) && !repeats.admits(write, 1) && repeats.admits(write, 2));
        assert!(repeats.admits(Attempt::draw(), 0));
        for _ in 0..REPEATED_WRITES_MAX {
            assert!(repeats.admits(Attempt::draw(), 1));
        }
        assert!(repeats.admits(write, 0), "it is forgotten");
        assert_eq!(repeats.0.lock().times.len(), REPEATED_WRITES_MAX);
    }
}
