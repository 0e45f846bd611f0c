//! Counts lost events, and logs them at a bounded rate.

use std::fmt::Display;
use std::time::Instant;

use parking_lot::Mutex;

use crate::limits;
use crate::prometheus::{Meter, families};

/// The lost events of one part of auditing.
pub struct Losses {
    counter: metrics::Counter,
    plugin: &'static str,
    told: Mutex<Told>,
}

/// The losses that the log already states.
#[derive(Debug, Default)]
struct Told {
    /// When the last line was logged.
    at: Option<Instant>,
    /// Lost events that no line has stated yet.
    more: u64,
}

impl Told {
    /// Adds lost events. Returns the number that the next line states. Returns `None` if it is too early for a line.
    fn add(&mut self, count: u64, now: Instant) -> Option<u64> {
        self.more += count;
        if self.at.is_some_and(|at| now.saturating_duration_since(at) < limits::AUDIT_LOSS_INTERVAL) {
            return None;
        }
        self.at = Some(now);
        Some(std::mem::take(&mut self.more))
    }
}

impl std::fmt::Debug for Losses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Losses").field("plugin", &self.plugin).finish_non_exhaustive()
    }
}

impl Losses {
    /// Makes the counter. `plugin` is the label: `log`, `webhook`, `buffered` or `truncate`, as in the reference.
    pub fn new(meter: &Meter, plugin: &'static str) -> Self {
        Self { counter: meter.counter(families::AUDIT_ERRORS, &[("plugin", plugin)]), plugin, told: Mutex::default() }
    }

    /// Counts lost events, and logs them unless a line was logged a moment ago.
    pub fn add(&self, count: u64, why: &dyn Display) {
        self.counter.increment(count);
        let told = self.told.lock().add(count, Instant::now());
        if let Some(count) = told {
            tracing::error!(plugin = self.plugin, count, %why, "events of auditing were lost");
        }
    }

    /// Logs the lost events that no line has stated yet.
    pub fn finish(&self) {
        let more = std::mem::take(&mut self.told.lock().more);
        if more > 0 {
            tracing::error!(plugin = self.plugin, count = more, "more events of auditing were lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_states_many_losses() {
        let (mut told, now) = (Told::default(), Instant::now());
        assert_eq!(told.add(1, now), Some(1));
        assert_eq!(told.add(2, now), None);
        assert_eq!(told.add(3, now), None);
        assert_eq!(told.add(4, now + limits::AUDIT_LOSS_INTERVAL), Some(9));
    }
}
