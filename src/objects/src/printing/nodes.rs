//! Cells of nodes, runtime classes, priority classes, and component statuses.

use std::collections::BTreeSet;

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Map, Str, Value};

use super::age::UNKNOWN;
use super::cell::{self, text, text_or};

/// Name, status, roles, age, version; addresses, images and versions of the system.
pub fn node(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let info = object.at(&["status", "nodeInfo"]);
    cells.extend([
        cell::name(object),
        status(object).into(),
        roles(object),
        cell::age(object, now),
        text(info, &["kubeletVersion"]),
        address(object, "InternalIP"),
        address(object, "ExternalIP"),
        text_or(info, &["osImage"], UNKNOWN),
        kernel(info),
        text_or(info, &["containerRuntimeVersion"], UNKNOWN),
    ]);
}

fn status(object: &Value) -> &'static str {
    // If a type has several conditions, the last one counts here.
    let conditions = object.list_at(&["status", "conditions"]);
    let ready = conditions.iter().rev().find(|condition| condition.str_at(&["type"]) == "Ready");
    let ready = ready.map(|condition| condition.str_at(&["status"]) == "True");
    match (ready, object.is_true_at(&["spec", "unschedulable"])) {
        (Some(true), false) => "Ready",
        (Some(true), true) => "Ready,SchedulingDisabled",
        (Some(false), false) => "NotReady",
        (Some(false), true) => "NotReady,SchedulingDisabled",
        (None, false) => "Unknown",
        (None, true) => "Unknown,SchedulingDisabled",
    }
}

/// Returns the roles of a node, which are in labels: as a part of the key, or as the value of the older label.
fn roles(object: &Value) -> Value {
    let labels = object.map_at(&["metadata", "labels"]).into_iter().flat_map(Map::iter);
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { "<none>".into() } else { cell::join(roles, ",").into() }
}

fn address(object: &Value, kind: &str) -> Value {
    let addresses = object.list_at(&["status", "addresses"]);
    match addresses.iter().find(|address| address.str_at(&["type"]) == kind) {
        Some(address) => text(address, &["address"]),
        None => "<none>".into(),
    }
}

fn kernel(info: &Value) -> Value {
    let version = match info.str_at(&["kernelVersion"]) {
        "" => UNKNOWN,
        version => version,
    };
    match info.str_at(&["architecture"]) {
        "" => version.into(),
        architecture => cell::join([version, " (", architecture, ")"], "").into(),
    }
}

/// Name, handler, age.
pub fn runtime_class(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), text(object, &["handler"]), cell::age(object, now)]);
}

/// Name, value, global default, age, preemption policy.
pub fn priority_class(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([
        cell::name(object),
        cell::int(object, &["value"]),
        cell::bool_or(object, &["globalDefault"], false),
        cell::age(object, now),
        text(object, &["preemptionPolicy"]),
    ]);
}

/// Name, status, message, error.
pub fn component_status(object: &Value, _now: Timestamp, cells: &mut Vec<Value>) {
    let conditions = object.list_at(&["conditions"]);
    let health = conditions.iter().find(|condition| condition.str_at(&["type"]) == "Healthy");
    let status = match health.map(|condition| condition.str_at(&["status"])) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    };
    let part = |field| health.map_or(Value::Str(Str::default()), |condition| text(condition, &[field]));
    cells.extend([cell::name(object), status.into(), part("message"), part("error")]);
}
