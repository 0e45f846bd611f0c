//! The parts of a schema, under the names that OpenAPI gives them.

use flotilla_proto::catalogue;
use flotilla_proto::order;
use flotilla_proto::schema::Type;
use flotilla_proto::value::{Map, Value};

/// The keyword for the schema of fields that `properties` does not name.
pub const ADDITIONAL: &str = "additionalProperties";
/// The keyword for a value with metadata of its own.
pub const EMBEDDED: &str = "x-kubernetes-embedded-resource";
/// The keyword for a number or a text.
pub const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// The keyword for a value whose unknown fields are kept.
pub const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
/// The keyword for the keys that identify the items of a list.
pub const LIST_MAP_KEYS: &str = "x-kubernetes-list-map-keys";
/// The keyword for how lists are merged.
pub const LIST_TYPE: &str = "x-kubernetes-list-type";
/// The keyword for how objects are merged.
pub const MAP_TYPE: &str = "x-kubernetes-map-type";
/// The keyword for rules in CEL.
pub const RULES: &str = "x-kubernetes-validations";
/// The fields that every resource has.
pub const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Returns whether a keyword is present.
pub fn has(schema: &Value, keyword: &str) -> bool {
    !schema.at(&[keyword]).is_null()
}

/// Returns whether a keyword is present and `true`.
pub fn is_on(schema: &Value, keyword: &str) -> bool {
    schema.is_true_at(&[keyword])
}

/// Returns the `type` of a schema; empty if it has none.
pub fn kind(schema: &Value) -> &str {
    schema.str_at(&["type"])
}

/// Returns the schema of a list's items; `None` if there is none or there are several.
pub fn items(schema: &Value) -> Option<&Value> {
    schema.get("items").filter(|items| items.as_object().is_some())
}

/// Returns the schemas in a list, such as those under `anyOf`.
pub fn branches<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    schema.list_at(&[keyword])
}

/// Returns the schemas in a map with their names, such as those under `properties`.
pub fn members<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    schema.at(&[keyword]).as_object().into_iter().flat_map(Map::iter)
}

/// Returns the schema of a property.
pub fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

/// Returns the schema under `additionalProperties`.
pub fn additional(schema: &Value) -> Option<&Value> {
    schema.get(ADDITIONAL).filter(|additional| additional.as_object().is_some())
}

/// Returns whether a keyword holds an object or list that is not empty.
pub fn is_filled(schema: &Value, keyword: &str) -> bool {
    match schema.at(&[keyword]) {
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => false,
    }
}

/// Returns the direct subschemas of a schema.
pub fn inside(schema: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["items", "allOf", "anyOf", "oneOf"].into_iter().flat_map(|keyword| branches(schema, keyword));
    let single = ["not", ADDITIONAL, "additionalItems"].into_iter().map(|keyword| schema.at(&[keyword]));
    let maps = ["properties", "patternProperties", "definitions", "dependencies"];
    let named = maps.into_iter().flat_map(|keyword| members(schema, keyword)).map(|(_, schema)| schema);
    items(schema).into_iter().chain(lists).chain(single).chain(named).filter(|inside| inside.as_object().is_some())
}

/// Returns whether `holds` is true for a schema or one inside it.
pub fn any(schema: &Value, holds: &dyn Fn(&Value) -> bool) -> bool {
    schema.as_object().is_some() && (holds(schema) || inside(schema).any(|schema| any(schema, holds)))
}

/// Returns whether a schema has only keywords that a structural schema can express.
pub fn is_expressible(schema: &Value) -> bool {
    let filled = ["patternProperties", "dependencies", "definitions"];
    !any(schema, &|schema| {
        ["id", "$schema", "$ref"].iter().any(|keyword| !schema.str_at(&[keyword]).is_empty())
            || filled.iter().any(|keyword| is_filled(schema, keyword))
            || has(schema, "additionalItems")
            || !branches(schema, "items").is_empty()
            || schema.at(&[PRESERVE]).as_bool() == Some(false)
    })
}

/// Sorts the members of free JSON in a schema as Kubernetes writes them: the members of values by key, as in Go's maps,
/// and the members of a schema in whose place a list or a flag may stand, in the order of its type.
pub fn arrange_schema(schema: &mut Value) {
    let is_schema = |of: &&&'static Type| of.openapi.ends_with(".apiextensions.v1.JSONSchemaProps");
    arrange(catalogue::types().iter().find(is_schema).copied(), schema);
}

fn arrange(of: Option<&Type>, schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for (key, part) in map.iter_mut() {
        match key {
            "default" | "example" | "enum" => part.sort_members(),
            "items" if part.as_array().is_some() => each(part, |part| arrange_free(of, part)),
            "items" | ADDITIONAL | "additionalItems" => arrange_free(of, part),
            "dependencies" => each(part, |part| arrange_free(of, part)),
            "allOf" | "anyOf" | "oneOf" | "properties" | "patternProperties" | "definitions" => {
                each(part, |part| arrange(of, part));
            }
            "not" => arrange(of, part),
            _ => {}
        }
    }
}

fn arrange_free(of: Option<&Type>, schema: &mut Value) {
    if let Some(of) = of {
        order::reorder(of, schema);
    }
    arrange(of, schema);
}

fn each(parts: &mut Value, mut visit: impl FnMut(&mut Value)) {
    match parts {
        Value::Object(map) => {
            map.sort();
            map.iter_mut().for_each(|(_, part)| visit(part));
        }
        Value::Array(items) => items.iter_mut().for_each(visit),
        _ => {}
    }
}
