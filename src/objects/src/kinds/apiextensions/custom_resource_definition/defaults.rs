//! Defaults in schemas: each must be valid by its own schema ("Defaulting").

use flotilla_proto::structural::Structural;
use flotilla_proto::value::Value;

use super::parts::{self, ADDITIONAL, EMBEDDED, META_FIELDS, PRESERVE};
use crate::field::{Errors, Path};
use crate::schemas::{coerce, embedded, rules, validate};

/// Checks every default in a structural schema. `pruned` forbids unknown fields in defaults.
pub fn validate(schema: &Value, pruned: bool, path: &Path<'_>, errors: &mut Errors) {
    let mut budget = rules::BUDGET;
    validate_at(schema, Place { resource: true, in_metadata: false, pruned }, path, &mut budget, errors);
}

#[derive(Clone, Copy)]
struct Place {
    /// Whether values here are objects with `apiVersion`, `kind` and `metadata`.
    resource: bool,
    /// Whether this schema is inside of such `metadata`.
    in_metadata: bool,
    /// Whether defaults must not have unknown fields.
    pruned: bool,
}

/// Checks the objects in a default as whole objects, with `apiVersion`, `kind` and `metadata`.
fn validate_objects(schema: &Structural, default: &Value, path: &Path<'_>, errors: &mut Errors) {
    match coerce::coerce_at(schema, &mut default.clone(), path) {
        Ok(_) => embedded::validate_at(schema, default, path, errors),
        Err(error) => errors.append(vec![error]),
    }
}

/// Checks the defaults of a schema and of the schemas inside it. CEL rules are evaluated on them until `budget` is used
/// up.
fn validate_at(schema: &Value, place: Place, path: &Path<'_>, budget: &mut i64, errors: &mut Errors) {
    let in_metadata = place.in_metadata && !place.resource;
    let default = schema.at(&["default"]);
    if !default.is_null() {
        let path = path.child("default");
        if place.pruned && !in_metadata && has_unknown(default, Some(schema), place.resource, false) {
            errors.invalid(&path, default, "must not have unknown fields");
        }
        let mut structural = Structural::of(schema);
        structural.embedded |= place.resource;
        let mut found = Errors::default();
        if !in_metadata {
            validate_objects(&structural, default, &path, &mut found);
        }
        if found.is_empty() {
            validate::value_at(&structural, default, &path.to_string(), &mut found);
        }
        if found.is_empty() {
            let at = path.to_string();
            *budget = rules::validate_default(schema, place.resource, &at, *budget, &mut found);
        }
        errors.append(found.0);
        if *budget < 0 {
            return;
        }
    }
    // As in the reference, defaults under `additionalProperties` are not checked, although they are applied.
    if let Some(items) = parts::items(schema) {
        let place = Place { resource: parts::is_on(items, EMBEDDED), in_metadata, ..place };
        validate_at(items, place, &path.child("items"), budget, errors);
    }
    for (name, property) in parts::members(schema, "properties") {
        if *budget < 0 {
            return;
        }
        let in_metadata = in_metadata || (place.resource && META_FIELDS.contains(&name));
        let place = Place { resource: parts::is_on(property, EMBEDDED), in_metadata, ..place };
        validate_at(property, place, &path.child("properties").key(name), budget, errors);
    }
}

/// Returns whether a schema's own default has fields that the schema does not know.
pub fn is_unpruned(schema: &Value) -> bool {
    let default = schema.at(&["default"]);
    !default.is_null() && has_unknown(default, Some(schema), parts::is_on(schema, EMBEDDED), false)
}

/// Returns whether a value has unknown fields, which pruning by its schema would remove. `kept` says that the schema of
/// the enclosing list preserves unknown fields.
fn has_unknown(value: &Value, schema: Option<&Value>, resource: bool, kept: bool) -> bool {
    let kept = kept || schema.is_some_and(|schema| parts::is_on(schema, PRESERVE));
    let inside = |value: &Value, schema: Option<&Value>, kept: bool| {
        has_unknown(value, schema, schema.is_some_and(|schema| parts::is_on(schema, EMBEDDED)), kept)
    };
    match value {
        Value::Object(map) => map.iter().any(|(name, member)| {
            let Some(schema) = schema else { return !kept };
            if resource && META_FIELDS.contains(&name) {
                return false;
            }
            match parts::property(schema, name) {
                Some(property) => inside(member, Some(property), false),
                None if parts::has(schema, ADDITIONAL) => inside(member, parts::additional(schema), false),
                None => !kept,
            }
        }),
        Value::Array(items) => {
            let schema = schema.and_then(parts::items);
            items.iter().any(|item| inside(item, schema, kept))
        }
        _ => false,
    }
}
