//! Namespaces: the finalizer and label that each has, and its phase.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::printing::{Printer, config};
use crate::rules::{Generation, NameRule, Strategy, Subresource, metadata, names};

const FINALIZER: &str = "kubernetes";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Rules of Namespaces.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Label,
    generation: Generation::ClientOwned,
    status: true,
    default,
    prepare_create: |object, _| prepare_create(object),
    prepare_update: |object, old, _| prepare_update(object, old),
    validate,
    validate_update,
    validate_status,
    subresources: &[(
        "finalize",
        Subresource {
            prepare: |object, old, _| prepare_finalize(object, old),
            validate: |object, _, errors| validate_finalize(object, errors),
        },
    )],
    selectable: &[("status.phase", |object| object.str_at(&["status", "phase"]).to_owned())],
    printer: Some(Printer::of(config::namespace)),
    ..Strategy::DEFAULT
};

fn default(object: &mut Value) {
    if object.str_at(&["status", "phase"]).is_empty() {
        object.set_at(&["status", "phase"], "Active");
    }
    label(object);
}

/// Sets the label with the namespace's name; a namespace with a generated name gets it at creation.
fn label(object: &mut Value) {
    let name = object.str_at(&["metadata", "name"]);
    if !name.is_empty() && object.str_at(&["metadata", "labels", NAME_LABEL]) != name {
        let name = name.to_owned();
        object.set_at(&["metadata", "labels", NAME_LABEL], name);
        if let Some(labels) =
            object.get_mut("metadata").and_then(|m| m.get_mut("labels")).and_then(Value::as_object_mut)
        {
            labels.sort();
        }
    }
}

fn prepare_create(object: &mut Value) {
    object.set_at(&["status"], value!({"phase": "Active"}));
    let mut finalizers = object.list_at(&["spec", "finalizers"]).to_vec();
    if !finalizers.iter().any(|finalizer| finalizer.as_str() == Some(FINALIZER)) {
        finalizers.push(FINALIZER.into());
        object.set_at(&["spec", "finalizers"], finalizers);
    }
    label(object);
}

/// Restores `spec.finalizers`, which only the `finalize` subresource may change.
fn prepare_update(object: &mut Value, old: &Value) {
    let spec = old.at(&["spec"]);
    object.set_at(&["spec"], if spec.is_null() { Value::object() } else { spec.clone() });
}

fn validate(object: &Value, errors: &mut Errors) {
    let path = Path::root("spec.finalizers");
    for finalizer in object.list_at(&["spec", "finalizers"]) {
        validate_finalizer(&path, finalizer.as_str().unwrap_or(""), errors);
    }
}

fn validate_finalizer(path: &Path<'_>, name: &str, errors: &mut Errors) {
    names::check(path, name, names::qualified_name, errors);
    if !name.contains('/') && !matches!(name, FINALIZER | "orphan" | "foregroundDeletion") {
        errors.invalid_str(path, name, "name is neither a standard finalizer name nor is it fully qualified");
    }
}

fn validate_update(object: &Value, _old: &Value, errors: &mut Errors) {
    metadata::validate_again(STRATEGY.name, false, object, errors);
    validate(object, errors);
}

fn validate_status(object: &Value, _old: &Value, errors: &mut Errors) {
    let phase = object.str_at(&["status", "phase"]);
    let terminating = !object.at(&["metadata", "deletionTimestamp"]).is_null();
    let path = Path::root("status.Phase");
    if terminating && phase != "Terminating" {
        errors.invalid_str(&path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
    }
    if !terminating && phase != "Active" {
        errors.invalid_str(&path, phase, "may only be 'Active' if `deletionTimestamp` is empty");
    }
}

/// Prepares a write of `/finalize`: everything but the status may change.
pub fn prepare_finalize(object: &mut Value, old: &Value) {
    object.set_at(&["status"], old.at(&["status"]).clone());
}

/// Checks a write of `/finalize`.
pub fn validate_finalize(object: &Value, errors: &mut Errors) {
    let path = Path::root("spec.finalizers");
    for (index, finalizer) in object.list_at(&["spec", "finalizers"]).iter().enumerate() {
        validate_finalizer(&path.index(index), finalizer.as_str().unwrap_or(""), errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_namespaces_are_active_and_guarded() {
        let mut namespace = value!({"metadata": {"name": "a", "labels": {"z": "1", "kubernetes.io/metadata.name": "x"}},
            "spec": {"finalizers": ["example.com/keep"]}, "status": {"phase": "Terminating"}});
        default(&mut namespace);
        prepare_create(&mut namespace);
        assert_eq!(namespace.str_at(&["metadata", "labels", NAME_LABEL]), "a");
        assert_eq!(namespace.at(&["spec", "finalizers"]), &value!(["example.com/keep", "kubernetes"]));
        assert_eq!(namespace.at(&["status"]), &value!({"phase": "Active"}));
        let mut errors = Errors::default();
        validate(&namespace, &mut errors);
        validate_status(&namespace, &namespace, &mut errors);
        assert!(errors.is_empty());
        validate_finalizer(&Path::root("f"), "nodomain", &mut errors);
        validate_finalizer(&Path::root("f"), "bad one", &mut errors);
        assert_eq!(errors.0.len(), 3);
    }
}
