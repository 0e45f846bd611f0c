//! PersistentVolumeClaims: the claimed storage and its data source, hardly any of which may change later.

use flotilla_proto::value::Value;

use super::persistent_volume;
use crate::field::{ErrorKind, Errors, Path, shown};
use crate::printing::{Printer, storage};
use crate::rules::{Generation, NameRule, Strategy, labels, metadata, names, protection, resources, shown};

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// Rules of PersistentVolumeClaims.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    status: true,
    returns_deleted: true,
    default,
    prepare_create: |object, _| {
        object.set_at(&["status"], flotilla_proto::value!({"phase": "Pending"}));
        settle_sources(object, None);
        protection::add_finalizer(object, protection::CLAIMS.finalizer);
    },
    prepare_update: |object, old, _| settle_sources(object, Some(old)),
    validate: |object, errors| {
        let selector = labels::SelectorOptions::default();
        validate_spec(object.at(&["spec"]), selector, false, &Path::root("spec"), errors);
    },
    validate_update,
    validate_status,
    warnings,
    protection: Some(&protection::CLAIMS),
    printer: Some(Printer::of(storage::claim)),
    ..Strategy::DEFAULT
};

fn default(object: &mut Value) {
    if object.str_at(&["status", "phase"]).is_empty() {
        object.set_at(&["status", "phase"], "Pending");
    }
    for list in ["capacity", "allocatedResources"] {
        resources::round_up(object.get_mut("status").and_then(|status| status.get_mut(list)));
    }
    if let Some(spec) = object.get_mut("spec") {
        default_spec(spec);
    }
}

/// Writes the defaults of a claim's spec.
pub fn default_spec(spec: &mut Value) {
    if spec.at(&["volumeMode"]).is_null() {
        spec.set_at(&["volumeMode"], "Filesystem");
    }
    for list in ["limits", "requests"] {
        resources::round_up(spec.get_mut("resources").and_then(|resources| resources.get_mut(list)));
    }
}

/// Makes `dataSource` and `dataSourceRef` agree; stored claims keep their source.
fn settle_sources(object: &mut Value, old: Option<&Value>) {
    let stated = |object: &Value, field: &str| !object.at(&["spec", field]).is_null();
    let used = old.is_some_and(|old| stated(old, "dataSource") || stated(old, "dataSourceRef"));
    let foreign = !object.str_at(&["spec", "dataSourceRef", "namespace"]).is_empty();
    if foreign && !old.is_some_and(|old| stated(old, "dataSourceRef")) {
        object.remove_at(&["spec", "dataSourceRef"]);
    }
    let source = object.at(&["spec", "dataSource"]);
    let plain = matches!(
        (source.str_at(&["kind"]), source.str_at(&["apiGroup"])),
        ("PersistentVolumeClaim", "") | ("VolumeSnapshot", "snapshot.storage.k8s.io")
    );
    if !used && !stated(object, "dataSourceRef") && !plain {
        object.remove_at(&["spec", "dataSource"]);
    }
    let copy = |source: &Value| {
        let mut copy = source.clone();
        copy.remove_at(&["namespace"]);
        copy
    };
    if stated(object, "dataSource") && !stated(object, "dataSourceRef") {
        let copied = copy(object.at(&["spec", "dataSource"]));
        object.set_at(&["spec", "dataSourceRef"], copied);
    } else if stated(object, "dataSourceRef") && !stated(object, "dataSource") {
        let reference = object.at(&["spec", "dataSourceRef"]);
        if reference.str_at(&["namespace"]).is_empty() {
            let copied = copy(reference);
            object.set_at(&["spec", "dataSource"], copied);
        }
    }
}

/// Checks the spec of a claim. `any_group` accepts invalid names of API groups.
pub fn validate_spec(
    spec: &Value,
    selector: labels::SelectorOptions,
    any_group: bool,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let modes = spec.list_at(&["accessModes"]);
    if modes.is_empty() {
        errors.required(&path.child("accessModes"), "at least 1 access mode is required");
    }
    labels::validate_selector(spec.at(&["selector"]), selector, &path.child("selector"), errors);
    persistent_volume::validate_modes(modes, &path.child("accessModes"), errors);
    let place = path.child("resources");
    let place = place.key("storage");
    match spec.at(&["resources", "requests", "storage"]) {
        Value::Null => errors.required(&place, ""),
        size => resources::check_positive(&place, size, errors),
    }
    persistent_volume::validate_class_and_mode(spec, path, errors);
    let (source, reference) = (spec.at(&["dataSource"]), spec.at(&["dataSourceRef"]));
    for (field, source) in [("dataSource", source), ("dataSourceRef", reference)] {
        if !source.is_null() {
            validate_source(source, any_group, &path.child(field), errors);
        }
    }
    if !source.is_null() && !reference.is_null() {
        let same = |field: &str| source.at(&[field]) == reference.at(&[field]);
        if !reference.str_at(&["namespace"]).is_empty() {
            let why = "may not be specified when dataSourceRef.namespace is specified";
            errors.push(ErrorKind::Invalid, path, "{}", why);
        } else if !["apiGroup", "kind", "name"].into_iter().all(same) {
            errors.push(ErrorKind::Invalid, path, "{}", "must match dataSourceRef");
        }
    }
    let class = spec.str_at(&["volumeAttributesClassName"]);
    if !class.is_empty() {
        names::check(&path.child("volumeAttributesClassName"), class, names::dns1123_subdomain, errors);
    }
}

fn validate_source(source: &Value, any_group: bool, path: &Path<'_>, errors: &mut Errors) {
    for field in ["name", "kind"] {
        if source.str_at(&[field]).is_empty() {
            errors.required(&path.child(field), "");
        }
    }
    let (group, kind) = (source.str_at(&["apiGroup"]), source.str_at(&["kind"]));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.invalid_str(path, kind, why);
    }
    if !group.is_empty() && !any_group {
        names::check(&path.child("apiGroup"), group, names::dns1123_subdomain, errors);
    }
    let namespace = source.str_at(&["namespace"]);
    if !namespace.is_empty() {
        names::check(&path.child("namespace"), namespace, names::dns1123_label, errors);
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut Errors) {
    metadata::validate_again(STRATEGY.name, true, object, errors);
    let old_spec = old.at(&["spec"]);
    let mut before = Errors::default();
    let strict = labels::SelectorOptions::default();
    labels::validate_selector(old_spec.at(&["selector"]), strict, &Path::root(""), &mut before);
    let selector = labels::SelectorOptions { any_value: !before.is_empty(), ..strict };
    let grouped = |field: &str| !old_spec.at(&[field, "apiGroup"]).is_null();
    let any_group = grouped("dataSource") || grouped("dataSourceRef");
    validate_spec(object.at(&["spec"]), selector, any_group, &Path::root("spec"), errors);
    validate_change(object, old, errors);
    let size = |spec: &Value| resources::amount(spec.at(&["resources", "requests", "storage"]));
    let given = resources::amount(old.at(&["status", "capacity", "storage"]));
    let asked = size(object.at(&["spec"]));
    if asked < size(old_spec) && asked <= given {
        let path = Path::root("spec.resources.requests.storage");
        errors.forbidden(&path, "field can not be less than status.capacity");
    }
    let mode = |object: &Value| object.at(&["spec", "volumeMode"]).clone();
    metadata::immutable(&Path::root("volumeMode"), &mode(object), &mode(old), errors);
    validate_class_change(object, old, errors);
}

/// Checks that an update changes only mutable fields.
fn validate_change(object: &Value, old: &Value, errors: &mut Errors) {
    let (mut new, mut was) = (object.at(&["spec"]).clone(), old.at(&["spec"]).clone());
    if was.str_at(&["volumeName"]).is_empty() {
        copy(&new, &mut was, &["volumeName"]);
    }
    let annotation = |object: &Value| object.at(&["metadata", "annotations", BETA_CLASS]).clone();
    let (beta_was, beta) = (annotation(old), annotation(object));
    let class = new.at(&["storageClassName"]).clone();
    let unset = was.at(&["storageClassName"]).is_null();
    let moved = !beta_was.is_null() && unset && class == beta_was && (beta.is_null() || beta == beta_was);
    if moved {
        new.remove_at(&["storageClassName"]);
    } else {
        let text = |value: &Value| Value::from(value.as_str().unwrap_or(""));
        if text(&beta) != text(&beta_was) {
            let path = Path::root("metadata.annotations");
            errors.invalid(&path.child(BETA_CLASS), &text(&beta), metadata::IMMUTABLE);
        }
        if !class.is_null() && unset && (beta_was.is_null() || class == beta_was) {
            copy(&was, &mut new, &["storageClassName"]);
        }
    }
    if object.str_at(&["status", "phase"]) == "Bound" {
        if !new.at(&["resources", "requests"]).is_null() {
            copy(&was, &mut new, &["resources", "requests", "storage"]);
        }
        copy(&was, &mut new, &["volumeAttributesClassName"]);
    }
    if !same(&new, &was) {
        let why =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        let difference = shown::difference("PersistentVolumeClaimSpec", &was, &new);
        errors.forbidden(&Path::root("spec"), format!("{why}\n{difference}"));
    }
}

fn copy(from: &Value, to: &mut Value, path: &[&str]) {
    match from.at(path) {
        Value::Null => drop(to.remove_at(path)),
        value => to.set_at(path, value.clone()),
    }
}

/// Returns whether two specs are the same, comparing quantities by value.
fn same(a: &Value, b: &Value) -> bool {
    let rest = |spec: &Value| {
        let mut spec = spec.clone();
        spec.remove_at(&["resources"]);
        spec
    };
    let amounts = |list: &str| resources::same_amounts(a.map_at(&["resources", list]), b.map_at(&["resources", list]));
    rest(a) == rest(b) && amounts("limits") && amounts("requests")
}

fn validate_class_change(object: &Value, old: &Value, errors: &mut Errors) {
    let class = |object: &Value| object.at(&["spec", "volumeAttributesClassName"]).clone();
    let path = Path::root("spec.volumeAttributesClassName");
    if class(object) == class(old) || old.at(&["status", "currentVolumeAttributesClassName"]).is_null() {
        return;
    }
    let tail = "is forbidden when status.currentVolumeAttributesClassName is not nil";
    match class(object).as_str() {
        None => errors.forbidden(&path, format!("update to nil {tail}")),
        Some("") => errors.forbidden(&path, format!("update to empty string {tail}")),
        Some(_) => {}
    }
}

fn validate_status(object: &Value, _old: &Value, errors: &mut Errors) {
    if object.list_at(&["spec", "accessModes"]).is_empty() {
        errors.required(&Path::root("Spec.accessModes"), "");
    }
    let path = Path::root("status.capacity");
    for (name, value) in object.map_at(&["status", "capacity"]).into_iter().flat_map(|map| map.iter()) {
        persistent_volume::validate_quantity(value, &path.key(name), errors);
    }
    let path = Path::root("status.allocatedResourceStatuses");
    let states = object.map_at(&["status", "allocatedResourceStatuses"]);
    for (name, state) in states.into_iter().flat_map(|map| map.iter()) {
        validate_key(name, &path, errors);
        if !state.as_str().is_some_and(|state| RESIZE_STATES.contains(&state)) {
            errors.not_supported(&path, name, &RESIZE_STATES);
        }
    }
    let path = Path::root("status.allocatedResources");
    let amounts = object.map_at(&["status", "allocatedResources"]);
    for (name, value) in amounts.into_iter().flat_map(|map| map.iter()) {
        if validate_key(name, &path, errors) {
            persistent_volume::validate_quantity(value, &path.key(name), errors);
        }
    }
}

fn validate_key(name: &str, path: &Path<'_>, errors: &mut Errors) -> bool {
    let before = errors.0.len();
    names::check(path, name, names::qualified_name, errors);
    if errors.0.len() == before && resources::is_native(name) && name != "storage" {
        errors.not_supported(path, name, &["storage"]);
    }
    errors.0.len() == before
}

fn warnings(object: &Value, _old: Option<&Value>, warnings: &mut Vec<String>) {
    if !object.at(&["metadata", "annotations", BETA_CLASS]).is_null() {
        let why = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        warnings.push(format!("metadata.annotations[{BETA_CLASS}]: {why}"));
    }
    warn_sizes(object.at(&["spec"]), &Path::root("spec"), warnings);
}

/// Warns of sizes that are not whole bytes.
pub fn warn_sizes(spec: &Value, path: &Path<'_>, warnings: &mut Vec<String>) {
    for list in ["requests", "limits"] {
        let size = spec.at(&["resources", list, "storage"]);
        if resources::amount(size).milli_value() % 1000 != 0 {
            let path = path.child("resources");
            let path = path.child(list);
            let path = path.key("storage");
            warnings.push(format!("{path}: fractional byte value {} is invalid, must be an integer", shown(size)));
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn claim() -> Value {
        let mut object = value!({"metadata": {"name": "c", "namespace": "n"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}});
        default(&mut object);
        object
    }

    fn changed(change: impl Fn(&mut Value)) -> Vec<String> {
        let old = claim();
        let mut new = old.clone();
        change(&mut new);
        let mut errors = Errors::default();
        validate_update(&new, &old, &mut errors);
        errors.0.iter().map(|error| error.field.clone()).collect()
    }

    #[test]
    fn claims_hardly_change() {
        assert!(changed(|_| {}).is_empty());
        assert!(changed(|claim| claim.set_at(&["spec", "volumeName"], "v")).is_empty());
        assert!(changed(|claim| claim.set_at(&["spec", "storageClassName"], "late")).is_empty());
        assert!(changed(|claim| claim.set_at(&["spec", "resources", "requests", "storage"], "1024Mi")).is_empty());
        assert_eq!(changed(|claim| claim.set_at(&["spec", "resources", "requests", "storage"], "2Gi")), ["spec"]);
        assert_eq!(changed(|claim| claim.set_at(&["spec", "accessModes"], value!(["ReadOnlyMany"]))), ["spec"]);
    }

    #[test]
    fn sources_are_settled() {
        let mut object = claim();
        object.set_at(&["spec", "dataSource"], value!({"kind": "PersistentVolumeClaim", "name": "a"}));
        settle_sources(&mut object, None);
        assert_eq!(object.at(&["spec", "dataSource"]), object.at(&["spec", "dataSourceRef"]));
        let mut object = claim();
        object.set_at(&["spec", "dataSource"], value!({"kind": "Secret", "name": "a"}));
        settle_sources(&mut object, None);
        assert!(object.at(&["spec", "dataSource"]).is_null());
    }
}
