//! From a conformed value to a message.

use super::wire::{self, Writer};
use super::{DEPTH_MAX, Error, SCHEMA, scalar};
use crate::schema::{AnyKind, Field, List, Map as MapShape, Part, Presence, Shape, Type, Wire};
use crate::value::Value;

/// No type of the catalogue has more fields.
const FIELDS_MAX: usize = 64;

/// A struct's members by the position of their field.
type Members<'v> = [Option<&'v Value>; FIELDS_MAX];

/// Appends the message of a value that conforms to the type. Members that the type does not have are left out, and
/// those of a wrong type are written as their zero value: conformed values have neither.
///
/// # Errors
///
/// [`Error::JsonOnly`] where the type has no message, [`Error::TooDeep`] where messages nest deeper than
/// [`DEPTH_MAX`]; nothing is appended then.
pub fn encode(of: &Type, value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    if of.message.is_empty() {
        return Err(Error::JsonOnly(format!("{}.{}", of.package, of.name)));
    }
    let mut encoder = Encoder { out: Writer::new(out), json: Vec::new(), depth: 0, failed: false };
    encoder.message(of, Some(value));
    if encoder.failed {
        encoder.out.abandon();
        return Err(Error::TooDeep);
    }
    encoder.out.finish();
    Ok(())
}

struct Encoder<'a> {
    out: Writer<'a>,
    /// Text of a free-form value, before it is put in front.
    json: Vec<u8>,
    depth: usize,
    failed: bool,
}

impl Encoder<'_> {
    /// Writes the contents of a struct's message.
    fn message(&mut self, of: &Type, value: Option<&Value>) {
        if self.depth == DEPTH_MAX {
            self.failed = true;
            return;
        }
        self.depth += 1;
        let members = members(of, value);
        self.parts(of, of.wire, &members);
        self.depth -= 1;
    }

    fn parts(&mut self, of: &Type, wire: &[Wire], members: &Members<'_>) {
        for Wire { number, part } in wire.iter().rev() {
            match *part {
                Part::Embedded(parts) => {
                    let mark = self.out.written();
                    self.parts(of, parts, members);
                    self.out.close(*number, mark);
                }
                Part::Field(index) => self.field(*number, &of.fields[index], members.get(index).copied().flatten()),
            }
        }
    }

    fn field(&mut self, number: u32, field: &Field, value: Option<&Value>) {
        let value = value.filter(|value| !value.is_null());
        match &field.shape {
            Shape::List(list) if !list.boxed => self.list(number, list, value),
            Shape::Map(map) => self.map(number, map, value),
            Shape::List(_) | Shape::Bytes if value.is_none() => {}
            _ if value.is_none() && matches!(field.presence, Presence::Pointer | Presence::AlwaysPointer) => {}
            shape => self.single(number, shape, value),
        }
    }

    fn list(&mut self, number: u32, list: &List, value: Option<&Value>) {
        for item in value.and_then(Value::as_array).unwrap_or(&[]).iter().rev() {
            self.single(number, &list.item, Some(item));
        }
    }

    fn map(&mut self, number: u32, map: &MapShape, value: Option<&Value>) {
        let Some(members) = value.and_then(Value::as_object) else { return };
        if members.keys().is_sorted() {
            for (key, member) in members.iter().rev() {
                self.entry(number, map, key, member);
            }
            return;
        }
        let mut sorted: Vec<_> = members.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        for (key, member) in sorted.into_iter().rev() {
            self.entry(number, map, key, member);
        }
    }

    fn entry(&mut self, number: u32, map: &MapShape, key: &str, value: &Value) {
        let mark = self.out.written();
        if !(matches!(map.value, Shape::Bytes) && value.is_null()) {
            self.single(2, &map.value, Some(value));
        }
        self.out.bytes(1, key.as_bytes());
        self.out.close(number, mark);
    }

    /// Writes one field, list item or map value; the zero value where there is none.
    fn single(&mut self, number: u32, shape: &Shape, value: Option<&Value>) {
        let text = || value.and_then(Value::as_str);
        let mark = self.out.written();
        match shape {
            Shape::Bool => {
                return self.out.number(number, value.and_then(Value::as_bool).unwrap_or(false).into());
            }
            Shape::Int32 | Shape::Int64 | Shape::Uint(_) => {
                return self.out.number(number, value.and_then(Value::as_int).unwrap_or(0));
            }
            Shape::Double => {
                self.out.raw(&double(value).to_le_bytes());
                return self.out.tag(number, wire::FIXED64);
            }
            Shape::String { .. } => return self.out.bytes(number, text().unwrap_or("").as_bytes()),
            Shape::Bytes => return self.out.bytes(number, &scalar::from_base64(text().unwrap_or(""))),
            Shape::Quantity => self.out.bytes(1, text().unwrap_or("0").as_bytes()),
            Shape::IntOrString => scalar::write_int_or_string(value, &mut self.out),
            Shape::Time => scalar::write_time(text(), false, &mut self.out),
            Shape::MicroTime => scalar::write_time(text(), true, &mut self.out),
            Shape::Duration => scalar::write_duration(text(), &mut self.out),
            Shape::Any(kind) => self.free_form(*kind, value),
            Shape::Struct(of) => self.message(of, value),
            Shape::List(list) => self.list(1, list, value),
            // No map holds maps, and no list does.
            Shape::Map(_) => return,
        }
        self.out.close(number, mark);
    }

    fn free_form(&mut self, kind: AnyKind, value: Option<&Value>) {
        let Some(value) = value.filter(|value| !value.is_null()) else { return };
        match kind {
            AnyKind::RawExtension | AnyKind::FieldsV1 | AnyKind::Json => {
                self.json.clear();
                crate::json::write(value, &mut self.json);
                self.out.bytes(1, &self.json);
            }
            AnyKind::SchemaOrBool => {
                if !matches!(value, Value::Bool(_)) {
                    self.schema(2, value);
                }
                self.out.number(1, (!matches!(value, Value::Bool(false))).into());
            }
            AnyKind::SchemaOrArray => match value {
                Value::Array(items) => items.iter().rev().for_each(|item| self.schema(2, item)),
                _ => self.schema(1, value),
            },
            AnyKind::SchemaOrStrings => match value {
                Value::Array(items) => {
                    items.iter().rev().for_each(|item| self.out.bytes(2, item.as_str().unwrap_or("").as_bytes()));
                }
                _ => self.schema(1, value),
            },
        }
    }

    fn schema(&mut self, number: u32, value: &Value) {
        if let Some(of) = *SCHEMA {
            let mark = self.out.written();
            self.message(of, Some(value));
            self.out.close(number, mark);
        }
    }
}

/// Sorts an object's members into places; fields are mostly met in order.
fn members<'v>(of: &Type, value: Option<&'v Value>) -> Members<'v> {
    let mut members = [None; FIELDS_MAX];
    let Some(map) = value.and_then(Value::as_object) else { return members };
    let mut next = 0;
    for (key, member) in map.iter() {
        let Some(at) = position(of, key, next) else { continue };
        next = at + 1;
        if let Some(place) = members.get_mut(at) {
            *place = Some(member);
        }
    }
    members
}

fn position(of: &Type, name: &str, next: usize) -> Option<usize> {
    let is_it = |field: &Field| *field.name == *name;
    let (before, after) = of.fields.split_at(next.min(of.fields.len()));
    after.iter().position(is_it).map(|at| before.len() + at).or_else(|| before.iter().position(is_it))
}

fn double(value: Option<&Value>) -> f64 {
    match value {
        Some(Value::Float(number)) => *number,
        Some(Value::Int(number)) => *number as f64,
        _ => 0.0,
    }
}
