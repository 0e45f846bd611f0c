//! Checks the values of a schema's keywords, at any depth.

use flotilla_proto::value::Value;

use super::parts::{self, ADDITIONAL, EMBEDDED, META_FIELDS, PRESERVE};
use super::schema::SchemaChecks;
use super::{lists, rules as cel};
use crate::field::{Errors, Path};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Facts about a position in a schema that follow from its surroundings.
#[derive(Clone, Copy)]
struct KeywordContext {
    rules: SchemaChecks,
    root: bool,
    /// Whether the position is inside the metadata, kind or version of an object.
    in_metadata: bool,
    /// The reason why a default is forbidden here, if it is.
    no_default: Option<&'static str>,
}

/// Returns whether a schema's type is one of OpenAPI.
pub fn is_known_type(schema: &Value) -> bool {
    TYPES.contains(&parts::kind(schema))
}

/// Checks every keyword of a schema and of those inside it.
pub fn validate(schema: &Value, rules: SchemaChecks, path: &Path<'_>, errors: &mut Errors) {
    validate_at(schema, KeywordContext { rules, root: true, in_metadata: false, no_default: None }, path, errors);
}

fn validate_at(schema: &Value, context: KeywordContext, path: &Path<'_>, errors: &mut Errors) {
    if schema.as_object().is_none() {
        return;
    }
    validate_support(schema, context, path, errors);
    if parts::is_on(schema, "uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.forbidden(&path.child("uniqueItems"), why);
    }
    let within = KeywordContext { root: false, ..context };
    validate_fields(schema, context, path, errors);
    validate_at(schema.at(&["not"]), within, &path.child("not"), errors);
    for keyword in ["allOf", "oneOf", "anyOf"] {
        validate_each(schema, keyword, within, path, errors);
    }
    validate_named(schema, "definitions", within, path, errors);
    validate_at(schema.at(&["items"]), within, &path.child("items"), errors);
    validate_each(schema, "items", within, path, errors);
    validate_named(schema, "dependencies", within, path, errors);
    let preserve = schema.at(&[PRESERVE]);
    if preserve.as_bool() == Some(false) {
        errors.invalid(&path.child(PRESERVE), preserve, "must be true or undefined");
    }
    lists::validate(schema, context.rules, path, errors);
    cel::validate(schema, path, errors);
}

fn validate_each(schema: &Value, keyword: &str, context: KeywordContext, path: &Path<'_>, errors: &mut Errors) {
    for (index, branch) in parts::branches(schema, keyword).iter().enumerate() {
        validate_at(branch, context, &path.child(keyword).index(index), errors);
    }
}

fn validate_named(schema: &Value, keyword: &str, context: KeywordContext, path: &Path<'_>, errors: &mut Errors) {
    for (name, member) in parts::members(schema, keyword) {
        validate_at(member, context, &path.child(keyword).key(name), errors);
    }
}

/// Checks the schemas under `properties` and `additionalProperties`.
fn validate_fields(schema: &Value, context: KeywordContext, path: &Path<'_>, errors: &mut Errors) {
    let additional = schema.at(&[ADDITIONAL]);
    let within = KeywordContext { root: false, ..context };
    if parts::is_filled(schema, "properties") && !matches!(additional, Value::Null | Value::Bool(true)) {
        errors.forbidden(&path.child(ADDITIONAL), "additionalProperties and properties are mutual exclusive");
    }
    let why = if context.in_metadata {
        Some("inside additionalProperties applying to object metadata")
    } else {
        context.no_default
    };
    validate_at(additional, KeywordContext { no_default: why, ..within }, &path.child(ADDITIONAL), errors);
    let resource = context.root || parts::is_on(schema, EMBEDDED);
    for (name, property) in parts::members(schema, "properties") {
        let mut inside = within;
        if resource && META_FIELDS.contains(&name) {
            inside.in_metadata = true;
            if context.root {
                inside.no_default = Some(match name {
                    "metadata" => "in top-level metadata",
                    "kind" => "in top-level kind",
                    _ => "in top-level apiVersion",
                });
            }
        }
        validate_at(property, inside, &path.child("properties").key(name), errors);
    }
}

/// Checks that no keyword is used that custom resources do not support.
fn validate_support(schema: &Value, context: KeywordContext, path: &Path<'_>, errors: &mut Errors) {
    let kind = parts::kind(schema);
    if context.rules.known_types && !kind.is_empty() && !TYPES.contains(&kind) {
        errors.not_supported(&path.child("type"), kind, &TYPES);
    }
    if let Some(why) = context.no_default.filter(|_| parts::has(schema, "default")) {
        errors.forbidden(&path.child("default"), format!("must not be set {why}"));
    }
    let mut unsupported = |keyword: &str, used: bool| {
        if used {
            errors.forbidden(&path.child(keyword), format!("{keyword} is not supported"));
        }
    };
    unsupported("id", !schema.str_at(&["id"]).is_empty());
    unsupported("additionalItems", parts::has(schema, "additionalItems"));
    unsupported("patternProperties", parts::is_filled(schema, "patternProperties"));
    unsupported("definitions", parts::is_filled(schema, "definitions"));
    unsupported("dependencies", parts::has(schema, "dependencies"));
    unsupported("$ref", parts::has(schema, "$ref"));
    if kind == "null" {
        errors.forbidden(&path.child("type"), "type cannot be set to null, use nullable as an alternative");
    }
    if !parts::branches(schema, "items").is_empty() {
        errors.forbidden(&path.child("items"), "items must be a schema object and not an array");
    }
    if context.in_metadata && parts::is_on(schema, EMBEDDED) {
        errors.forbidden(&path.child(EMBEDDED), "must not be used inside of resource meta");
    }
}
