//! Writes that were asked for again: what comes of an earlier time after a later one is not made any more.
//!
//! Nothing that is asked for once is remembered. A write that was asked of this replica before it last began to lead is
//! bound to that term, and so is not made either.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

use crate::limits::REPEATED_WRITES_MAX;
use crate::object::Attempt;

/// The writes that were asked for more than once, and how often.
#[derive(Default)]
pub(crate) struct Repeats(Mutex<Known>);

#[derive(Default)]
struct Known {
    times: HashMap<u64, u32>,
    /// In the order in which they came, to forget the oldest.
    order: VecDeque<u64>,
}

impl Repeats {
    /// Whether a write is to be made that was asked for so many times before: not when it was repeated meanwhile.
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
