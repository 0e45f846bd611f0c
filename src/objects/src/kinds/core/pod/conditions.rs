//! Conditions of pods that the server itself writes.

use flotilla_proto::value;
use flotilla_proto::value::Value;

pub use crate::rules::conditions::set;
use crate::wall_clock;

/// Returns a condition that changed at the present time; `reason` and `message` may be empty.
pub fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    let mut condition =
        value!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": (wall_clock::text())});
    for (key, text) in [("reason", reason), ("message", message)] {
        if !text.is_empty() {
            condition.set_at(&[key], text);
        }
    }
    condition
}
