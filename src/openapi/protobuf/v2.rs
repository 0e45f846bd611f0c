//! Messages of `openapi.v2`.

use super::{ANYS, FieldEncoding, Message, TEXTS, Value, map, plain};

/// `Info`.
pub static INFO: Message = plain(&[("title", 1, FieldEncoding::Text), ("version", 2, FieldEncoding::Text)], 7);
static REFERENCE: Message = plain(&[("$ref", 1, FieldEncoding::Text), ("description", 2, FieldEncoding::Text)], 0);
/// `PathItem`.
pub static PATH_ITEM: Message = plain(
    &[
        ("get", 2, FieldEncoding::One(&OPERATION)),
        ("put", 3, FieldEncoding::One(&OPERATION)),
        ("post", 4, FieldEncoding::One(&OPERATION)),
        ("delete", 5, FieldEncoding::One(&OPERATION)),
        ("options", 6, FieldEncoding::One(&OPERATION)),
        ("head", 7, FieldEncoding::One(&OPERATION)),
        ("patch", 8, FieldEncoding::One(&OPERATION)),
        ("parameters", 9, FieldEncoding::Each(&PARAMETERS_ITEM)),
    ],
    10,
);
static OPERATION: Message = plain(
    &[
        ("tags", 1, TEXTS),
        ("description", 3, FieldEncoding::Text),
        ("operationId", 5, FieldEncoding::Text),
        ("produces", 6, TEXTS),
        ("consumes", 7, TEXTS),
        ("parameters", 8, FieldEncoding::Each(&PARAMETERS_ITEM)),
        ("responses", 9, FieldEncoding::One(&RESPONSES)),
        ("schemes", 10, TEXTS),
    ],
    13,
);
static PARAMETERS_ITEM: FieldEncoding = FieldEncoding::Choice(|value| {
    if value.get("$ref").is_some() {
        return Some((&[2], FieldEncoding::One(&REFERENCE)));
    }
    Some((&[1], PARAMETER))
});
/// `Parameter`.
pub const PARAMETER: FieldEncoding = FieldEncoding::Choice(|value| match value.str_at(&["in"]) {
    "body" => Some((&[1], FieldEncoding::One(&BODY))),
    "query" => Some((&[2, 3], FieldEncoding::One(&QUERY))),
    "path" => Some((&[2, 4], FieldEncoding::One(&PATH))),
    _ => None,
});
static BODY: Message = plain(
    &[
        ("description", 1, FieldEncoding::Text),
        ("name", 2, FieldEncoding::Text),
        ("in", 3, FieldEncoding::Text),
        ("required", 4, FieldEncoding::Flag),
        ("schema", 5, FieldEncoding::One(&SCHEMA)),
    ],
    6,
);
static QUERY: Message = plain(
    &[
        ("required", 1, FieldEncoding::Flag),
        ("in", 2, FieldEncoding::Text),
        ("description", 3, FieldEncoding::Text),
        ("name", 4, FieldEncoding::Text),
        ("type", 6, FieldEncoding::Text),
        ("uniqueItems", 20, FieldEncoding::Flag),
    ],
    23,
);
static PATH: Message = plain(
    &[
        ("required", 1, FieldEncoding::Flag),
        ("in", 2, FieldEncoding::Text),
        ("description", 3, FieldEncoding::Text),
        ("name", 4, FieldEncoding::Text),
        ("type", 5, FieldEncoding::Text),
        ("uniqueItems", 19, FieldEncoding::Flag),
    ],
    22,
);
static RESPONSES: Message = map((1, FieldEncoding::Choice(|_| Some((&[1], FieldEncoding::One(&RESPONSE))))));
static RESPONSE: Message = plain(&[("description", 1, FieldEncoding::Text), ("schema", 2, SCHEMA_ITEM)], 5);
const SCHEMA_ITEM: FieldEncoding = FieldEncoding::Choice(|_| Some((&[1], FieldEncoding::One(&SCHEMA))));
/// `Schema`.
pub static SCHEMA: Message = plain(
    &[
        ("$ref", 1, FieldEncoding::Text),
        ("format", 2, FieldEncoding::Text),
        ("title", 3, FieldEncoding::Text),
        ("description", 4, FieldEncoding::Text),
        ("multipleOf", 6, FieldEncoding::Number),
        ("maximum", 7, FieldEncoding::Number),
        ("exclusiveMaximum", 8, FieldEncoding::Flag),
        ("minimum", 9, FieldEncoding::Number),
        ("exclusiveMinimum", 10, FieldEncoding::Flag),
        ("maxLength", 11, FieldEncoding::Integer),
        ("minLength", 12, FieldEncoding::Integer),
        ("pattern", 13, FieldEncoding::Text),
        ("maxItems", 14, FieldEncoding::Integer),
        ("minItems", 15, FieldEncoding::Integer),
        ("uniqueItems", 16, FieldEncoding::Flag),
        ("maxProperties", 17, FieldEncoding::Integer),
        ("minProperties", 18, FieldEncoding::Integer),
        ("required", 19, TEXTS),
        ("enum", 20, ANYS),
        ("additionalProperties", 21, ADDITIONAL),
        ("type", 22, FieldEncoding::Strings),
        ("items", 23, SCHEMA_ITEM),
        ("properties", 25, FieldEncoding::One(&PROPERTIES)),
    ],
    31,
);
const ADDITIONAL: FieldEncoding = FieldEncoding::Choice(|value| match value {
    Value::Bool(_) => Some((&[2], FieldEncoding::Switch)),
    _ => Some((&[1], FieldEncoding::One(&SCHEMA))),
});
static PROPERTIES: Message = map((1, FieldEncoding::One(&SCHEMA)));
/// `SecurityDefinitions`.
pub static SECURITY_DEFINITIONS: Message =
    map((1, FieldEncoding::Choice(|_| Some((&[2], FieldEncoding::One(&API_KEY))))));
static API_KEY: Message = plain(
    &[
        ("type", 1, FieldEncoding::Text),
        ("name", 2, FieldEncoding::Text),
        ("in", 3, FieldEncoding::Text),
        ("description", 4, FieldEncoding::Text),
    ],
    5,
);
/// `SecurityRequirement`.
pub static SECURITY_REQUIREMENT: Message = map((1, FieldEncoding::One(&STRINGS)));
static STRINGS: Message = plain(&[("value", 1, TEXTS)], 0);
