//! Remembers repeated writes at the leader: once a later attempt has arrived, an earlier one that arrives after it must
//! not be made any more.
//!
//! Writes that are attempted only once are not remembered. An attempt that was sent before this replica was last
//! elected is bound to the earlier term, and is refused for that.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

use crate::limits::REPEATED_WRITES_MAX;
use crate::object::WriteId;

/// The writes that were attempted more than once, with the number of their latest attempt.
#[derive(Default)]
pub(crate) struct LatestAttempts(Mutex<Known>);

#[derive(Default)]
struct Known {
    times: HashMap<u64, u32>,
    /// Their ids in the order of arrival, to forget the oldest.
    order: VecDeque<u64>,
}

impl LatestAttempts {
    /// Returns whether an attempt after `before` earlier ones may be made: only when no later one has arrived.
    pub(crate) fn admits(&self, write_id: WriteId, before: u32) -> bool {
        let mut known = self.0.lock();
        let Known { times, order } = &mut *known;
        if before == 0 {
            return times.is_empty() || !times.contains_key(&write_id.number());
        }
        let last = times.entry(write_id.number()).or_insert_with(|| {
            order.push_back(write_id.number());
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
    fn an_earlier_attempt_that_arrives_late_is_not_made() {
        let (latest_attempts, write) = (LatestAttempts::default(), WriteId::draw());
        assert!(latest_attempts.admits(write, 0) && latest_attempts.admits(write, 0), "it was not repeated");
        assert!(latest_attempts.admits(write, 2));
        assert!(
            !latest_attempts.admits(write, 0) && !latest_attempts.admits(write, 1) && latest_attempts.admits(write, 2)
        );
        assert!(latest_attempts.admits(WriteId::draw(), 0));
        for _ in 0..REPEATED_WRITES_MAX {
            assert!(latest_attempts.admits(WriteId::draw(), 1));
        }
        assert!(latest_attempts.admits(write, 0), "it is forgotten");
        assert_eq!(latest_attempts.0.lock().times.len(), REPEATED_WRITES_MAX);
    }
}
