//! The clock that people set.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A clock that people set: it may be off, and it may jump. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WallClock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl WallClock {
    /// The clock of this machine.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
    pub(crate) fn system() -> WallClock {
        WallClock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
    }

    /// A clock that shows what this answers, in milliseconds since 1970.
    pub(crate) fn new(unix_ms: impl Fn() -> u64 + Send + Sync + 'static) -> WallClock {
        WallClock(Arc::new(unix_ms))
    }

    /// Milliseconds since 1970.
    pub(crate) fn unix_ms(&self) -> u64 {
        (self.0)()
    }
}
