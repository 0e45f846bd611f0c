//! The wall clock, which administrators and NTP can set.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A wall clock. It may be wrong, and it may jump. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WallClock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl WallClock {
    /// Returns the wall clock of this machine.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
    pub(crate) fn system() -> WallClock {
        WallClock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
    }

    /// Returns a clock that reads milliseconds since 1970 from `unix_ms`.
    pub(crate) fn new(unix_ms: impl Fn() -> u64 + Send + Sync + 'static) -> WallClock {
        WallClock(Arc::new(unix_ms))
    }

    /// Returns the time in milliseconds since 1970.
    pub(crate) fn unix_ms(&self) -> u64 {
        (self.0)()
    }
}
