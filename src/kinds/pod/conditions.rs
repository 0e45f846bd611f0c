//! Conditions of pods, as the server itself writes them.

use std::time::{SystemTime, UNIX_EPOCH};

use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

pub use crate::rules::conditions::set;

/// The current time as conditions state it.
pub fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { seconds: i64::try_from(since.as_secs()).unwrap_or_default(), nanos: 0 }.to_string()
}

/// A condition that has just come about; `reason` and `message` may be empty.
pub fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    let mut condition = value!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": (now())});
    for (key, text) in [("reason", reason), ("message", message)] {
        if !text.is_empty() {
            condition.set_at(&[key], text);
        }
    }
    condition
}
