//! The time of a simulation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds since a simulation began. Cheap to clone; all clones show the same.
#[derive(Clone, Default)]
pub(super) struct Time {
    now_ms: Arc<AtomicU64>,
    stamped: Arc<AtomicU64>,
}

impl Time {
    pub(super) fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, now_ms: u64) {
        self.now_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Returns microseconds since the simulation began, never the same twice: a larger stamp is a later event.
    pub(super) fn stamp(&self) -> u64 {
        let stamp = (self.now_ms() * 1_000).max(self.stamped.load(Ordering::Relaxed) + 1);
        self.stamped.store(stamp, Ordering::Relaxed);
        stamp
    }
}
