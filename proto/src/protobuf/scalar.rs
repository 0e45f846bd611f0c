//! Values that are text in JSON and messages in protobuf: times, durations, quantities, numbers or strings.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::wire::{WireReader, WireWriter};
use super::{Error, wire};
use crate::quantity;
use crate::time::Timestamp;
use crate::value::{Str, Value};

/// 0001-01-01T00:00:00Z, which Go treats as an unset time.
const GO_ZERO_SECONDS: i64 = -62_135_596_800;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
const NANOS_PER_MICRO: i64 = 1_000;

/// Writes the content of a time; nothing for an unset one.
pub(super) fn write_time(text: Option<&str>, micro: bool, out: &mut WireWriter<'_>) {
    let parsed = text.and_then(|text| if micro { Timestamp::parse_micro(text) } else { Timestamp::parse(text) }.ok());
    let Some(Timestamp { seconds, nanos }) = parsed else { return };
    let nanos = if micro { i64::from(nanos) / NANOS_PER_MICRO * NANOS_PER_MICRO } else { 0 };
    if seconds == GO_ZERO_SECONDS && nanos == 0 {
        return;
    }
    out.number(2, nanos);
    out.number(1, seconds);
}

/// Reads a time; `null` for an unset one.
pub(super) fn read_time(bytes: &[u8], micro: bool) -> Result<Value, Error> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    fields(bytes, "Timestamp", |tag, reader| match (tag.number, tag.wire_type) {
        (1, wire::VARINT) => set(&mut seconds, reader.varint()? as i64),
        (2, wire::VARINT) => set(&mut nanos, reader.varint()? as i32),
        (1 | 2, found) => Err(wrong(found, if tag.number == 1 { "Seconds" } else { "Nanos" })),
        _ => reader.skip(tag),
    })?;
    let nanos = if micro { i64::from(nanos) / NANOS_PER_MICRO * NANOS_PER_MICRO } else { 0 };
    let seconds = seconds.saturating_add(nanos.div_euclid(NANOS_PER_SECOND));
    let nanos = nanos.rem_euclid(NANOS_PER_SECOND) as u32;
    if seconds == GO_ZERO_SECONDS && nanos == 0 {
        return Ok(Value::Null);
    }
    let time = Timestamp { seconds, nanos };
    Ok(Value::from(if micro { time.micro() } else { time.to_string() }))
}

/// Writes the content of a duration.
pub(super) fn write_duration(text: Option<&str>, out: &mut WireWriter<'_>) {
    out.number(1, text.and_then(crate::duration::parse).unwrap_or(0));
}

/// Reads a duration.
pub(super) fn read_duration(bytes: &[u8]) -> Result<Value, Error> {
    let mut nanos = 0;
    fields(bytes, "Duration", |tag, reader| match (tag.number, tag.wire_type) {
        (1, wire::VARINT) => set(&mut nanos, reader.varint()? as i64),
        (1, found) => Err(wrong(found, "Duration")),
        _ => reader.skip(tag),
    })?;
    Ok(Value::from(crate::duration::format(nanos)))
}

/// Reads a quantity, in canonical form.
pub(super) fn read_quantity(bytes: &[u8]) -> Result<Value, Error> {
    let mut text = None;
    fields(bytes, "Quantity", |tag, reader| match (tag.number, tag.wire_type) {
        (1, wire::BYTES) => set(&mut text, Some(reader.bytes()?)),
        (1, found) => Err(wrong(found, "String_")),
        _ => reader.skip(tag),
    })?;
    let Some(text) = text else { return Ok(Value::Str(Str::const_new("0"))) };
    Ok(Value::from(quantity::written(&String::from_utf8_lossy(text))?.into_owned()))
}

/// Writes the content of an `IntOrString`.
pub(super) fn write_int_or_string(text: Option<&str>, number: i64, out: &mut WireWriter<'_>) {
    out.bytes(3, text.unwrap_or("").as_bytes());
    out.number(2, number);
    out.number(1, text.is_some().into());
}

/// Reads an `IntOrString`.
pub(super) fn read_int_or_string(bytes: &[u8]) -> Result<Value, Error> {
    let (mut kind, mut number, mut text) = (0, 0, &[][..]);
    fields(bytes, "IntOrString", |tag, reader| match (tag.number, tag.wire_type) {
        (1, wire::VARINT) => set(&mut kind, reader.varint()? as i64),
        (2, wire::VARINT) => set(&mut number, reader.varint()? as i32),
        (3, wire::BYTES) => set(&mut text, reader.bytes()?),
        (1..=3, found) => Err(wrong(found, ["Type", "IntVal", "StrVal"][tag.number as usize - 1])),
        _ => reader.skip(tag),
    })?;
    match kind {
        0 => Ok(Value::from(number)),
        1 => Ok(string(text)),
        _ => Err(Error::IntOrString),
    }
}

/// Returns a string in which bytes that are not UTF-8 are replaced by U+FFFD.
pub(super) fn string(bytes: &[u8]) -> Value {
    Value::Str(Str::from_utf8_lossy(bytes))
}

/// Returns the bytes that a base64 text encodes; none when it is not base64.
pub(super) fn from_base64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}

/// Returns bytes as base64.
pub(super) fn to_base64(bytes: &[u8]) -> Value {
    Value::from(STANDARD.encode(bytes))
}

/// Reads all fields of a message that is not a struct of the catalogue.
pub(super) fn fields<'a>(
    bytes: &'a [u8],
    message: &str,
    mut each: impl FnMut(wire::Tag, &mut WireReader<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut reader = WireReader::new(bytes);
    while let Some(tag) = reader.tag(message)? {
        each(tag, &mut reader)?;
    }
    Ok(())
}

/// Stores a value. For use as the last expression of a match arm.
pub(super) fn set<T>(place: &mut T, value: T) -> Result<(), Error> {
    *place = value;
    Ok(())
}

/// Returns the error of a field with another wire type than its own.
pub(super) fn wrong(found: u8, field: &str) -> Error {
    Error::WireType { found, field: field.to_owned() }
}
