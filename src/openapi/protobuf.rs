//! The protobuf forms of OpenAPI documents (`openapi.v2` and `openapi.v3` of google/gnostic-models), written from the
//! JSON form by tables of messages.

use flotilla_proto::json;
use flotilla_proto::value::{Map, Value};

/// A message: the field number of each key of the JSON object.
pub(super) struct Message {
    fields: &'static [(&'static str, u32, Kind)],
    /// Field number of named extensions (`x-...`); 0 for none.
    extensions: u32,
    /// Field number and kind of the entries for all other keys, if the message is a map; number 0 if not.
    entries: (u32, Kind),
}

/// Field numbers of the messages around a value, outermost first, and the encoding of the value. `None` omits the
/// value.
type Chosen = Option<(&'static [u32], Kind)>;

/// The encoding of a value.
#[derive(Clone, Copy)]
pub(super) enum Kind {
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
    Each(&'static Kind),
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
pub(super) fn field(number: u32, kind: Kind, value: &Value, out: &mut Vec<u8>) {
    match (kind, value) {
        (Kind::Text, Value::Str(text)) => bytes(number, text.as_bytes(), out),
        (Kind::Flag, Value::Bool(true)) => switch(number, true, out),
        (Kind::Switch, Value::Bool(value)) => switch(number, *value, out),
        (Kind::Integer, Value::Int(value)) => {
            varint(u64::from(number) << 3, out);
            varint(*value as u64, out);
        }
        (Kind::Number, Value::Int(value)) => double(number, *value as f64, out),
        (Kind::Number, Value::Float(value)) => double(number, value.get(), out),
        (Kind::Any, value) => bytes(number, &any(value), out),
        (Kind::One(of), Value::Object(map)) => bytes(number, &message(of, map), out),
        (Kind::Each(kind), Value::Array(items)) => items.iter().for_each(|item| field(number, *kind, item, out)),
        (Kind::Strings, Value::Str(_)) => bytes(number, &single(1, Kind::Text, value), out),
        (Kind::Strings, Value::Array(_)) => bytes(number, &single(1, Kind::Each(&Kind::Text), value), out),
        (Kind::Choice(choose), value) => {
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
fn single(number: u32, kind: Kind, value: &Value) -> Vec<u8> {
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
pub(super) fn entry(number: u32, name: &str, kind: Kind, value: &Value, out: &mut Vec<u8>) {
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
            entry(of.extensions, name, Kind::Any, value, &mut out);
        } else if of.entries.0 > 0 {
            entry(of.entries.0, name, of.entries.1, value, &mut out);
        }
    }
    out
}

const fn plain(fields: &'static [(&'static str, u32, Kind)], extensions: u32) -> Message {
    Message { fields, extensions, entries: (0, Kind::Any) }
}

const fn map(entries: (u32, Kind)) -> Message {
    Message { fields: &[], extensions: 0, entries }
}

const TEXTS: Kind = Kind::Each(&Kind::Text);
const ANYS: Kind = Kind::Each(&Kind::Any);

/// Messages of `openapi.v2`.
pub(super) mod v2 {
    use super::{ANYS, Kind, Message, TEXTS, Value, map, plain};

    /// `Info`.
    pub static INFO: Message = plain(&[("title", 1, Kind::Text), ("version", 2, Kind::Text)], 7);
    static REFERENCE: Message = plain(&[("$ref", 1, Kind::Text), ("description", 2, Kind::Text)], 0);
    /// `PathItem`.
    pub static PATH_ITEM: Message = plain(
        &[
            ("get", 2, Kind::One(&OPERATION)),
            ("put", 3, Kind::One(&OPERATION)),
            ("post", 4, Kind::One(&OPERATION)),
            ("delete", 5, Kind::One(&OPERATION)),
            ("options", 6, Kind::One(&OPERATION)),
            ("head", 7, Kind::One(&OPERATION)),
            ("patch", 8, Kind::One(&OPERATION)),
            ("parameters", 9, Kind::Each(&PARAMETERS_ITEM)),
        ],
        10,
    );
    static OPERATION: Message = plain(
        &[
            ("tags", 1, TEXTS),
            ("description", 3, Kind::Text),
            ("operationId", 5, Kind::Text),
            ("produces", 6, TEXTS),
            ("consumes", 7, TEXTS),
            ("parameters", 8, Kind::Each(&PARAMETERS_ITEM)),
            ("responses", 9, Kind::One(&RESPONSES)),
            ("schemes", 10, TEXTS),
        ],
        13,
    );
    static PARAMETERS_ITEM: Kind = Kind::Choice(|value| {
        if value.get("$ref").is_some() {
            return Some((&[2], Kind::One(&REFERENCE)));
        }
        Some((&[1], PARAMETER))
    });
    /// `Parameter`.
    pub const PARAMETER: Kind = Kind::Choice(|value| match value.str_at(&["in"]) {
        "body" => Some((&[1], Kind::One(&BODY))),
        "query" => Some((&[2, 3], Kind::One(&QUERY))),
        "path" => Some((&[2, 4], Kind::One(&PATH))),
        _ => None,
    });
    static BODY: Message = plain(
        &[
            ("description", 1, Kind::Text),
            ("name", 2, Kind::Text),
            ("in", 3, Kind::Text),
            ("required", 4, Kind::Flag),
            ("schema", 5, Kind::One(&SCHEMA)),
        ],
        6,
    );
    static QUERY: Message = plain(
        &[
            ("required", 1, Kind::Flag),
            ("in", 2, Kind::Text),
            ("description", 3, Kind::Text),
            ("name", 4, Kind::Text),
            ("type", 6, Kind::Text),
            ("uniqueItems", 20, Kind::Flag),
        ],
        23,
    );
    static PATH: Message = plain(
        &[
            ("required", 1, Kind::Flag),
            ("in", 2, Kind::Text),
            ("description", 3, Kind::Text),
            ("name", 4, Kind::Text),
            ("type", 5, Kind::Text),
            ("uniqueItems", 19, Kind::Flag),
        ],
        22,
    );
    static RESPONSES: Message = map((1, Kind::Choice(|_| Some((&[1], Kind::One(&RESPONSE))))));
    static RESPONSE: Message = plain(&[("description", 1, Kind::Text), ("schema", 2, SCHEMA_ITEM)], 5);
    const SCHEMA_ITEM: Kind = Kind::Choice(|_| Some((&[1], Kind::One(&SCHEMA))));
    /// `Schema`.
    pub static SCHEMA: Message = plain(
        &[
            ("$ref", 1, Kind::Text),
            ("format", 2, Kind::Text),
            ("title", 3, Kind::Text),
            ("description", 4, Kind::Text),
            ("multipleOf", 6, Kind::Number),
            ("maximum", 7, Kind::Number),
            ("exclusiveMaximum", 8, Kind::Flag),
            ("minimum", 9, Kind::Number),
            ("exclusiveMinimum", 10, Kind::Flag),
            ("maxLength", 11, Kind::Integer),
            ("minLength", 12, Kind::Integer),
            ("pattern", 13, Kind::Text),
            ("maxItems", 14, Kind::Integer),
            ("minItems", 15, Kind::Integer),
            ("uniqueItems", 16, Kind::Flag),
            ("maxProperties", 17, Kind::Integer),
            ("minProperties", 18, Kind::Integer),
            ("required", 19, TEXTS),
            ("enum", 20, ANYS),
            ("additionalProperties", 21, ADDITIONAL),
            ("type", 22, Kind::Strings),
            ("items", 23, SCHEMA_ITEM),
            ("properties", 25, Kind::One(&PROPERTIES)),
        ],
        31,
    );
    const ADDITIONAL: Kind = Kind::Choice(|value| match value {
        Value::Bool(_) => Some((&[2], Kind::Switch)),
        _ => Some((&[1], Kind::One(&SCHEMA))),
    });
    static PROPERTIES: Message = map((1, Kind::One(&SCHEMA)));
    /// `SecurityDefinitions`.
    pub static SECURITY_DEFINITIONS: Message = map((1, Kind::Choice(|_| Some((&[2], Kind::One(&API_KEY))))));
    static API_KEY: Message = plain(
        &[("type", 1, Kind::Text), ("name", 2, Kind::Text), ("in", 3, Kind::Text), ("description", 4, Kind::Text)],
        5,
    );
    /// `SecurityRequirement`.
    pub static SECURITY_REQUIREMENT: Message = map((1, Kind::One(&STRINGS)));
    static STRINGS: Message = plain(&[("value", 1, TEXTS)], 0);
}

/// Messages of `openapi.v3`.
pub(super) mod v3 {
    use super::{ANYS, Kind, Message, TEXTS, Value, map, plain};

    /// `Info`.
    pub static INFO: Message = plain(&[("title", 1, Kind::Text), ("version", 6, Kind::Text)], 7);
    static REFERENCE: Message = plain(&[("$ref", 1, Kind::Text), ("description", 3, Kind::Text)], 0);
    /// `PathItem`.
    pub static PATH_ITEM: Message = plain(
        &[
            ("get", 4, Kind::One(&OPERATION)),
            ("put", 5, Kind::One(&OPERATION)),
            ("post", 6, Kind::One(&OPERATION)),
            ("delete", 7, Kind::One(&OPERATION)),
            ("options", 8, Kind::One(&OPERATION)),
            ("head", 9, Kind::One(&OPERATION)),
            ("patch", 10, Kind::One(&OPERATION)),
            ("parameters", 13, Kind::Each(&PARAMETER_OR_REFERENCE)),
        ],
        14,
    );
    static OPERATION: Message = plain(
        &[
            ("tags", 1, TEXTS),
            ("description", 3, Kind::Text),
            ("operationId", 5, Kind::Text),
            ("parameters", 6, Kind::Each(&PARAMETER_OR_REFERENCE)),
            ("requestBody", 7, Kind::Choice(|_| Some((&[1], Kind::One(&REQUEST_BODY))))),
            ("responses", 8, Kind::One(&RESPONSES)),
        ],
        13,
    );
    static PARAMETER_OR_REFERENCE: Kind = Kind::Choice(|_| Some((&[1], Kind::One(&PARAMETER))));
    static PARAMETER: Message = plain(
        &[
            ("name", 1, Kind::Text),
            ("in", 2, Kind::Text),
            ("description", 3, Kind::Text),
            ("required", 4, Kind::Flag),
            ("schema", 10, SCHEMA_OR_REFERENCE),
        ],
        14,
    );
    static REQUEST_BODY: Message = plain(&[("content", 2, Kind::One(&MEDIA_TYPES)), ("required", 3, Kind::Flag)], 4);
    static MEDIA_TYPES: Message = map((1, Kind::One(&MEDIA_TYPE)));
    static MEDIA_TYPE: Message = plain(&[("schema", 1, SCHEMA_OR_REFERENCE)], 5);
    static RESPONSES: Message = map((2, Kind::Choice(|_| Some((&[1], Kind::One(&RESPONSE))))));
    static RESPONSE: Message = plain(&[("description", 1, Kind::Text), ("content", 3, Kind::One(&MEDIA_TYPES))], 5);
    /// `SchemaOrReference`.
    pub const SCHEMA_OR_REFERENCE: Kind = Kind::Choice(|value| match value.get("$ref") {
        Some(_) => Some((&[2], Kind::One(&REFERENCE))),
        None => Some((&[1], Kind::One(&SCHEMA))),
    });
    static SCHEMA_ITEM: Kind = SCHEMA_OR_REFERENCE;
    static SCHEMA: Message = plain(
        &[
            ("nullable", 1, Kind::Flag),
            ("title", 9, Kind::Text),
            ("multipleOf", 10, Kind::Number),
            ("maximum", 11, Kind::Number),
            ("exclusiveMaximum", 12, Kind::Flag),
            ("minimum", 13, Kind::Number),
            ("exclusiveMinimum", 14, Kind::Flag),
            ("maxLength", 15, Kind::Integer),
            ("minLength", 16, Kind::Integer),
            ("pattern", 17, Kind::Text),
            ("maxItems", 18, Kind::Integer),
            ("minItems", 19, Kind::Integer),
            ("uniqueItems", 20, Kind::Flag),
            ("maxProperties", 21, Kind::Integer),
            ("minProperties", 22, Kind::Integer),
            ("required", 23, TEXTS),
            ("enum", 24, ANYS),
            ("type", 25, Kind::Text),
            ("allOf", 26, Kind::Each(&SCHEMA_ITEM)),
            ("oneOf", 27, Kind::Each(&SCHEMA_ITEM)),
            ("anyOf", 28, Kind::Each(&SCHEMA_ITEM)),
            ("not", 29, Kind::One(&SCHEMA)),
            ("items", 30, Kind::Choice(|_| Some((&[1], SCHEMA_OR_REFERENCE)))),
            ("properties", 31, Kind::One(&PROPERTIES)),
            ("additionalProperties", 32, ADDITIONAL),
            ("default", 33, DEFAULT),
            ("description", 34, Kind::Text),
            ("format", 35, Kind::Text),
        ],
        36,
    );
    const ADDITIONAL: Kind = Kind::Choice(|value| match value {
        Value::Bool(_) => Some((&[2], Kind::Switch)),
        _ => Some((&[1], SCHEMA_OR_REFERENCE)),
    });
    /// A default that is an object is written as an empty message.
    const DEFAULT: Kind = Kind::Choice(|value| match value {
        Value::Int(_) | Value::Float(_) => Some((&[1], Kind::Number)),
        Value::Bool(_) => Some((&[2], Kind::Switch)),
        Value::Str(_) => Some((&[3], Kind::Text)),
        _ => Some((&[], Kind::One(&NOTHING))),
    });
    static NOTHING: Message = plain(&[], 0);
    static PROPERTIES: Message = map((1, SCHEMA_OR_REFERENCE));
    /// `SecuritySchemesOrReferences`.
    pub static SECURITY_SCHEMES: Message = map((1, Kind::Choice(|_| Some((&[1], Kind::One(&SECURITY_SCHEME))))));
    static SECURITY_SCHEME: Message = plain(
        &[("type", 1, Kind::Text), ("description", 2, Kind::Text), ("name", 3, Kind::Text), ("in", 4, Kind::Text)],
        9,
    );
}
