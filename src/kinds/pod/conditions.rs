//! Conditions of pods, as the server itself writes them.

use std::time::{SystemTime, UNIX_EPOCH};

use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

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

/// Adds a condition or replaces the one of its type, whose time it keeps if the status stays the same.
pub fn set(pod: &mut Value, mut condition: Value) {
    let path = ["status", "conditions"];
    if pod.at(&path).as_array().is_none() {
        pod.set_at(&path, Vec::new());
    }
    let list = pod.get_mut("status").and_then(|status| status.get_mut("conditions")).and_then(Value::as_array_mut);
    let Some(list) = list else { return };
    let kind = condition.str_at(&["type"]).to_owned();
    match list.iter_mut().find(|known| known.str_at(&["type"]) == kind) {
        Some(known) => {
            if known.at(&["status"]) == condition.at(&["status"]) {
                condition.set_at(&["lastTransitionTime"], known.at(&["lastTransitionTime"]).clone());
            }
            *known = condition;
        }
        None => list.push(condition),
    }
}
