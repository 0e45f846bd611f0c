//! Validation of ReplicationControllers.

use flotilla_proto::value::{Map, Value};

use crate::field::{ErrorKind, Errors, Path};
use crate::kinds::{replicas, templates};
use crate::rules::{numbers, selector, semantic};

/// Prefix of annotations that hold fields which a conversion between versions could not convert.
const NON_CONVERTIBLE: &str = "non-convertible.kubernetes.io/";

pub(super) fn validate(controller: &Value, errors: &mut Errors) {
    check(controller, None, errors);
}

pub(super) fn validate_update(controller: &Value, old: &Value, errors: &mut Errors) {
    check(controller, Some(old), errors);
    for (key, value) in old.map_at(&["metadata", "annotations"]).into_iter().flat_map(Map::iter) {
        let Some(field) = key.strip_prefix(NON_CONVERTIBLE).filter(|field| !field.contains('/')) else { continue };
        if !field.contains("selector") {
            let shown = crate::field::shown(value);
            errors.push(ErrorKind::NotFound, &Path::root(field), shown, "unknown non-convertible field");
        } else if !semantic::equal_at(controller, old, &["spec", "selector"]) {
            let spec = Path::root("spec");
            let why = "cannot update non-convertible selector";
            errors.invalid(&spec.child("selector"), controller.at(&["spec", "selector"]), why);
        }
    }
}

fn check(controller: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = controller.at(&["spec"]);
    let path = Path::root("spec");
    numbers::not_negative(&path.child("minReadySeconds"), spec.at(&["minReadySeconds"]), errors);
    let own = spec.map_at(&["selector"]);
    if own.is_none_or(Map::is_empty) {
        errors.required(&path.child("selector"), "");
    }
    match spec.at(&["replicas"]) {
        Value::Null => errors.required(&path.child("replicas"), ""),
        replicas => numbers::not_negative(&path.child("replicas"), replicas, errors),
    }
    let template = spec.at(&["template"]);
    let path = path.child("template");
    if template.is_null() {
        return errors.required(&path, "");
    }
    selector::map_matches_template(own, template, &path, errors);
    templates::validate_endless(template, "ReplicationController", &path, &templates::options(old), errors);
}

pub(super) fn validate_status(controller: &Value, _: &Value, errors: &mut Errors) {
    replicas::validate_set_counts(controller.at(&["status"]), errors);
}
