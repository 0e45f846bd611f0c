//! Prints schemas in error messages as the reference does: as its internal Go structure, with every member.

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::parts;
use crate::field::shown as text;
use crate::rules::shown;

/// How the internal structure represents a member.
#[derive(Clone, Copy)]
enum MemberForm {
    Text,
    Flag,
    /// The value as it is; null unless it is set.
    Plain,
    Docs,
    Schema,
    Schemas,
    Named,
    SchemaOrSchemas,
    SchemaOrFlag,
    SchemasOrTexts,
    Rules,
}
use MemberForm::{
    Docs, Flag, Named, Plain, Rules, Schema, SchemaOrFlag, SchemaOrSchemas, Schemas, SchemasOrTexts, Text,
};

/// The members of a schema in the order of the internal structure: internal name, keyword, form.
const MEMBERS: [(&str, &str, MemberForm); 44] = [
    ("ID", "id", Text),
    ("Schema", "$schema", Text),
    ("Ref", "$ref", Plain),
    ("Description", "description", Text),
    ("Type", "type", Text),
    ("Nullable", "nullable", Flag),
    ("Format", "format", Text),
    ("Title", "title", Text),
    ("Default", "default", Plain),
    ("Maximum", "maximum", Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", Flag),
    ("Minimum", "minimum", Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", Flag),
    ("MaxLength", "maxLength", Plain),
    ("MinLength", "minLength", Plain),
    ("Pattern", "pattern", Text),
    ("MaxItems", "maxItems", Plain),
    ("MinItems", "minItems", Plain),
    ("UniqueItems", "uniqueItems", Flag),
    ("MultipleOf", "multipleOf", Plain),
    ("Enum", "enum", Plain),
    ("MaxProperties", "maxProperties", Plain),
    ("MinProperties", "minProperties", Plain),
    ("Required", "required", Plain),
    ("Items", "items", SchemaOrSchemas),
    ("AllOf", "allOf", Schemas),
    ("OneOf", "oneOf", Schemas),
    ("AnyOf", "anyOf", Schemas),
    ("Not", "not", Schema),
    ("Properties", "properties", Named),
    ("AdditionalProperties", "additionalProperties", SchemaOrFlag),
    ("PatternProperties", "patternProperties", Named),
    ("Dependencies", "dependencies", SchemasOrTexts),
    ("AdditionalItems", "additionalItems", SchemaOrFlag),
    ("Definitions", "definitions", Named),
    ("ExternalDocs", "externalDocs", Docs),
    ("Example", "example", Plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Plain),
    ("XListType", "x-kubernetes-list-type", Plain),
    ("XMapType", "x-kubernetes-map-type", Plain),
    ("XValidations", "x-kubernetes-validations", Rules),
];

/// Returns the internal names of the members that a schema sets, in the order of the internal structure.
pub fn stated(schema: &Value) -> impl Iterator<Item = &'static str> {
    let is_set = |keyword: &str, form: MemberForm| match form {
        Text => !schema.str_at(&[keyword]).is_empty(),
        Flag => parts::is_on(schema, keyword),
        _ => parts::has(schema, keyword),
    };
    MEMBERS.iter().filter(move |(_, keyword, form)| is_set(keyword, *form)).map(|(name, ..)| *name)
}

/// Formats a schema for messages.
pub fn schema_shown(schema: &Value) -> String {
    text(&internal(schema))
}

/// Formats the value of `items`, which is present, for messages.
pub fn items_shown(items: &Value) -> String {
    text(&schema_or_schemas(items))
}

fn schema_or_schemas(items: &Value) -> Value {
    value!({"Schema": (internal(items)), "JSONSchemas": (list(items, internal))})
}

/// Converts a schema to its internal form.
pub fn internal(schema: &Value) -> Value {
    if schema.as_object().is_none() {
        return Value::Null;
    }
    let mut members = Map::new();
    for (name, keyword, form) in MEMBERS {
        members.insert(name, shaped(schema.at(&[keyword]), form));
    }
    members.into()
}

fn list(items: &Value, shape: fn(&Value) -> Value) -> Value {
    items.as_array().map_or(Value::Null, |items| Value::Array(items.iter().map(shape).collect()))
}

fn map(members: &Value, shape: fn(&Value) -> Value) -> Value {
    let Some(members) = members.as_object() else { return Value::Null };
    let mut map = Map::new();
    for (name, member) in members.iter() {
        map.insert(name, shape(member));
    }
    map.sort();
    map.into()
}

fn shaped(value: &Value, form: MemberForm) -> Value {
    if value.is_null() && !matches!(form, Text | Flag) {
        return Value::Null;
    }
    match form {
        Text => value.as_str().unwrap_or("").into(),
        Flag => value.as_bool().unwrap_or(false).into(),
        Plain => value.clone(),
        Docs => value!({"Description": (value.str_at(&["description"])), "URL": (value.str_at(&["url"]))}),
        Schema => internal(value),
        Schemas => list(value, internal),
        Named => map(value, internal),
        SchemaOrSchemas => schema_or_schemas(value),
        SchemaOrFlag => value!({"Allows": (value.as_bool().unwrap_or(true)), "Schema": (internal(value))}),
        SchemasOrTexts => {
            map(value, |value| value!({"Schema": (internal(value)), "Property": (list(value, Value::clone))}))
        }
        Rules => list(value, |rule| shown::internal("CustomRule", rule)),
    }
}
