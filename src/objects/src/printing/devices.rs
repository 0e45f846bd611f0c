//! Cells of the kinds of dynamic resource allocation.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::age;
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

/// Name, key, value and effect of the taint, time since it was added, age.
pub fn taint_rule(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.push(cell::name(object));
    cells.extend(["key", "value", "effect"].map(|field| text(object, &["spec", "taint", field])));
    cells.push(age::since(object.at(&["spec", "taint", "timeAdded"]), now).into());
    cells.push(cell::age(object, now));
}

/// The numbers of a pool, in the order of their columns.
const POOL_NUMBERS: [&str; 4] = ["totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices"];

/// Name, driver, sums of the pools' devices, pools with errors, pools that match, status, time since the answer.
pub fn pool_status_request(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), text(object, &["spec", "driver"])]);
    let ended = object.list_at(&["status", "conditions"]).iter().find(|condition| {
        matches!(condition.str_at(&["type"]), "Complete" | "Failed") && condition.str_at(&["status"]) == "True"
    });
    let end = ended.map_or("", |condition| condition.str_at(&["type"]));
    let pools = object.list_at(&["status", "pools"]);
    let is_counted = object.at(&["status"]).as_object().is_some() && end != "Failed";
    let shown = |count: i64| if is_counted { Value::from(count.to_string()) } else { "-".into() };
    let sum = |field: &str| pools.iter().map(|pool| cell::number(pool, &[field])).sum();
    cells.extend(POOL_NUMBERS.map(|field| shown(sum(field))));
    let errors = pools.iter().filter(|pool| !pool.at(&["validationError"]).is_null()).count();
    cells.push(shown(i64::try_from(errors).unwrap_or(i64::MAX)));
    let (matching, listed) = (cell::number(object, &["status", "poolCount"]), pools.len());
    let is_cut = i64::try_from(listed).is_ok_and(|listed| matching > listed);
    let status = match end {
        "" => "Pending".into(),
        "Complete" if is_cut => Value::from(format!("Complete ({listed}/{matching} pools)")),
        end => end.into(),
    };
    let completed = ended.filter(|_| end == "Complete");
    let completed =
        completed.map_or("<none>".into(), |condition| age::since(condition.at(&["lastTransitionTime"]), now));
    cells.extend([matching.into(), status, completed.into()]);
}
