//! Checks that schemas are structural: they describe the structure of every value ("Specifying a structural schema").

use flotilla_proto::value::{Map, Value};

use super::junctors::{validate_completeness, validate_junctors};
use super::parts::{self, ADDITIONAL, EMBEDDED, INT_OR_STRING, PRESERVE};
use crate::field::{Errors, Path};

const OBJECT_IF_EMBEDDED: &str = "must be object if x-kubernetes-embedded-resource is true";

/// The place of a schema: it decides which checks apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaLevel {
    Root,
    Item,
    Field,
}

/// Checks that a schema is structural. Errors come in the order of the schema's text.
pub fn validate(schema: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut found = Errors::default();
    validate_invariants(schema, SchemaLevel::Root, path, &mut found);
    validate_completeness(schema, schema, path, path, &mut found);
    found.0.sort_by_cached_key(ToString::to_string);
    errors.append(found.0);
}

fn validate_invariants(schema: &Value, level: SchemaLevel, path: &Path<'_>, errors: &mut Errors) {
    match parts::items(schema) {
        Some(items) => validate_invariants(items, SchemaLevel::Item, &path.child("items"), errors),
        None if parts::kind(schema) == "array" => errors.required(&path.child("items"), "must be specified"),
        None => {}
    }
    for (name, property) in parts::members(schema, "properties") {
        validate_invariants(property, SchemaLevel::Field, &path.child("properties").key(name), errors);
    }
    if parts::has(schema, ADDITIONAL) && level == SchemaLevel::Root {
        errors.forbidden(&path.child(ADDITIONAL), "must not be used at the root");
    }
    if let Some(additional) = parts::additional(schema) {
        validate_invariants(additional, SchemaLevel::Field, &path.child(ADDITIONAL), errors);
    }
    for keyword in [PRESERVE, EMBEDDED] {
        if parts::is_on(schema, INT_OR_STRING) && parts::is_on(schema, keyword) {
            let why = "must be false if x-kubernetes-int-or-string is true";
            errors.invalid(&path.child(keyword), &true.into(), why);
        }
    }
    validate_junctors(schema, path, errors);
    validate_type(schema, level, path, errors);
    validate_resource(schema, level, path, errors);
}

fn validate_type(schema: &Value, level: SchemaLevel, path: &Path<'_>, errors: &mut Errors) {
    let (kind, path) = (parts::kind(schema), path.child("type"));
    let free = parts::is_on(schema, INT_OR_STRING) || parts::is_on(schema, PRESERVE);
    if parts::is_on(schema, EMBEDDED) && kind != "object" {
        if kind.is_empty() {
            errors.required(&path, OBJECT_IF_EMBEDDED);
        } else {
            errors.invalid_str(&path, kind, OBJECT_IF_EMBEDDED);
        }
    } else if kind.is_empty() && !free {
        let why = match level {
            SchemaLevel::Root => "must not be empty at the root",
            SchemaLevel::Item => "must not be empty for specified array items",
            SchemaLevel::Field => "must not be empty for specified object fields",
        };
        errors.required(&path, why);
    }
    if level == SchemaLevel::Root && !matches!(kind, "" | "object") {
        errors.invalid_str(&path, kind, "must be object at the root");
    }
}

/// Checks the schemas of the fields that every resource has.
fn validate_resource(schema: &Value, level: SchemaLevel, path: &Path<'_>, errors: &mut Errors) {
    let embedded = parts::is_on(schema, EMBEDDED);
    let resource = embedded || level == SchemaLevel::Root;
    let properties = path.child("properties");
    if embedded && parts::has(schema, ADDITIONAL) {
        errors.forbidden(&path.child(ADDITIONAL), "must not be used if x-kubernetes-embedded-resource is set");
    }
    for (name, wanted) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let Some(kind) = parts::property(schema, name).map(parts::kind) else { continue };
        if resource && kind != wanted {
            errors.invalid_str(&properties.key(name).child("type"), kind, format!("must be {wanted}"));
        }
    }
    if level == SchemaLevel::Root && parts::property(schema, "metadata").is_some_and(says_too_much) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.forbidden(&properties.key("metadata"), why);
    }
    if embedded && !parts::is_on(schema, PRESERVE) && !parts::is_filled(schema, "properties") {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        errors.required(&properties, why);
    }
}

/// Returns whether the schema of `metadata` restricts more than `name` and `generateName`.
fn says_too_much(metadata: &Value) -> bool {
    let of_names = |properties: &Value| {
        let mut names = properties.as_object().into_iter().flat_map(Map::keys);
        names.all(|name| matches!(name, "name" | "generateName"))
    };
    metadata.as_object().into_iter().flat_map(Map::iter).any(|(keyword, value)| match keyword {
        "type" | "default" => false,
        "properties" => !of_names(value),
        "allOf" | "anyOf" | "oneOf" | "enum" | "items" => {
            parts::is_filled(metadata, keyword) || parts::items(metadata).is_some()
        }
        ADDITIONAL => !value.is_null(), // also `false` restricts
        _ => !is_unset(value),
    })
}

/// Returns whether a member is null, false or an empty text, which mean the same as its absence.
pub fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Str(text) => text.is_empty(),
        _ => false,
    }
}
