//! PersistentVolumes.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::volume_source;
use crate::field::{ErrorKind, Errors, Path, shown};
use crate::printing::{Printer, storage};
use crate::rules::{Generation, NameRule, Strategy, metadata, names, node_selector, protection, resources, shown};

/// Access modes, as messages list them.
pub const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
/// Volume modes, as messages list them.
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const RECLAIM_POLICIES: [&str; 3] = ["Delete", "Recycle", "Retain"];
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Rules of PersistentVolumes.
pub static STRATEGY: Strategy = Strategy {
    repeats_metadata: false,
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    status: true,
    returns_deleted: true,
    default,
    prepare_create,
    prepare_status,
    validate: |object, errors| validate(object, None, errors),
    validate_update,
    warnings,
    protection: Some(&protection::VOLUMES),
    printer: Some(Printer::of(storage::volume)),
    ..Strategy::DEFAULT
};

fn default(object: &mut Value) {
    if object.str_at(&["status", "phase"]).is_empty() {
        object.set_at(&["status", "phase"], "Pending");
    }
    let Some(spec) = object.get_mut("spec") else { return };
    resources::round_up(spec.get_mut("capacity"));
    if spec.str_at(&["persistentVolumeReclaimPolicy"]).is_empty() {
        spec.set_at(&["persistentVolumeReclaimPolicy"], "Retain");
    }
    if spec.at(&["volumeMode"]).is_null() {
        spec.set_at(&["volumeMode"], "Filesystem");
    }
    volume_source::default(spec);
}

fn prepare_create(object: &mut Value, now: Timestamp) {
    object.set_at(&["status"], value!({"phase": "Pending", "lastPhaseTransitionTime": (now.to_string())}));
    protection::add_finalizer(object, protection::VOLUMES.finalizer);
}

/// Sets the time of the last phase change when the phase changes, else keeps it.
fn prepare_status(object: &mut Value, old: &Value, now: Timestamp) {
    let path = ["status", "lastPhaseTransitionTime"];
    let (phase, time) = (object.str_at(&["status", "phase"]), object.at(&path));
    let before = old.at(&path);
    if phase == old.str_at(&["status", "phase"]) {
        if time.is_null() && !before.is_null() {
            object.set_at(&path, before.clone());
        }
    } else if time.is_null() || time == before {
        object.set_at(&path, now.to_string());
    }
}

/// Checks the fields that volumes and claims share: storage class and volume mode.
pub fn validate_class_and_mode(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let class = spec.str_at(&["storageClassName"]);
    if !class.is_empty() {
        names::check(&path.child("storageClassName"), class, names::dns1123_subdomain, errors);
    }
    if let Some(mode) = spec.at(&["volumeMode"]).as_str()
        && !VOLUME_MODES.contains(&mode)
    {
        errors.not_supported(&path.child("volumeMode"), mode, &VOLUME_MODES);
    }
}

/// Checks access modes.
pub fn validate_modes(modes: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for mode in modes.iter().filter_map(Value::as_str).filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.not_supported(path, mode, &ACCESS_MODES);
    }
    let known = |mode: &Value| mode.as_str().is_some_and(|mode| ACCESS_MODES.contains(&mode));
    let single = |mode: &Value| mode.as_str() == Some("ReadWriteOncePod");
    if modes.iter().any(single) && modes.iter().any(|mode| known(mode) && !single(mode)) {
        errors.forbidden(path, "may not use ReadWriteOncePod with other access modes");
    }
}

fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (spec, path) = (object.at(&["spec"]), Path::root("spec"));
    validate_spec(spec, old.map(|old| old.at(&["spec"])), object.str_at(&["metadata", "name"]), &path, errors);
    // Mount options were an annotation first, and only for these types of volume.
    let mountable = [
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "nfs",
        "rbd",
        "quobyte",
        "iscsi",
        "cinder",
        "cephfs",
        "azureFile",
        "vsphereVolume",
        "azureDisk",
        "photonPersistentDisk",
    ];
    let annotated = !object.at(&["metadata", "annotations", MOUNT_OPTIONS]).is_null();
    if annotated && !mountable.iter().any(|source| !spec.at(&[source]).is_null()) {
        let path = Path::root("metadata.annotations");
        errors.forbidden(&path.child(MOUNT_OPTIONS), "may not specify mount options for this volume type");
    }
}

/// Checks the spec of a volume; `name` is the volume's name, `old` the stored volume of an update.
pub fn validate_spec(spec: &Value, old: Option<&Value>, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let modes = spec.list_at(&["accessModes"]);
    if modes.is_empty() {
        errors.required(&path.child("accessModes"), "");
    }
    validate_modes(modes, &path.child("accessModes"), errors);
    validate_capacity(spec, &path.child("capacity"), errors);
    let policy = spec.str_at(&["persistentVolumeReclaimPolicy"]);
    if !policy.is_empty() && !RECLAIM_POLICIES.contains(&policy) {
        errors.not_supported(&path.child("persistentVolumeReclaimPolicy"), policy, &RECLAIM_POLICIES);
    }
    let affinity = spec.at(&["nodeAffinity"]);
    if !affinity.is_null() {
        let path = path.child("nodeAffinity");
        let any_value =
            old.is_some_and(|old| node_selector::has_impossible_value(old.at(&["nodeAffinity", "required"])));
        match affinity.at(&["required"]) {
            Value::Null => errors.required(&path.child("required"), "must specify required node constraints"),
            required => node_selector::validate(required, any_value, &path.child("required"), errors),
        }
    }
    volume_source::validate(spec, name, path, errors);
    if is_root(spec.str_at(&["hostPath", "path"])) && policy == "Recycle" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        errors.forbidden(&path.child("persistentVolumeReclaimPolicy"), why);
    }
    validate_class_and_mode(spec, path, errors);
    if let Some(class) = spec.at(&["volumeAttributesClassName"]).as_str() {
        let place = path.child("volumeAttributesClassName");
        if class.is_empty() {
            errors.required(&place, "an empty string is disallowed");
        } else {
            names::check(&place, class, names::dns1123_subdomain, errors);
        }
        if spec.at(&["csi"]).is_null() {
            errors.required(&path.child("csi"), "has to be specified when using volumeAttributesClassName");
        }
    }
}

/// Returns whether a path is the root, in any notation.
fn is_root(path: &str) -> bool {
    path.starts_with('/')
        && path.split('/').try_fold(0_usize, |depth, part| match part {
            "" | "." => Some(depth),
            ".." => Some(depth.saturating_sub(1)),
            _ => Some(depth + 1),
        }) == Some(0)
}

fn validate_capacity(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let all = spec.at(&["capacity"]);
    let empty = Map::new();
    let capacity = all.as_object().unwrap_or(&empty);
    if capacity.is_empty() {
        errors.required(path, "");
    }
    if capacity.len() != 1 || !capacity.contains_key("storage") {
        errors.push(ErrorKind::NotSupported, path, shown(all), "supported values: \"storage\"");
    }
    for (name, value) in capacity.iter() {
        validate_quantity(value, &path.key(name), errors);
        resources::check_positive(&path.key(name), value, errors);
    }
}

/// Checks that an amount is not negative, with the error messages for volumes.
pub fn validate_quantity(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let amount = resources::amount(value);
    if amount.sign() < 0 {
        errors.invalid(path, &amount.value().into(), "must be a valid resource quantity");
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut Errors) {
    // Two layers of the reference check the whole volume, so clients see each cause twice.
    for _ in 0..2 {
        metadata::validate_again(STRATEGY.name, false, object, errors);
        validate(object, Some(old), errors);
    }
    let sources = |object: &Value| -> Map {
        let stated = volume_source::stated(object.at(&["spec"]));
        stated.map(|(name, source)| (name.to_owned(), source.clone())).collect()
    };
    let (before, mut after) = (Value::from(sources(old)), Value::from(sources(object)));
    // A secret for expansion may be added later.
    if before.at(&["csi", "controllerExpandSecretRef"]).is_null() && !before.at(&["csi"]).is_null() {
        after.remove_at(&["csi", "controllerExpandSecretRef"]);
    }
    if before != after {
        let difference = shown::difference("PersistentVolumeSource", &before, &after);
        let why = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.forbidden(&Path::root("spec.persistentvolumesource"), why);
    }
    let field = |object: &Value, field: &str| object.at(&["spec", field]).clone();
    metadata::immutable(&Path::root("volumeMode"), &field(object, "volumeMode"), &field(old, "volumeMode"), errors);
    let affinity = (field(old, "nodeAffinity"), field(object, "nodeAffinity"));
    if !affinity.0.is_null() && !same_affinity(&affinity.0, &affinity.1) {
        let why = "field is immutable, except for updating from beta label to GA";
        errors.push(
            ErrorKind::Invalid,
            &Path::root("nodeAffinity"),
            shown::text("VolumeNodeAffinity", &affinity.1),
            why,
        );
    }
    let class = "volumeAttributesClassName";
    if !field(old, class).is_null() && field(object, class).is_null() {
        let path = Path::root("spec");
        errors.forbidden(&path.child(class), "update from non-nil value to nil is forbidden");
    }
}

/// Returns whether two affinities are the same except for labels that were renamed when they left beta.
fn same_affinity(old: &Value, new: &Value) -> bool {
    const FINAL: [(&str, &str); 5] = [
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ];
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same_affinity(value, other)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_affinity(a, b)),
        (Value::Str(a), Value::Str(b)) => a == b || FINAL.iter().any(|(old, new)| a == old && b == new),
        _ => old == new,
    }
}

fn warnings(object: &Value, _old: Option<&Value>, warnings: &mut Vec<String>) {
    let annotations = [
        (STORAGE_CLASS, "deprecated since v1.8; use \"storageClassName\" attribute instead"),
        (MOUNT_OPTIONS, "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ];
    for (key, why) in annotations {
        if !object.at(&["metadata", "annotations", key]).is_null() {
            warnings.push(format!("metadata.annotations[{key}]: {why}"));
        }
    }
    let spec = object.at(&["spec"]);
    if spec.str_at(&["persistentVolumeReclaimPolicy"]) == "Recycle" {
        let why = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
        warnings.push(format!("spec.persistentVolumeReclaimPolicy: {why}"));
    }
    let path = Path::root("spec.nodeAffinity.required.nodeSelectorTerms");
    node_selector::warn_terms(spec.list_at(&["nodeAffinity", "required", "nodeSelectorTerms"]), &path, warnings);
    let sources = [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    for (field, name, why) in sources {
        if !spec.at(&[field]).is_null() {
            warnings.push(format!("spec.{name}: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> Value {
        let mut object = value!({"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}});
        default(&mut object);
        object
    }

    #[test]
    fn volumes_are_defaulted_and_guarded() {
        let mut object = volume();
        prepare_create(&mut object, Timestamp { seconds: 0, nanos: 0 });
        let since = object.str_at(&["status", "lastPhaseTransitionTime"]);
        assert_eq!(since, "1970-01-01T00:00:00Z");
        assert_eq!(object.at(&["spec", "hostPath", "type"]), &Value::from(""));
        assert_eq!(object.str_at(&["spec", "volumeMode"]), "Filesystem");
        assert_eq!(object.list_at(&["metadata", "finalizers"]), [Value::from("kubernetes.io/pv-protection")]);
        let mut errors = Errors::default();
        validate(&object, None, &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
    }

    #[test]
    fn bare_volumes_are_refused() {
        let mut errors = Errors::default();
        validate(&value!({"spec": {}}), None, &mut errors);
        let texts: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.accessModes: Required value",
                "spec.capacity: Required value",
                "spec.capacity: Unsupported value: null: supported values: \"storage\"",
                "spec: Required value: must specify a volume type",
            ]
        );
    }

    #[test]
    fn sources_stay() {
        let old = volume();
        let mut new = old.clone();
        new.set_at(&["spec", "hostPath", "path"], "/other");
        let mut errors = Errors::default();
        validate_update(&new, &old, &mut errors);
        assert_eq!(errors.0[0].field, "spec.persistentvolumesource");
        assert!(is_root("/") && is_root("//a/../.") && !is_root("/a") && !is_root(""));
    }
}
