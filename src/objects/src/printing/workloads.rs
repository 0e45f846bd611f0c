//! Cells of workloads: replication controllers and the kinds of `apps`, with scales and disruption budgets.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Str, Value};

use super::cell::{self, int, number};
use super::selector;
use crate::api_version;

const TEMPLATE_CONTAINERS: [&str; 4] = ["spec", "template", "spec", "containers"];

/// Name, desired, current, ready, age; containers, images, selector.
pub fn replication_controller(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    replicas(object, now, cells);
    cells.extend(cell::containers(object.list_at(&TEMPLATE_CONTAINERS)));
    cells.push(selector::labels(object.map_at(&["spec", "selector"])));
}

/// As [`replication_controller`].
pub fn replica_set(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    replicas(object, now, cells);
    cells.extend(cell::containers(object.list_at(&TEMPLATE_CONTAINERS)));
    cells.push(selector::text_or_none(object.at(&["spec", "selector"])));
}

fn replicas(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([
        cell::name(object),
        int(object, &["spec", "replicas"]),
        int(object, &["status", "replicas"]),
        int(object, &["status", "readyReplicas"]),
        cell::age(object, now),
    ]);
}

/// Returns the cell `ready/desired` of replicas.
fn ready(object: &Value) -> Value {
    format!("{}/{}", number(object, &["status", "readyReplicas"]), number(object, &["spec", "replicas"])).into()
}

/// Name, ready, up-to-date, available, age; containers, images, selector.
pub fn deployment(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([
        cell::name(object),
        ready(object),
        int(object, &["status", "updatedReplicas"]),
        int(object, &["status", "availableReplicas"]),
        cell::age(object, now),
    ]);
    cells.extend(cell::containers(object.list_at(&TEMPLATE_CONTAINERS)));
    cells.push(selector::text(object.at(&["spec", "selector"])).unwrap_or(Str::const_new("<invalid>")).into());
}

/// Name, ready, age; containers, images.
pub fn stateful_set(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), ready(object), cell::age(object, now)]);
    cells.extend(cell::containers(object.list_at(&TEMPLATE_CONTAINERS)));
}

/// Name, desired, current, ready, up-to-date, available, node selector, age; containers, images, selector.
pub fn daemon_set(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([
        cell::name(object),
        int(object, &["status", "desiredNumberScheduled"]),
        int(object, &["status", "currentNumberScheduled"]),
        int(object, &["status", "numberReady"]),
        int(object, &["status", "updatedNumberScheduled"]),
        int(object, &["status", "numberAvailable"]),
        selector::labels(object.map_at(&["spec", "template", "spec", "nodeSelector"])),
        cell::age(object, now),
    ]);
    cells.extend(cell::containers(object.list_at(&TEMPLATE_CONTAINERS)));
    cells.push(selector::text_or_none(object.at(&["spec", "selector"])));
}

/// Name, controller, revision, age.
pub fn controller_revision(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), controller(object), int(object, &["revision"]), cell::age(object, now)]);
}

/// Returns the controlling owner as `kind.group/name`.
fn controller(object: &Value) -> Value {
    let owners = object.list_at(&["metadata", "ownerReferences"]);
    let Some(owner) = owners.iter().find(|owner| owner.is_true_at(&["controller"])) else {
        return "<none>".into();
    };
    let group = api_version::group(owner.str_at(&["apiVersion"]));
    let (kind, name) = (owner.str_at(&["kind"]), owner.str_at(&["name"]));
    match (kind.is_empty(), group.is_empty()) {
        (true, true) => name.into(),
        (_, true) => format!("{}/{name}", kind.to_lowercase()).into(),
        _ => format!("{}.{}/{name}", kind.to_lowercase(), group.to_lowercase()).into(),
    }
}

/// Name, desired, available, age of a scale.
pub fn scale(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([
        cell::name(object),
        int(object, &["spec", "replicas"]),
        int(object, &["status", "replicas"]),
        cell::age(object, now),
    ]);
}

/// Name, min available, max unavailable, allowed disruptions, age.
pub fn disruption_budget(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([
        cell::name(object),
        int_or_string(object.at(&["spec", "minAvailable"])),
        int_or_string(object.at(&["spec", "maxUnavailable"])),
        int(object, &["status", "disruptionsAllowed"]),
        cell::age(object, now),
    ]);
}

fn int_or_string(value: &Value) -> Value {
    match value {
        Value::Int(number) => number.to_string().into(),
        Value::Str(text) => Value::Str(text.clone()),
        _ => "N/A".into(),
    }
}
