//! The wall clock: the only place that reads it, so that every other use of time is a duration or handed in.

use std::time::{SystemTime, UNIX_EPOCH};

use flotilla_proto::time::Timestamp;

/// The time that the clock of this machine shows. It may be wrong, and it may jump.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// The same as objects state it; 1970 for a clock that shows an earlier time.
pub fn timestamp() -> Timestamp {
    let since = now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
}
