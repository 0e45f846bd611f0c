//! What is told of work that takes long, while it lasts.

use std::time::{Duration, Instant};

/// Tells in the log now and then how far some work is.
pub(crate) struct Progress {
    what: &'static str,
    /// What there is to do, in some unit.
    total: u64,
    told: Instant,
    every: Duration,
}

impl Progress {
    pub(crate) fn of(what: &'static str, total: u64, every: Duration) -> Progress {
        Progress { what, total, told: Instant::now(), every }
    }

    /// There is so much to do, as is known by now.
    pub(crate) fn know(&mut self, total: u64) {
        self.total = total;
    }

    /// Tells that so much is done, unless something was told a moment ago; whether it did.
    pub(crate) fn at(&mut self, done: u64) -> bool {
        let tells = self.told.elapsed() >= self.every;
        if tells {
            self.told = Instant::now();
            tracing::info!(done, of = self.total, "{}", self.what);
        }
        tells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_now_and_then() {
        let mut often = Progress::of("working", 3, Duration::ZERO);
        assert!(often.at(1) && often.at(2));
        let mut seldom = Progress::of("working", 3, Duration::from_secs(3_600));
        assert!(!seldom.at(1) && !seldom.at(2));
    }
}
