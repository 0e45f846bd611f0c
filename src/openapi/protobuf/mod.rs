//! The protobuf forms of OpenAPI documents (`openapi.v2` and `openapi.v3` of google/gnostic-models), written from the
//! JSON form by tables of messages.

pub(super) mod v2;
pub(super) mod v3;

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
