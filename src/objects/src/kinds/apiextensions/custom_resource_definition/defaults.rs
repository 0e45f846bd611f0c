//! Defaults in schemas: each must be valid by its own schema ("Defaulting").

use std::cell::OnceCell;

use flotilla_proto::structural::Structural;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::parts::{self, ADDITIONAL, EMBEDDED, META_FIELDS, PRESERVE};
use crate::field::{Errors, Path};
use crate::schemas::{coerce, embedded, rules, validate};

/// Checks every default in a structural schema. `pruned` forbids unknown fields in defaults.
pub fn validate(schema: &Value, pruned: bool, path: &Path<'_>, errors: &mut Errors) {
    let mut budget = rules::BUDGET;
    let whole = Whole::of(schema);
    let context = DefaultsContext { resource: true, in_metadata: false, pruned, step: SchemaStep::Whole(&whole) };
    validate_at(schema, context, path, &mut budget, errors);
}

#[derive(Clone, Copy)]
struct DefaultsContext<'a> {
    /// Whether values here are objects with `apiVersion`, `kind` and `metadata`.
    resource: bool,
    /// Whether this schema is inside the `apiVersion`, `kind` or `metadata` of an object that has all three.
    in_metadata: bool,
    /// Whether defaults must not have unknown fields.
    pruned: bool,
    step: SchemaStep<'a>,
}

/// The schema of a whole object, one with `apiVersion`, `kind` and `metadata`.
struct Whole<'a> {
    schema: &'a Value,
    /// Is read at most once, because very many defaults can be inside the metadata.
    structural: OnceCell<Structural>,
}

impl<'a> Whole<'a> {
    const fn of(schema: &'a Value) -> Self {
        Self { schema, structural: OnceCell::new() }
    }

    fn structural(&self) -> &Structural {
        self.structural.get_or_init(|| {
            let mut structural = Structural::of(self.schema);
            structural.embedded = true;
            structural
        })
    }
}

/// The last step from a whole object to a schema inside it.
#[derive(Clone, Copy)]
enum SchemaStep<'a> {
    /// No step: this is the schema of the whole object.
    Whole(&'a Whole<'a>),
    Member(&'a SchemaStep<'a>, &'a str),
    Item(&'a SchemaStep<'a>),
}

impl SchemaStep<'_> {
    /// Returns the schema of the whole object, and such an object with a value in this place.
    fn surround(&self, value: Value) -> (&Structural, Value) {
        match self {
            SchemaStep::Whole(whole) => {
                let mut object = value;
                for (name, stated) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
                    if object.at(&[name]).is_null() {
                        object.set_at(&[name], stated);
                    }
                }
                (whole.structural(), object)
            }
            SchemaStep::Member(whole, name) => {
                let mut object = value!({});
                object.set_at(&[name], value);
                whole.surround(object)
            }
            SchemaStep::Item(whole) => whole.surround(value!([value])),
        }
    }
}

/// Checks a default inside the `apiVersion`, `kind` or `metadata` of an object, as part of such an object.
fn validate_metadata(step: &SchemaStep<'_>, default: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (schema, mut object) = step.surround(default.clone());
    let mut found = Errors::default();
    match coerce::coerce(schema, &mut object) {
        Ok(_) => embedded::validate(schema, &object, &mut found),
        Err(error) => found.append([error]),
    }
    if !found.is_empty() {
        errors.invalid(path, default, format!("must result in valid metadata: {}", found.joined()));
    }
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
fn validate_at(schema: &Value, context: DefaultsContext<'_>, path: &Path<'_>, budget: &mut i64, errors: &mut Errors) {
    let in_metadata = context.in_metadata && !context.resource;
    let default = schema.at(&["default"]);
    if !default.is_null() {
        let path = path.child("default");
        if context.pruned && !in_metadata && has_unknown(default, Some(schema), context.resource, false) {
            errors.invalid(&path, default, "must not have unknown fields");
        }
        let mut structural = Structural::of(schema);
        structural.embedded |= context.resource;
        let mut found = Errors::default();
        if in_metadata {
            validate_metadata(&context.step, default, &path, &mut found);
        } else {
            validate_objects(&structural, default, &path, &mut found);
        }
        if found.is_empty() {
            validate::value_at(&structural, default, &path.to_string(), &mut found);
        }
        if found.is_empty() {
            let at = path.to_string();
            *budget = rules::validate_default(schema, context.resource, &at, *budget, &mut found);
        }
        errors.append(found.0);
        if *budget < 0 {
            return;
        }
    }
    // As in the reference, defaults under `additionalProperties` are not checked, although they are applied.
    if let Some(items) = parts::items(schema) {
        let (resource, whole) = (parts::is_on(items, EMBEDDED), Whole::of(items));
        let step = if resource { SchemaStep::Whole(&whole) } else { SchemaStep::Item(&context.step) };
        validate_at(
            items,
            DefaultsContext { resource, in_metadata, step, ..context },
            &path.child("items"),
            budget,
            errors,
        );
    }
    for (name, property) in parts::members(schema, "properties") {
        if *budget < 0 {
            return;
        }
        let in_metadata = in_metadata || (context.resource && META_FIELDS.contains(&name));
        let (resource, whole) = (parts::is_on(property, EMBEDDED), Whole::of(property));
        let step = if resource { SchemaStep::Whole(&whole) } else { SchemaStep::Member(&context.step, name) };
        validate_at(
            property,
            DefaultsContext { resource, in_metadata, step, ..context },
            &path.child("properties").key(name),
            budget,
            errors,
        );
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
