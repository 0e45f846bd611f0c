//! Cells of the kinds of dynamic resource allocation: claims and slices of devices.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::cell::{self, text};

/// Name, state, age.
pub fn claim(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let is_allocated = object.at(&["status", "allocation"]).as_object().is_some();
    let is_reserved = !object.list_at(&["status", "reservedFor"]).is_empty();
    let state = match (cell::is_deleted(object), is_allocated, is_reserved) {
        (true, false, _) => "deleted",
        (false, false, _) => "pending",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
    };
    cells.extend([cell::name(object), state.into(), cell::age(object, now)]);
}

/// Name, node, driver, pool, age.
pub fn slice(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([
        cell::name(object),
        text(object, &["spec", "nodeName"]),
        text(object, &["spec", "driver"]),
        text(object, &["spec", "pool", "name"]),
        cell::age(object, now),
    ]);
}
