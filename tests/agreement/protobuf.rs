//! Reads protobuf messages without their schema.

use std::collections::BTreeMap;

use super::json::Json;

/// The value of a field.
#[derive(Debug, Clone, Copy)]
pub enum Field<'a> {
    Number(u128),
    Bytes(&'a [u8]),
}

/// The values of a message by field number.
pub type Message<'a> = BTreeMap<u128, Vec<Field<'a>>>;

/// Reads a message. Returns `None` if the bytes are not a message.
pub fn message(bytes: &[u8]) -> Option<Message<'_>> {
    let (mut fields, mut at) = (Message::new(), 0);
    let varint = |at: &mut usize| {
        let (mut value, mut shift) = (0_u128, 0);
        loop {
            let byte = *bytes.get(*at)?;
            *at += 1;
            value |= u128::from(byte & 127).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte < 128 {
                return Some(value);
            }
        }
    };
    while at < bytes.len() {
        let tag = varint(&mut at)?;
        let value = match tag & 7 {
            0 => Field::Number(varint(&mut at)?),
            kind @ (1 | 5) => {
                let end = at + if kind == 1 { 8 } else { 4 };
                let value = &bytes[at..end.min(bytes.len())];
                at = end;
                Field::Bytes(value)
            }
            2 => {
                let length = usize::try_from(varint(&mut at)?).ok()?;
                let value = bytes.get(at..at.checked_add(length)?)?;
                at += length;
                Field::Bytes(value)
            }
            _ => return None,
        };
        fields.entry(tag >> 3).or_default().push(value);
    }
    Some(fields)
}

/// Returns the last value of a field, as bytes. Returns no bytes if the field is absent. Returns `None` if the value is
/// a number.
fn bytes<'a>(message: &Message<'a>, number: u128) -> Option<&'a [u8]> {
    match message.get(&number).and_then(|values| values.last()) {
        None => Some(b""),
        Some(Field::Bytes(value)) => Some(value),
        Some(Field::Number(_)) => None,
    }
}

fn name(message: &Message<'_>, number: u128) -> Option<Json> {
    Some(Json::text(std::str::from_utf8(bytes(message, number)?).ok()?))
}

fn numbers(found: &Message<'_>, number: u128) -> Option<Json> {
    let Some(values) = found.get(&number) else { return Some(Json::Null) };
    let number =
        |value: &Field<'_>| if let Field::Number(number) = value { i128::try_from(*number).ok() } else { None };
    values.iter().map(|value| number(value).map(Json::Int)).collect::<Option<_>>().map(Json::List)
}

fn map<const N: usize>(members: [(&str, Json); N]) -> Vec<(String, Json)> {
    members.map(|(key, value)| (key.to_owned(), value)).into()
}

/// Returns the kind and names of an answer, including a list's items, or the types and objects of a watch's events.
pub fn summary(raw: &[u8]) -> Json {
    let read = match raw.strip_prefix(b"k8s\0") {
        Some(envelope) => object(envelope),
        None => events(raw),
    };
    read.unwrap_or_else(|| Json::text(unknown(raw)))
}

/// Returns a placeholder for bytes of unknown format.
pub fn unknown(raw: &[u8]) -> String {
    let start: String = raw.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("<{} bytes, starts {start}>", raw.len())
}

fn object(envelope: &[u8]) -> Option<Json> {
    let envelope = message(envelope)?;
    let kind_of = message(bytes(&envelope, 1)?)?;
    let body = message(bytes(&envelope, 2)?)?;
    let kind = name(&kind_of, 2)?;
    let said = kind.as_str().unwrap_or_default().to_owned();
    let mut out = map([("apiVersion", name(&kind_of, 1)?), ("kind", kind), ("contentType", name(&envelope, 4)?)]);
    if said == "Status" {
        out.extend(map([
            ("status", name(&body, 2)?),
            ("message", name(&body, 3)?),
            ("reason", name(&body, 4)?),
            ("code", numbers(&body, 6)?),
        ]));
    } else if said.starts_with("API") && said != "APIService" {
        // Discovery documents have no metadata.
    } else if said.ends_with("List") {
        let meta = message(bytes(&body, 1)?)?;
        let mut items = Vec::new();
        for item in body.get(&2).into_iter().flatten() {
            let Field::Bytes(item) = item else { return None };
            let item = message(item)?;
            let Some(Field::Bytes(meta)) = item.get(&1)?.last() else { return None };
            let meta = message(meta)?;
            items.push(Json::List(vec![name(&meta, 3)?, name(&meta, 1)?]));
        }
        out.extend(map([
            ("resourceVersion", name(&meta, 2)?),
            ("continue", name(&meta, 3)?),
            ("remainingItemCount", numbers(&meta, 4)?),
            ("items", Json::List(items)),
        ]));
    } else {
        let meta = message(bytes(&body, 1)?)?;
        out.extend(map([
            ("name", name(&meta, 1)?),
            ("namespace", name(&meta, 3)?),
            ("uid", name(&meta, 5)?),
            ("resourceVersion", name(&meta, 6)?),
        ]));
    }
    Some(Json::Map(out))
}

fn events(mut raw: &[u8]) -> Option<Json> {
    let mut out = Vec::new();
    while !raw.is_empty() {
        let (length, rest) = raw.split_at(raw.len().min(4));
        let length = length.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
        let (frame, rest) = rest.split_at(rest.len().min(length));
        raw = rest;
        let event = message(frame)?;
        let Some(Field::Bytes(extension)) = event.get(&2)?.last() else { return None };
        let extension = message(extension)?;
        let Some(Field::Bytes(object)) = extension.get(&1)?.last() else { return None };
        out.push(Json::Map(map([("type", name(&event, 1)?), ("object", summary(object))])));
    }
    Some(Json::List(out))
}
