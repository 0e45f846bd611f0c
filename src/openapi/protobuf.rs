//! The protobuf forms of OpenAPI documents (`openapi.v2` and `openapi.v3` of google/gnostic-models), written from the
//! JSON form by tables of messages.

use flotilla_proto::json;
use flotilla_proto::value::{Map, Value};

/// A message: the field number of each key of the JSON object.
pub(super) struct Message {
    fields: &'static [(&'static str, u32, FieldEncoding)],
    /// Field number of named extensions (`x-...`); 0 for none.
    extensions: u32,
    /// Field number and kind of the entries for all other keys, if the message is a map; number 0 if not.
    entries: (u32, FieldEncoding),
}

/// Field numbers of the messages around a value, outermost first, and the encoding of the value. `None` omits the
/// value.
type Chosen = Option<(&'static [u32], FieldEncoding)>;

/// The encoding of a value.
#[derive(Clone, Copy)]
pub(super) enum FieldEncoding {
    /// A string.
    Text,
    /// A boolean, left out when false.
    Flag,
    /// A boolean, written even when false.
    Switch,
    /// A 64-bit integer.
    Integer,
    /// A 64-bit float.
    Number,
    /// Anything, as YAML text in a message of its own.
    Any,
    /// A message.
    One(&'static Message),
    /// Each item of a list, as this kind.
    Each(&'static FieldEncoding),
    /// A string, or a list of them, in a message of its own.
    Strings,
    /// One of several messages, as the value decides.
    Choice(fn(&Value) -> Chosen),
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a field that is a sequence of bytes.
pub(super) fn bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | 2, out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a field of a message.
pub(super) fn field(number: u32, kind: FieldEncoding, value: &Value, out: &mut Vec<u8>) {
    match (kind, value) {
        (FieldEncoding::Text, Value::Str(text)) => bytes(number, text.as_bytes(), out),
        (FieldEncoding::Flag, Value::Bool(true)) => switch(number, true, out),
        (FieldEncoding::Switch, Value::Bool(value)) => switch(number, *value, out),
        (FieldEncoding::Integer, Value::Int(value)) => {
            varint(u64::from(number) << 3, out);
            varint(*value as u64, out);
        }
        (FieldEncoding::Number, Value::Int(value)) => double(number, *value as f64, out),
        (FieldEncoding::Number, Value::Float(value)) => double(number, value.get(), out),
        (FieldEncoding::Any, value) => bytes(number, &any(value), out),
        (FieldEncoding::One(of), Value::Object(map)) => bytes(number, &message(of, map), out),
        (FieldEncoding::Each(kind), Value::Array(items)) => {
            items.iter().for_each(|item| field(number, *kind, item, out))
        }
        (FieldEncoding::Strings, Value::Str(_)) => bytes(number, &single(1, FieldEncoding::Text, value), out),
        (FieldEncoding::Strings, Value::Array(_)) => {
            bytes(number, &single(1, FieldEncoding::Each(&FieldEncoding::Text), value), out)
        }
        (FieldEncoding::Choice(choose), value) => {
            let Some((around, kind)) = choose(value) else { return };
            let Some((innermost, outer)) = around.split_last() else { return field(number, kind, value, out) };
            let mut inner = single(*innermost, kind, value);
            for number in outer.iter().rev() {
                let mut wrapped = Vec::with_capacity(inner.len() + 8);
                bytes(*number, &inner, &mut wrapped);
                inner = wrapped;
            }
            bytes(number, &inner, out);
        }
        _ => {}
    }
}

fn switch(number: u32, value: bool, out: &mut Vec<u8>) {
    varint(u64::from(number) << 3, out);
    varint(u64::from(value), out);
}

fn double(number: u32, value: f64, out: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | 1, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Returns a message of one field.
fn single(number: u32, kind: FieldEncoding, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    field(number, kind, value, &mut out);
    out
}

/// Returns a message with a value as YAML; JSON is YAML too.
fn any(value: &Value) -> Vec<u8> {
    let mut text = json::to_vec(value);
    text.push(b'\n');
    let mut out = Vec::with_capacity(text.len() + 4);
    bytes(2, &text, &mut out);
    out
}

/// Appends an entry of a map: a message with a name and a value.
pub(super) fn entry(number: u32, name: &str, kind: FieldEncoding, value: &Value, out: &mut Vec<u8>) {
    let mut inner = Vec::new();
    bytes(1, name.as_bytes(), &mut inner);
    field(2, kind, value, &mut inner);
    bytes(number, &inner, out);
}

/// Returns a message without its length.
pub(super) fn message(of: &Message, map: &Map) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in map.iter() {
        if let Some((_, number, kind)) = of.fields.iter().find(|(field, ..)| *field == name) {
            field(*number, *kind, value, &mut out);
        } else if of.extensions > 0 && name.starts_with("x-") {
            entry(of.extensions, name, FieldEncoding::Any, value, &mut out);
        } else if of.entries.0 > 0 {
            entry(of.entries.0, name, of.entries.1, value, &mut out);
        }
    }
    out
}

const fn plain(fields: &'static [(&'static str, u32, FieldEncoding)], extensions: u32) -> Message {
    Message { fields, extensions, entries: (0, FieldEncoding::Any) }
}

const fn map(entries: (u32, FieldEncoding)) -> Message {
    Message { fields: &[], extensions: 0, entries }
}

const TEXTS: FieldEncoding = FieldEncoding::Each(&FieldEncoding::Text);
const ANYS: FieldEncoding = FieldEncoding::Each(&FieldEncoding::Any);

/// Messages of `openapi.v2`.
pub(super) mod v2 {
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
}

/// Messages of `openapi.v3`.
pub(super) mod v3 {
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
    static PARAMETER_OR_REFERENCE: FieldEncoding =
        FieldEncoding::Choice(|_| Some((&[1], FieldEncoding::One(&PARAMETER))));
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
}
