//! Cells of volumes, claims, and the kinds of `storage.k8s.io`.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Str, Value};

use super::cell::{self, bool_or, pointer_or, text};
use super::networking::name_or_default;

const UNSET: &str = "<unset>";

/// Name, capacity, access modes, reclaim policy, status, claim, class, attributes class, reason, age; volume mode.
pub fn volume(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let claim = object.at(&["spec", "claimRef"]);
    let claim = match claim {
        Value::Object(_) => cell::join([claim.str_at(&["namespace"]), claim.str_at(&["name"])], "/"),
        _ => Str::default(),
    };
    cells.extend([
        cell::name(object),
        capacity(object.at(&["spec", "capacity"])),
        access_modes(object.list_at(&["spec", "accessModes"])).into(),
        text(object, &["spec", "persistentVolumeReclaimPolicy"]),
        phase(object),
        claim.into(),
        class(object),
        pointer_or(object, &["spec", "volumeAttributesClassName"], UNSET),
        text(object, &["status", "reason"]),
        cell::age(object, now),
        pointer_or(object, &["spec", "volumeMode"], UNSET),
    ]);
}

/// Name, status, volume, capacity, access modes, class, attributes class, age; volume mode.
pub fn claim(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let is_bound = !object.str_at(&["spec", "volumeName"]).is_empty();
    let status = object.at(&["status"]);
    let (capacity, modes) = if is_bound {
        (capacity(status.at(&["capacity"])), access_modes(status.list_at(&["accessModes"])).into())
    } else {
        ("".into(), "".into())
    };
    cells.extend([
        cell::name(object),
        phase(object),
        text(object, &["spec", "volumeName"]),
        capacity,
        modes,
        class(object),
        pointer_or(object, &["spec", "volumeAttributesClassName"], UNSET),
        cell::age(object, now),
        pointer_or(object, &["spec", "volumeMode"], UNSET),
    ]);
}

fn phase(object: &Value) -> Value {
    if cell::is_deleted(object) { "Terminating".into() } else { text(object, &["status", "phase"]) }
}

fn capacity(resources: &Value) -> Value {
    cell::text_or(resources, &["storage"], "0")
}

/// Returns the class that the beta annotation names, else that of the spec.
fn class(object: &Value) -> Value {
    match cell::annotation(object, "volume.beta.kubernetes.io/storage-class") {
        Some(class) => class.into(),
        None => text(object, &["spec", "storageClassName"]),
    }
}

fn access_modes(modes: &[Value]) -> Str {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let has = |mode: &str| modes.iter().any(|item| item.as_str() == Some(mode));
    cell::join(SHORT.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short), ",")
}

/// Name, provisioner, reclaim policy, binding mode, expansion, age.
pub fn storage_class(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    const DEFAULT: [&str; 2] =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    let is_default = DEFAULT.iter().any(|key| cell::annotation(object, key) == Some("true"));
    cells.extend([
        name_or_default(object, is_default),
        text(object, &["provisioner"]),
        pointer_or(object, &["reclaimPolicy"], "Delete"),
        pointer_or(object, &["volumeBindingMode"], "Immediate"),
        bool_or(object, &["allowVolumeExpansion"], false),
        cell::age(object, now),
    ]);
}

/// Name, driver, age.
pub fn attributes_class(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), text(object, &["driverName"]), cell::age(object, now)]);
}

/// Name, attacher, volume, node, attached, age.
pub fn attachment(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([
        cell::name(object),
        text(object, &["spec", "attacher"]),
        text(object, &["spec", "source", "persistentVolumeName"]),
        text(object, &["spec", "nodeName"]),
        bool_or(object, &["status", "attached"], false),
        cell::age(object, now),
    ]);
}

/// Name, attach required, pod info on mount, storage capacity, token requests, republish, modes, age.
pub fn csi_driver(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let tokens: Value = match object.at(&["spec", "tokenRequests"]) {
        Value::Array(requests) => cell::join(requests.iter().map(|r| r.str_at(&["audience"])), ",").into(),
        _ => UNSET.into(),
    };
    let modes = cell::strings(object.list_at(&["spec", "volumeLifecycleModes"]));
    cells.extend([
        cell::name(object),
        bool_or(object, &["spec", "attachRequired"], true),
        bool_or(object, &["spec", "podInfoOnMount"], false),
        bool_or(object, &["spec", "storageCapacity"], false),
        tokens,
        bool_or(object, &["spec", "requiresRepublish"], false),
        if modes.is_empty() { "<none>".into() } else { modes.into() },
        cell::age(object, now),
    ]);
}

/// Name, drivers, age.
pub fn csi_node(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), cell::count(object, &["spec", "drivers"]), cell::age(object, now)]);
}
