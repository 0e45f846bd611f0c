//! Reads the wall clock. Nothing else does, so that all other code gets times as arguments or uses durations.

use std::time::{SystemTime, UNIX_EPOCH};

use flotilla_proto::time::Timestamp;

/// Returns the time of this machine's clock. It may be wrong, and it may jump.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the time of this machine's clock as seconds since 1970. Returns zero for an earlier time.
pub fn unix_seconds() -> f64 {
    now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Returns the time of this machine's clock in the form that objects use. Returns the beginning of 1970 for an earlier
/// time.
pub fn timestamp() -> Timestamp {
    let since = now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
}

/// Returns the time of this machine's clock as a text in RFC 3339, with whole seconds.
pub fn text() -> String {
    timestamp().to_string()
}
