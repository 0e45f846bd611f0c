//! Validates objects inside other objects (`x-kubernetes-embedded-resource`).

use flotilla_proto::structural::Structural;
use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::rules::{NameRule, metadata, names};

/// Checks all embedded objects of an object.
pub fn validate(schema: &Structural, object: &Value, errors: &mut Errors) {
    validate_at(schema, object, &Path::root(""), errors);
}

/// As [`validate`], for a value at any path.
pub fn validate_at(schema: &Structural, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    walk(schema, value, path, errors);
}

fn walk(schema: &Structural, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::Object(map) => {
            if schema.embedded {
                resource(map, path, errors);
            }
            for (name, value) in map.iter() {
                if let Some(of) = schema.property(name) {
                    walk(of, value, &path.child(name), errors);
                } else if let Some(of) = schema.additional.schema() {
                    walk(of, value, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(of) = schema.items.as_deref() else { return };
            items.iter().enumerate().for_each(|(index, item)| walk(of, item, &path.index(index), errors));
        }
        _ => {}
    }
}

fn resource(object: &Map, path: &Path<'_>, errors: &mut Errors) {
    for name in ["apiVersion", "kind"] {
        if !object.contains_key(name) {
            errors.required(&path.child(name), "");
        }
    }
    text(object, "apiVersion", path, errors, |version| {
        (version.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {version}"))
    });
    text(object, "kind", path, errors, |kind| {
        let messages = names::dns1035_label(&kind.to_lowercase());
        let why = || format!("may have mixed case, but should otherwise match: {}", messages.join(","));
        (!messages.is_empty()).then(why)
    });
    if let Some(stated) = object.get("metadata") {
        let mut stated = stated.clone();
        if stated.str_at(&["name"]).is_empty() {
            // Embedded objects need no name; the rest of their metadata follows the usual rules.
            stated.set_at(&["name"], "none");
        }
        let namespaced = !stated.str_at(&["namespace"]).is_empty();
        metadata::validate_at(NameRule::PathSegment, namespaced, &stated, &path.child("metadata"), errors);
    }
}

/// Checks that a member, if present, is a string that is not empty. `rule` returns its other faults.
fn text(object: &Map, name: &str, path: &Path<'_>, errors: &mut Errors, rule: impl Fn(&str) -> Option<String>) {
    let place = path.child(name);
    match object.get(name) {
        None => {}
        Some(Value::Str(text)) if text.is_empty() => errors.invalid_str(&place, text, "must not be empty"),
        Some(Value::Str(text)) => {
            if let Some(why) = rule(text) {
                errors.invalid_str(&place, text, why);
            }
        }
        Some(other) => errors.invalid(&place, other, "must be a string"),
    }
}
