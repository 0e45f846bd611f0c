//! Messages of `openapi.v3`.

use super::{ANYS, FieldEncoding, Message, TEXTS, Value, map, plain};

/// `Info`.
pub static INFO: Message = plain(&[("title", 1, FieldEncoding::Text), ("version", 6, FieldEncoding::Text)], 7);
static REFERENCE: Message = plain(&[("$ref", 1, FieldEncoding::Text), ("description", 3, FieldEncoding::Text)], 0);
/// `PathItem`.
pub static PATH_ITEM: Message = plain(
    &[
        ("get", 4, FieldEncoding::One(&OPERATION)),
        ("put", 5, FieldEncoding::One(&OPERATION)),
        ("post", 6, FieldEncoding::One(&OPERATION)),
        ("delete", 7, FieldEncoding::One(&OPERATION)),
        ("options", 8, FieldEncoding::One(&OPERATION)),
        ("head", 9, FieldEncoding::One(&OPERATION)),
        ("patch", 10, FieldEncoding::One(&OPERATION)),
        ("parameters", 13, FieldEncoding::Each(&PARAMETER_OR_REFERENCE)),
    ],
    14,
);
static OPERATION: Message = plain(
    &[
        ("tags", 1, TEXTS),
        ("description", 3, FieldEncoding::Text),
        ("operationId", 5, FieldEncoding::Text),
        ("parameters", 6, FieldEncoding::Each(&PARAMETER_OR_REFERENCE)),
        ("requestBody", 7, FieldEncoding::Choice(|_| Some((&[1], FieldEncoding::One(&REQUEST_BODY))))),
        ("responses", 8, FieldEncoding::One(&RESPONSES)),
    ],
    13,
);
static PARAMETER_OR_REFERENCE: FieldEncoding = FieldEncoding::Choice(|_| Some((&[1], FieldEncoding::One(&PARAMETER))));
static PARAMETER: Message = plain(
    &[
        ("name", 1, FieldEncoding::Text),
        ("in", 2, FieldEncoding::Text),
        ("description", 3, FieldEncoding::Text),
        ("required", 4, FieldEncoding::Flag),
        ("schema", 10, SCHEMA_OR_REFERENCE),
    ],
    14,
);
static REQUEST_BODY: Message =
    plain(&[("content", 2, FieldEncoding::One(&MEDIA_TYPES)), ("required", 3, FieldEncoding::Flag)], 4);
static MEDIA_TYPES: Message = map((1, FieldEncoding::One(&MEDIA_TYPE)));
static MEDIA_TYPE: Message = plain(&[("schema", 1, SCHEMA_OR_REFERENCE)], 5);
static RESPONSES: Message = map((2, FieldEncoding::Choice(|_| Some((&[1], FieldEncoding::One(&RESPONSE))))));
static RESPONSE: Message =
    plain(&[("description", 1, FieldEncoding::Text), ("content", 3, FieldEncoding::One(&MEDIA_TYPES))], 5);
/// `SchemaOrReference`.
pub const SCHEMA_OR_REFERENCE: FieldEncoding = FieldEncoding::Choice(|value| match value.get("$ref") {
    Some(_) => Some((&[2], FieldEncoding::One(&REFERENCE))),
    None => Some((&[1], FieldEncoding::One(&SCHEMA))),
});
static SCHEMA_ITEM: FieldEncoding = SCHEMA_OR_REFERENCE;
static SCHEMA: Message = plain(
    &[
        ("nullable", 1, FieldEncoding::Flag),
        ("title", 9, FieldEncoding::Text),
        ("multipleOf", 10, FieldEncoding::Number),
        ("maximum", 11, FieldEncoding::Number),
        ("exclusiveMaximum", 12, FieldEncoding::Flag),
        ("minimum", 13, FieldEncoding::Number),
        ("exclusiveMinimum", 14, FieldEncoding::Flag),
        ("maxLength", 15, FieldEncoding::Integer),
        ("minLength", 16, FieldEncoding::Integer),
        ("pattern", 17, FieldEncoding::Text),
        ("maxItems", 18, FieldEncoding::Integer),
        ("minItems", 19, FieldEncoding::Integer),
        ("uniqueItems", 20, FieldEncoding::Flag),
        ("maxProperties", 21, FieldEncoding::Integer),
        ("minProperties", 22, FieldEncoding::Integer),
        ("required", 23, TEXTS),
        ("enum", 24, ANYS),
        ("type", 25, FieldEncoding::Text),
        ("allOf", 26, FieldEncoding::Each(&SCHEMA_ITEM)),
        ("oneOf", 27, FieldEncoding::Each(&SCHEMA_ITEM)),
        ("anyOf", 28, FieldEncoding::Each(&SCHEMA_ITEM)),
        ("not", 29, FieldEncoding::One(&SCHEMA)),
        ("items", 30, FieldEncoding::Choice(|_| Some((&[1], SCHEMA_OR_REFERENCE)))),
        ("properties", 31, FieldEncoding::One(&PROPERTIES)),
        ("additionalProperties", 32, ADDITIONAL),
        ("default", 33, DEFAULT),
        ("description", 34, FieldEncoding::Text),
        ("format", 35, FieldEncoding::Text),
    ],
    36,
);
const ADDITIONAL: FieldEncoding = FieldEncoding::Choice(|value| match value {
    Value::Bool(_) => Some((&[2], FieldEncoding::Switch)),
    _ => Some((&[1], SCHEMA_OR_REFERENCE)),
});
/// A default that is an object is written as an empty message.
const DEFAULT: FieldEncoding = FieldEncoding::Choice(|value| match value {
    Value::Int(_) | Value::Float(_) => Some((&[1], FieldEncoding::Number)),
    Value::Bool(_) => Some((&[2], FieldEncoding::Switch)),
    Value::Str(_) => Some((&[3], FieldEncoding::Text)),
    _ => Some((&[], FieldEncoding::One(&NOTHING))),
});
static NOTHING: Message = plain(&[], 0);
static PROPERTIES: Message = map((1, SCHEMA_OR_REFERENCE));
/// `SecuritySchemesOrReferences`.
pub static SECURITY_SCHEMES: Message =
    map((1, FieldEncoding::Choice(|_| Some((&[1], FieldEncoding::One(&SECURITY_SCHEME))))));
static SECURITY_SCHEME: Message = plain(
    &[
        ("type", 1, FieldEncoding::Text),
        ("description", 2, FieldEncoding::Text),
        ("name", 3, FieldEncoding::Text),
        ("in", 4, FieldEncoding::Text),
    ],
    9,
);
