//! From a message to a conformed value.

use std::borrow::Cow;

use super::wire::{self, Tag, WireReader};
use super::{Error, scalar};
use crate::catalogue;
use crate::conform;
use crate::json;
use crate::limits::PROTOBUF_DEPTH_MAX;
use crate::schema::{AnyKind, Field, List, Map as MapShape, Presence, Shape, Type, Wire, WirePart};
use crate::value::{Float, Map, Str, Value};

/// Returns the object in a message, as [`crate::conform::conform`] would leave it. Ignores unknown fields, and merges a
/// message that is given in several parts, as protobuf requires.
///
/// # Errors
///
/// The message is one that the reference would refuse, or nests deeper than [`PROTOBUF_DEPTH_MAX`].
pub fn decode(of: &Type, bytes: &[u8]) -> Result<Value, Error> {
    decode_onto(of, bytes, Value::Null)
}

/// The same as [`decode`], but adds to the given members, such as `kind` and `apiVersion`.
///
/// # Errors
///
/// As for [`decode`].
pub fn decode_onto(of: &Type, bytes: &[u8], value: Value) -> Result<Value, Error> {
    if of.message.is_empty() {
        return Err(Error::JsonOnly(format!("{}.{}", of.package, of.name)));
    }
    message(of, bytes, value, PROTOBUF_DEPTH_MAX)
}

/// The part of a field that was read so far.
enum PartialField {
    Nothing,
    Value(Value),
    /// Entries of a map. The last entry of a repeated key counts.
    Entries(Vec<(Str, Value)>),
}

impl PartialField {
    fn take_value(&mut self) -> Value {
        match std::mem::replace(self, Self::Nothing) {
            Self::Value(value) => value,
            Self::Nothing | Self::Entries(_) => Value::Null,
        }
    }

    fn into_value(self) -> Option<Value> {
        match self {
            Self::Nothing => None,
            Self::Value(value) => Some(value),
            Self::Entries(entries) => {
                let mut map = Map::from_entries(entries).0;
                map.sort();
                Some(Value::Object(map))
            }
        }
    }
}

fn message(of: &Type, bytes: &[u8], before: Value, depth: usize) -> Result<Value, Error> {
    let depth = depth.checked_sub(1).ok_or(Error::TooDeep)?;
    let mut found: Vec<PartialField> = of.fields.iter().map(|_| PartialField::Nothing).collect();
    if let Value::Object(map) = before {
        for (key, member) in map {
            if let Some((at, _)) = of.field(&key) {
                found[at] = PartialField::Value(member);
            }
        }
    }
    parts(of, of.wire, bytes, &mut found, depth)?;
    Ok(finish(of, found))
}

fn parts(of: &Type, wire: &[Wire], bytes: &[u8], found: &mut [PartialField], depth: usize) -> Result<(), Error> {
    let mut reader = WireReader::new(bytes);
    while let Some(tag) = reader.tag(&of.name)? {
        let Ok(at) = wire.binary_search_by_key(&tag.number, |part| part.number) else {
            reader.skip(tag)?;
            continue;
        };
        match wire[at].part {
            WirePart::Embedded(_, inner) => {
                expect(tag, wire::BYTES, &of.name)?;
                parts(of, inner, reader.bytes()?, found, depth)?;
            }
            WirePart::Field(index) => field(&of.fields[index], tag, &mut reader, &mut found[index], depth)?,
        }
    }
    Ok(())
}

/// Puts the decoded parts into the order and form of a conformed object.
fn finish(of: &Type, found: Vec<PartialField>) -> Value {
    let mut entries = Vec::with_capacity(found.len());
    for (field, found) in of.fields.iter().zip(found) {
        let value = found.into_value().filter(|value| match field.presence {
            Presence::OmitEmpty => !conform::is_empty(value),
            Presence::Always => true,
            Presence::Pointer | Presence::AlwaysPointer => !value.is_null(),
        });
        let value = match (value, field.presence) {
            (Some(value), _) => value,
            (None, Presence::Always) => conform::zero_of(&field.shape),
            (None, Presence::AlwaysPointer) => Value::Null,
            (None, _) => continue,
        };
        let name = match &field.name {
            Cow::Borrowed(name) => Str::const_new(name),
            Cow::Owned(name) => Str::from(name.as_str()),
        };
        entries.push((name, value));
    }
    Value::Object(Map::from_unique(entries))
}

fn field(
    field: &Field,
    tag: Tag,
    reader: &mut WireReader<'_>,
    found: &mut PartialField,
    depth: usize,
) -> Result<(), Error> {
    match &field.shape {
        Shape::List(list) if !list.boxed => {
            let mut items = match found.take_value() {
                Value::Array(items) => items,
                _ => Vec::new(),
            };
            list_items(list, tag, reader, &field.name, &mut items, depth)?;
            *found = PartialField::Value(Value::Array(items));
        }
        Shape::Map(map) => {
            expect(tag, wire::BYTES, &field.name)?;
            let entry = entry(map, reader.bytes()?, &field.name, depth)?;
            match found {
                PartialField::Entries(entries) => entries.push(entry),
                PartialField::Value(Value::Object(map)) => {
                    // The map is from an earlier part of the message.
                    map.insert(entry.0, entry.1);
                    map.sort();
                }
                _ => *found = PartialField::Entries(vec![entry]),
            }
        }
        shape => *found = PartialField::Value(single(shape, tag, reader, &field.name, found.take_value(), depth)?),
    }
    Ok(())
}

/// Adds an item, or all items of a packed list of numbers.
fn list_items(
    list: &List,
    tag: Tag,
    reader: &mut WireReader<'_>,
    name: &str,
    items: &mut Vec<Value>,
    depth: usize,
) -> Result<(), Error> {
    let packable = matches!(list.item, Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Uint(_));
    if packable && tag.wire_type == wire::BYTES {
        let mut packed = WireReader::new(reader.bytes()?);
        while !packed.is_done() {
            items.push(number(&list.item, packed.varint()?));
        }
        return Ok(());
    }
    items.push(single(&list.item, tag, reader, name, Value::Null, depth)?);
    Ok(())
}

fn entry(map: &MapShape, bytes: &[u8], name: &str, depth: usize) -> Result<(Str, Value), Error> {
    let (mut key, mut value) = (Str::const_new(""), Value::Null);
    scalar::fields(bytes, name, |tag, reader| match tag.number {
        1 => {
            expect(tag, wire::BYTES, name)?;
            scalar::set(&mut key, Str::from_utf8_lossy(reader.bytes()?))
        }
        2 => {
            let before = std::mem::take(&mut value);
            scalar::set(&mut value, single(&map.value, tag, reader, name, before, depth)?)
        }
        _ => reader.skip(tag),
    })?;
    if value.is_null() {
        value = match map.value {
            Shape::Bytes => Value::Str(Str::const_new("")),
            ref shape => conform::zero_of(shape),
        };
    }
    Ok((key, value))
}

/// Decodes one field, list item or map value. `before` is the value from an earlier part of the same message.
fn single(
    shape: &Shape,
    tag: Tag,
    reader: &mut WireReader<'_>,
    name: &str,
    before: Value,
    depth: usize,
) -> Result<Value, Error> {
    match shape {
        Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Uint(_) => {
            expect(tag, wire::VARINT, name)?;
            return Ok(number(shape, reader.varint()?));
        }
        Shape::Double => {
            expect(tag, wire::FIXED64, name)?;
            return float(f64::from_bits(reader.fixed64()?));
        }
        _ => expect(tag, wire::BYTES, name)?,
    }
    let bytes = reader.bytes()?;
    match shape {
        Shape::String { .. } => Ok(scalar::string(bytes)),
        Shape::Quantity => scalar::read_quantity(bytes),
        Shape::IntOrString => scalar::read_int_or_string(bytes),
        Shape::Time => scalar::read_time(bytes, false),
        Shape::MicroTime => scalar::read_time(bytes, true),
        Shape::Duration => scalar::read_duration(bytes),
        Shape::Any(kind) => free_form(*kind, bytes, depth),
        Shape::Struct(of) => message(of, bytes, before, depth),
        Shape::List(list) => boxed(list, bytes, name, before, depth),
        Shape::Map(_) => Ok(Value::Null),
        _ => Ok(scalar::to_base64(bytes)),
    }
}

/// Decodes a list that is a message of its own.
fn boxed(list: &List, bytes: &[u8], name: &str, before: Value, depth: usize) -> Result<Value, Error> {
    let mut items = match before {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    scalar::fields(bytes, name, |tag, reader| match tag.number {
        1 => list_items(list, tag, reader, "items", &mut items, depth),
        _ => reader.skip(tag),
    })?;
    Ok(Value::Array(items))
}

fn free_form(kind: AnyKind, bytes: &[u8], depth: usize) -> Result<Value, Error> {
    let (mut first, mut flag, mut second) = (Value::Null, false, Vec::new());
    let schema = |bytes| catalogue::json_schema().map_or(Ok(Value::Null), |of| message(of, bytes, Value::Null, depth));
    scalar::fields(bytes, "JSON", |tag, reader| {
        match (kind, tag.number) {
            (AnyKind::SchemaOrBool, 1) => {
                expect(tag, wire::VARINT, "allows")?;
                flag = reader.varint()? != 0;
            }
            (_, 1 | 2) => {
                expect(tag, wire::BYTES, "raw")?;
                let bytes = reader.bytes()?;
                match (kind, tag.number) {
                    (AnyKind::SchemaOrBool, _) | (AnyKind::SchemaOrArray | AnyKind::SchemaOrStrings, 1) => {
                        first = schema(bytes)?;
                    }
                    (AnyKind::SchemaOrArray, _) => second.push(schema(bytes)?),
                    (AnyKind::SchemaOrStrings, _) => second.push(scalar::string(bytes)),
                    (_, 1) if bytes.is_empty() => first = Value::Null,
                    (_, 1) => first = json(kind, bytes)?,
                    _ => {}
                }
            }
            _ => reader.skip(tag)?,
        }
        Ok(())
    })?;
    Ok(match kind {
        AnyKind::SchemaOrBool if first.is_null() => Value::Bool(flag),
        _ if second.is_empty() => first,
        _ => Value::Array(second),
    })
}

/// Reads JSON in a message. In an embedded API object, numbers that no tree keeps become holes, which the rules of its
/// kind judge.
fn json(kind: AnyKind, text: &[u8]) -> Result<Value, Error> {
    let mut parsed = json::parse_tracking(text)?;
    parsed.value.resolve_literals();
    match kind {
        AnyKind::RawExtension if !parsed.deep => Ok(parsed.value),
        _ => Ok(parsed.whole()?),
    }
}

fn number(shape: &Shape, value: u64) -> Value {
    match shape {
        Shape::Bool => Value::Bool(value != 0),
        Shape::Int32 => Value::from(value as i32),
        _ => Value::Int(value as i64),
    }
}

/// Keeps whole numbers as integers, as JSON does.
fn float(number: f64) -> Result<Value, Error> {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return Ok(Value::Int(number as i64));
    }
    Float::new(number).map(Value::Float).ok_or_else(|| {
        Error::Unsupported(if number.is_nan() {
            "NaN"
        } else if number > 0.0 {
            "+Inf"
        } else {
            "-Inf"
        })
    })
}

fn expect(tag: Tag, wanted: u8, name: &str) -> Result<(), Error> {
    if tag.wire_type == wanted {
        return Ok(());
    }
    let mut letters = name.chars();
    let field = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    Err(Error::WireType { found: tag.wire_type, field })
}
