//! Conditions of pods that the server itself writes.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

pub use crate::rules::conditions::set;

/// Returns a condition that changed at the time `now`; `reason` and `message` may be empty.
pub fn condition(kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let mut condition =
        value!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": (now.to_string())});
    for (key, text) in [("reason", reason), ("message", message)] {
        if !text.is_empty() {
            condition.set_at(&[key], text);
        }
    }
    condition
}
