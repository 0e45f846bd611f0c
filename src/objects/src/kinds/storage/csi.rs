//! CSIDrivers, CSINodes and VolumeAttachments.

use std::collections::HashSet;

use flotilla_proto::value::{Map, Value};

use crate::field::{ErrorKind, Errors, Path, shown};
use crate::fieldmanager::reset;
use crate::kinds::core::persistent_volume;
use crate::kinds::core::volume_source;
use crate::printing::{Printer, storage};
use crate::rules::{Generation, NameRule, Strategy, metadata, names};

const NODE_ID_BYTES_MAX: usize = 256;
const ATTACHMENT_BYTES_MAX: usize = 256 << 10;
const MESSAGE_BYTES_MAX: usize = 1024;
const TOKENS_LOGGED: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to \
    prevent possible logging of tokens in volume attributes";
const GROUP_POLICIES: [&str; 3] = ["File", "None", "ReadWriteOnceWithFSType"];

/// Rules of CSIDrivers.
pub static DRIVER: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    prepare_create: |object, _| drop_disabled(object, None),
    prepare_update: |object, old, _| {
        drop_disabled(object, Some(old));
        if object.at(&["spec"]) != old.at(&["spec"]) {
            let generation = old.int_at(&["metadata", "generation"]).unwrap_or(0);
            object.set_at(&["metadata", "generation"], generation + 1);
        }
    },
    unconditional_update: false,
    returns_deleted: true,
    default: default_driver,
    warnings: |object, old, warnings| {
        let requests = |object: &Value| object.list_at(&["spec", "tokenRequests"]).to_vec();
        let unset = object.at(&["spec", "serviceAccountTokenInSecrets"]).is_null();
        let changed = old.is_none_or(|old| requests(old) != requests(object));
        if unset && changed && !requests(object).is_empty() {
            warnings.push(TOKENS_LOGGED.to_owned());
        }
    },
    validate: validate_driver,
    validate_update: |object, old, errors| {
        validate_driver(object, errors);
        for (field, name) in [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
        {
            let path = Path::root("spec");
            metadata::immutable(&path.child(name), object.at(&["spec", field]), old.at(&["spec", field]), errors);
        }
    },
    printer: Some(Printer::of(storage::csi_driver)),
    ..Strategy::DEFAULT
};

/// Drops fields of features that are off by default, unless the stored object has them already.
fn drop_disabled(object: &mut Value, old: Option<&Value>) {
    let path = ["spec", "preventPodSchedulingIfMissing"];
    if old.is_none_or(|old| old.at(&path).is_null()) {
        object.remove_at(&path);
    }
}

/// Rules of CSINodes.
pub static NODE: Strategy = Strategy {
    repeats_metadata: false,
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    unconditional_update: false,
    returns_deleted: true,
    validate: validate_node,
    validate_update: validate_node_update,
    printer: Some(Printer::of(storage::csi_node)),
    ..Strategy::DEFAULT
};

/// Rules of VolumeAttachments.
pub static ATTACHMENT: Strategy = Strategy {
    default: |object| {
        let source = object.get_mut("spec").and_then(|spec| spec.get_mut("source"));
        if let Some(inline) = source.and_then(|source| source.get_mut("inlineVolumeSpec")) {
            volume_source::default(inline);
        }
    },
    repeats_metadata: false,
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    status: true,
    unconditional_update: false,
    returns_deleted: true,
    prepare_create: |object, _| object.set_at(&["status"], flotilla_proto::value!({"attached": false})),
    prepare_status: |object, old, _| metadata::reset_for_status(object, old),
    validate: validate_attachment,
    validate_update: |object, old, errors| {
        metadata::validate_again(NameRule::Subdomain, false, object, errors);
        validate_attachment(object, errors);
        validate_same(object, old, errors);
    },
    validate_status: |object, old, errors| {
        validate_attachment(object, errors);
        validate_same(object, old, errors);
    },
    resets: &[("status", reset::SPEC_AND_METADATA)],
    printer: Some(Printer::of(storage::attachment)),
    ..Strategy::DEFAULT
};

fn default_driver(object: &mut Value) {
    let fields: [(&str, Value); 6] = [
        ("attachRequired", true.into()),
        ("podInfoOnMount", false.into()),
        ("storageCapacity", false.into()),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType".into()),
        ("requiresRepublish", false.into()),
        ("seLinuxMount", false.into()),
    ];
    for (field, value) in fields {
        if object.at(&["spec", field]).is_null() {
            object.set_at(&["spec", field], value);
        }
    }
    if object.list_at(&["spec", "volumeLifecycleModes"]).is_empty() {
        object.set_at(&["spec", "volumeLifecycleModes"], vec![Value::from("Persistent")]);
    }
}

fn validate_driver(object: &Value, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    for (field, name) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if spec.at(&[field]).is_null() {
            errors.required(&path.child(name), "");
        }
    }
    if let Some(policy) = spec.at(&["fsGroupPolicy"]).as_str()
        && !GROUP_POLICIES.contains(&policy)
    {
        errors.not_supported(&path.child("fsGroupPolicy"), policy, &GROUP_POLICIES);
    }
    let requests = spec.list_at(&["tokenRequests"]);
    validate_tokens(requests, &path.child("tokenRequests"), errors);
    for mode in spec.list_at(&["volumeLifecycleModes"]).iter().filter_map(Value::as_str) {
        if !matches!(mode, "Persistent" | "Ephemeral") {
            errors.not_supported(&path.child("volumeLifecycleModes"), mode, &["Persistent", "Ephemeral"]);
        }
    }
    if spec.at(&["seLinuxMount"]).is_null() {
        errors.required(&path.child("seLinuxMount"), "");
    }
    if let Some(seconds) = spec.int_at(&["nodeAllocatableUpdatePeriodSeconds"]).filter(|seconds| *seconds < 10) {
        let path = path.child("nodeAllocatableUpdatePeriodSeconds");
        errors.invalid(&path, &seconds.into(), "must be greater than or equal to 10 seconds");
    }
    let secrets = spec.at(&["serviceAccountTokenInSecrets"]);
    if !secrets.is_null() && requests.is_empty() {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid(&path.child("serviceAccountTokenInSecrets"), secrets, why);
    }
}

fn validate_tokens(requests: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut audiences = HashSet::new();
    for (index, request) in requests.iter().enumerate() {
        let place = path.index(index);
        let audience = request.str_at(&["audience"]);
        if !audiences.insert(audience) {
            errors.duplicate(&place.child("audience"), &audience.into());
            continue;
        }
        let seconds = request.int_at(&["expirationSeconds"]);
        let why = match seconds {
            Some(seconds) if seconds < 600 => "may not specify a duration less than 10 minutes",
            Some(seconds) if seconds > 1 << 32 => "may not specify a duration larger than 2^32 seconds",
            _ => continue,
        };
        errors.invalid(&place.child("expirationSeconds"), request.at(&["expirationSeconds"]), why);
    }
}

fn validate_node(object: &Value, errors: &mut Errors) {
    let path = Path::root("spec.drivers");
    let mut seen = HashSet::new();
    for (index, driver) in object.list_at(&["spec", "drivers"]).iter().enumerate() {
        let place = path.index(index);
        let name = driver.str_at(&["name"]);
        volume_source::validate_driver(name, &place.child("name"), errors);
        let id = driver.str_at(&["nodeID"]);
        if id.is_empty() {
            errors.required(&place.child("nodeID"), "");
        }
        if id.len() > NODE_ID_BYTES_MAX {
            let why = format!("must be {NODE_ID_BYTES_MAX} characters or less");
            errors.invalid_str(&place.child("nodeID"), id, why);
        }
        let count = driver.at(&["allocatable", "count"]);
        if count.as_int().is_some_and(|count| count < 0) {
            let place = place.child("allocatable");
            errors.invalid(&place.child("count"), count, "must be greater than or equal to 0");
        }
        if !seen.insert(name) {
            errors.duplicate(&place.child("name"), &name.into());
        }
        let keys = driver.list_at(&["topologyKeys"]);
        for (index, key) in keys.iter().enumerate() {
            let text = key.as_str().unwrap_or("");
            if text.is_empty() {
                errors.required(&place, "");
            }
            if keys[..index].contains(key) {
                errors.duplicate(&place, key);
            }
            names::check(&place, text, names::qualified_name, errors);
        }
    }
}

fn validate_node_update(object: &Value, old: &Value, errors: &mut Errors) {
    metadata::validate_again(NODE.name, false, object, errors);
    validate_node(object, errors);
    let fixed = |driver: &Value| {
        let mut driver = driver.clone();
        driver.remove_at(&["allocatable"]);
        driver
    };
    for before in old.list_at(&["spec", "drivers"]) {
        for after in object.list_at(&["spec", "drivers"]) {
            if before.str_at(&["name"]) == after.str_at(&["name"]) && fixed(before) != fixed(after) {
                let text = format!(
                    "{{\"Name\":{},\"NodeID\":{},\"TopologyKeys\":{},\"Allocatable\":null}}",
                    shown(after.at(&["name"])),
                    shown(after.at(&["nodeID"])),
                    shown(after.at(&["topologyKeys"]))
                );
                let path = Path::root("spec.drivers");
                errors.push(ErrorKind::Invalid, &path, text, metadata::IMMUTABLE);
            }
        }
    }
}

fn validate_same(object: &Value, old: &Value, errors: &mut Errors) {
    if object.at(&["spec"]) != old.at(&["spec"]) {
        let text = crate::rules::shown::text("VolumeAttachmentSpec", object.at(&["spec"]));
        errors.push(ErrorKind::Invalid, &Path::root("spec"), text, metadata::IMMUTABLE);
    }
}

fn validate_attachment(object: &Value, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    volume_source::validate_driver(spec.str_at(&["attacher"]), &path.child("attacher"), errors);
    let source = path.child("source");
    let (name, inline) = (spec.at(&["source", "persistentVolumeName"]), spec.at(&["source", "inlineVolumeSpec"]));
    let one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (name.is_null(), inline.is_null()) {
        (true, true) => errors.required(&source, one),
        (false, false) => errors.forbidden(&source, one),
        (false, true) if name.as_str() == Some("") => {
            let why = "must specify non empty persistentVolumeName";
            errors.required(&source.child("persistentVolumeName"), why);
        }
        (false, true) => {}
        (true, false) => validate_inline(inline, &source.child("inlineVolumeSpec"), errors),
    }
    let node = spec.str_at(&["nodeName"]);
    names::check(&path.child("nodeName"), node, names::dns1123_subdomain, errors);
    validate_attachment_status(object.at(&["status"]), errors);
    if let Some(name) = name.as_str() {
        let path = Path::root("spec.source.persistentVolumeName");
        names::check(&path, name, names::dns1123_subdomain, errors);
    }
}

/// Checks an inline volume of an attachment: hardly anything but a CSI source is allowed.
fn validate_inline(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let context = "in the context of inline volumes";
    let set = |field: &str| match spec.at(&[field]) {
        Value::Null => false,
        Value::Str(text) => !text.is_empty(),
        Value::Object(map) => field != "capacity" || !map.is_empty(),
        _ => true,
    };
    let forbid = |field: &str, errors: &mut Errors| {
        if set(field) {
            errors.forbidden(&path.child(field), format!("may not be specified {context}"));
        }
    };
    forbid("claimRef", errors);
    forbid("capacity", errors);
    if spec.at(&["csi"]).is_null() {
        errors.required(&path.child("csi"), format!("has to be specified {context}"));
    }
    let modes = spec.list_at(&["accessModes"]);
    if modes.is_empty() {
        errors.required(&path.child("accessModes"), "");
    }
    persistent_volume::validate_modes(modes, &path.child("accessModes"), errors);
    if !matches!(spec.str_at(&["persistentVolumeReclaimPolicy"]), "" | "Retain") {
        let why = format!("may only be Retain {context}");
        errors.forbidden(&path.child("persistentVolumeReclaimPolicy"), why);
    }
    forbid("nodeAffinity", errors);
    volume_source::validate(spec, "", path, errors);
    forbid("storageClassName", errors);
    if spec.at(&["volumeMode"]).as_str().is_some_and(|mode| mode != "Filesystem") {
        let why = format!("may not specify volumeMode other than Filesystem {context}");
        errors.forbidden(&path.child("volumeMode"), why);
    }
}

fn validate_attachment_status(status: &Value, errors: &mut Errors) {
    let path = Path::root("status");
    let metadata = status.map_at(&["attachmentMetadata"]).into_iter().flat_map(Map::iter);
    let total: usize = metadata.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if total > ATTACHMENT_BYTES_MAX {
        errors.too_long(&path.child("attachmentMetadata"), ATTACHMENT_BYTES_MAX);
    }
    for field in ["attachError", "detachError"] {
        let (error, path) = (status.at(&[field]), path.child(field));
        if error.str_at(&["message"]).len() > MESSAGE_BYTES_MAX {
            errors.too_long(&path.child("message"), ATTACHMENT_BYTES_MAX);
        }
        if let Some(code) = error.int_at(&["errorCode"]).filter(|code| *code < 0) {
            errors.invalid(&path.child("errorCode"), &code.into(), names::between(0, i32::MAX.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn drivers_nodes_and_attachments() {
        assert!(DRIVER.broken_fields(value!({"spec": {}})).is_empty());
        let tokens = value!([{"audience": "a", "expirationSeconds": 5}, {"audience": "a"}]);
        assert_eq!(
            DRIVER.broken_fields(value!({"spec": {"tokenRequests": tokens}})),
            ["spec.tokenRequests[0].expirationSeconds", "spec.tokenRequests[1].audience"]
        );
        let driver = value!({"name": "d.example.com", "nodeID": ""});
        assert_eq!(NODE.broken_fields(value!({"spec": {"drivers": [driver]}})), ["spec.drivers[0].nodeID"]);
        let attachment = |source: Value| value!({"spec": {"attacher": "a", "nodeName": "n", "source": source}});
        assert!(ATTACHMENT.broken_fields(attachment(value!({"persistentVolumeName": "v"}))).is_empty());
        assert_eq!(ATTACHMENT.broken_fields(attachment(value!({}))), ["spec.source"]);
    }
}
