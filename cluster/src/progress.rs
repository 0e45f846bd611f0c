//! Log lines about the progress of long work.

use std::time::{Duration, Instant};

/// Logs from time to time how far some work has come.
pub(crate) struct Progress {
    what: &'static str,
    /// The whole amount of work, in any unit.
    total: u64,
    last_logged: Instant,
    every: Duration,
}

impl Progress {
    pub(crate) fn of(what: &'static str, total: u64, every: Duration) -> Progress {
        Progress { what, total, last_logged: Instant::now(), every }
    }

    /// Sets the whole amount of work, as far as it is known by now.
    pub(crate) fn know(&mut self, total: u64) {
        self.total = total;
    }

    /// Logs that `done` units are done, unless it logged less than an interval ago. Returns whether it logged.
    pub(crate) fn at(&mut self, done: u64) -> bool {
        let is_due = self.last_logged.elapsed() >= self.every;
        if is_due {
            self.last_logged = Instant::now();
            tracing::info!(done, of = self.total, "{}", self.what);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_logged_once_per_interval() {
        let mut often = Progress::of("working", 3, Duration::ZERO);
        assert!(often.at(1) && often.at(2));
        let mut seldom = Progress::of("working", 3, Duration::from_secs(3_600));
        assert!(!seldom.at(1) && !seldom.at(2));
    }
}
