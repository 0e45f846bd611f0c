//! Reading a schema from JSON.

use super::{Additional, DEPTH_MAX, Enumeration, ListType, Pattern, Structural, ValueType, ValueValidations};
use crate::json;
use crate::value::{Map, Str, Value};

/// The members of a schema that are value validations; most schemas have none of them.
const RULES: [&str; 20] = [
    "allOf",
    "anyOf",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "required",
    "uniqueItems",
];

/// Reads a schema that is `depth` levels below another.
pub fn schema(schema: &Value, depth: usize) -> Structural {
    let Some(map) = schema.as_object() else { return Structural::default() };
    if depth > DEPTH_MAX {
        return Structural { preserves_unknown: true, nullable: true, ..Structural::default() };
    }
    let flag = |key| schema.is_true_at(&[key]);
    let mut read = Structural {
        of: value_type(schema.str_at(&["type"])),
        nullable: flag("nullable"),
        default: map.get("default").filter(|value| !value.is_null()).cloned(),
        preserves_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        embedded: flag("x-kubernetes-embedded-resource"),
        int_or_string: flag("x-kubernetes-int-or-string"),
        list_type: list_type(schema.str_at(&["x-kubernetes-list-type"])),
        list_map_keys: texts(schema, "x-kubernetes-list-map-keys"),
        atomic: schema.str_at(&["x-kubernetes-map-type"]) == "atomic",
        ..Structural::default()
    };
    read.default_bytes = read.default.as_ref().map_or(0, |value| json::to_vec(value).len());
    read.properties = properties(schema.at(&["properties"]), depth + 1);
    let has_default = |(_, (_, property)): &(usize, &(Str, Structural))| property.default.is_some();
    read.defaulted = read.properties.iter().enumerate().filter(has_default).map(|(at, _)| at).collect();
    read.additional = additional(schema.at(&["additionalProperties"]), depth + 1);
    read.items = below(schema, "items", depth + 1);
    read.rules = map.keys().any(|key| RULES.contains(&key)).then(|| Box::new(rules(schema, depth + 1)));
    read
}

fn value_type(name: &str) -> Option<ValueType> {
    use ValueType::{Array, Boolean, Integer, Number, Object, String};
    [Object, Array, String, Integer, Number, Boolean].into_iter().find(|of| of.name() == name)
}

fn list_type(name: &str) -> Option<ListType> {
    match name {
        "atomic" => Some(ListType::Atomic),
        "set" => Some(ListType::Set),
        "map" => Some(ListType::Map),
        _ => None,
    }
}

fn texts(schema: &Value, key: &str) -> Vec<Str> {
    schema.list_at(&[key]).iter().filter_map(Value::as_str).map(Str::from).collect()
}

fn properties(value: &Value, depth: usize) -> Vec<(Str, Structural)> {
    let members = value.as_object().into_iter().flat_map(Map::iter);
    let mut read: Vec<_> = members.map(|(name, value)| (Str::from(name), schema(value, depth))).collect();
    read.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    read
}

fn additional(value: &Value, depth: usize) -> Additional {
    match value {
        Value::Bool(flag) => Additional::Any(*flag),
        Value::Object(_) => Additional::Of(Box::new(schema(value, depth))),
        _ => Additional::Absent,
    }
}

/// Returns the schema in the member `key`; `None` if there is none.
fn below(schema: &Value, key: &str, depth: usize) -> Option<Box<Structural>> {
    let value = schema.at(&[key]);
    value.as_object().map(|_| Box::new(self::schema(value, depth)))
}

fn rules(schema: &Value, depth: usize) -> ValueValidations {
    let count = |key| schema.int_at(&[key]);
    let number = |key| number(schema.at(&[key]));
    let flag = |key| schema.is_true_at(&[key]);
    let schemas = |key| schema.list_at(&[key]).iter().map(|value| self::schema(value, depth)).collect();
    ValueValidations {
        enumeration: Enumeration::of(schema.list_at(&["enum"])),
        format: schema.str_at(&["format"]).into(),
        pattern: Some(schema.str_at(&["pattern"])).filter(|text| !text.is_empty()).map(Pattern::new),
        minimum: number("minimum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        maximum: number("maximum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: flag("uniqueItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        required: texts(schema, "required"),
        all_of: schemas("allOf"),
        any_of: schemas("anyOf"),
        one_of: schemas("oneOf"),
        not: below(schema, "not", depth),
    }
}

#[expect(clippy::cast_precision_loss, reason = "bounds are floats in the API")]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(number.get()),
        _ => None,
    }
}
