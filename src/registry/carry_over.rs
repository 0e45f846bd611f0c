//! Restores the fields that an update must not change.

use flotilla_proto::value::{Map, Value};

use super::create::reset_status;
use super::{Target, now};
use crate::rules::Generation;

/// Restores the fields that a client may not change, and raises the generation if the spec changed.
pub(super) fn prepare(target: Target<'_>, new: &mut Value, old: &Value) {
    let (served, strategy) = (target.served, target.served.strategy);
    keep_system_fields(new, old);
    if target.subresource == "status" {
        restore_all_but_status(new, old);
        (strategy.prepare_status)(new, old, now());
        return;
    }
    if let Some(rules) = strategy.subresource(target.subresource) {
        (rules.prepare)(new, old, now());
        return;
    }
    if strategy.status {
        match old.get("status") {
            Some(status) if new.get("status") == Some(status) => {}
            Some(status) => new.set_at(&["status"], status.clone()),
            None => reset_status(&served.stored.of, new),
        }
    }
    if strategy.generation == Generation::Spec && new.at(&["spec"]) != old.at(&["spec"]) {
        let generation = old.int_at(&["metadata", "generation"]).unwrap_or(0);
        new.set_at(&["metadata", "generation"], generation + 1);
    }
    (strategy.prepare_update)(new, old, now());
}

/// Restores metadata that only the server sets, and fills in the members that the client left out.
fn keep_system_fields(new: &mut Value, old: &Value) {
    let mut keep = |field: &str, always: bool| {
        let path = ["metadata", field];
        match old.at(&path) {
            Value::Null if always => {
                new.remove_at(&path);
            }
            Value::Null => {}
            value if always || new.at(&path).is_null() => new.set_at(&path, value.clone()),
            _ => {}
        }
    };
    keep("uid", false);
    keep("creationTimestamp", true);
    keep("generation", true);
    keep("deletionGracePeriodSeconds", false);
    keep("resourceVersion", true);
    keep("selfLink", true);
    let deletion = ["metadata", "deletionTimestamp"];
    if !old.at(&deletion).is_null() {
        new.set_at(&deletion, old.at(&deletion).clone());
    }
}

/// Restores everything but `status` and metadata after a write of `/status`.
fn restore_all_but_status(new: &mut Value, old: &Value) {
    let Some(map) = new.as_object_mut() else { return };
    let own = |key: &str| matches!(key, "metadata" | "status");
    // Comparing costs less than copying, and mostly nothing differs.
    map.retain(|key, value| own(key) || old.get(key) == Some(value));
    for (key, value) in old.as_object().into_iter().flat_map(Map::iter) {
        if !own(key) && !map.contains_key(key) {
            map.insert(key, value.clone());
        }
    }
}
