//! From a conformed value, or its JSON text, to a message.

use super::forward::{self, Room};
use super::source::Source;
use super::tape::TextIndex;
use super::wire::{self, WireWriter};
use super::{Error, scalar};
use crate::catalogue;
use crate::limits::{PROTOBUF_FIELDS_MAX, PROTOBUF_WRITE_DEPTH_MAX};
use crate::schema::{AnyKind, Field, List, Map as MapShape, Presence, Shape, Type, Wire, WirePart};
use crate::value::Value;

/// Appends the message of a value that conforms to the type. Members that the type does not have are left out, and
/// those of a wrong type are written as their zero value; conformed values have neither.
///
/// # Errors
///
/// [`Error::JsonOnly`] where the type has no message, [`Error::TooDeep`] where messages nest deeper than
/// [`PROTOBUF_WRITE_DEPTH_MAX`]. Nothing is appended then.
pub fn encode(of: &Type, value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    encode_source(of, value, wire::ROOM, out)
}

/// Turns JSON text into messages without making trees. Its buffers are reused for every object.
#[derive(Debug, Default)]
pub struct Transcoder {
    room: Room,
    index: TextIndex,
}

impl Transcoder {
    /// Appends the message of an object that is stored as JSON and conforms to the type (see [`encode`]). The parser
    /// must have accepted the text before.
    ///
    /// # Errors
    ///
    /// As for [`encode`], and [`Error::Json`] where the text is not JSON.
    pub fn transcode(&mut self, of: &Type, json: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        if of.message.is_empty() {
            return Err(json_only(of));
        }
        if forward::transcode(of, json, &mut self.room, out).is_some() {
            return Ok(());
        }
        let indexed = std::str::from_utf8(json).ok().and_then(|text| self.index.read(text));
        match indexed {
            // A message is shorter than the text, so a buffer of that size need not grow.
            Some(tape) => encode_source(of, tape.root(), json.len(), out),
            // The parser reports the error best.
            None => encode(of, &crate::json::parse(json)?, out),
        }
    }
}

fn encode_source<'s>(of: &Type, value: impl Source<'s>, room: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    if of.message.is_empty() {
        return Err(json_only(of));
    }
    let mut encoder = Encoder { out: WireWriter::new(room, out), json: Vec::new(), depth: 0, failed: false };
    encoder.message(of, Some(value));
    if encoder.failed {
        encoder.out.abandon();
        return Err(Error::TooDeep);
    }
    encoder.out.finish();
    Ok(())
}

fn json_only(of: &Type) -> Error {
    Error::JsonOnly(format!("{}.{}", of.package, of.name))
}

/// Appends the encoding of an absent field.
pub(super) fn absent(field: &Field, number: u32, out: &mut Vec<u8>) {
    let mut encoder = Encoder { out: WireWriter::new(wire::ROOM, out), json: Vec::new(), depth: 0, failed: false };
    encoder.field::<&Value>(number, field, None);
    encoder.out.finish();
}

struct Encoder<'a> {
    out: WireWriter<'a>,
    /// The text of a free-form value, before it is put in front.
    json: Vec<u8>,
    depth: usize,
    failed: bool,
}

impl Encoder<'_> {
    /// Writes the content of a struct's message.
    fn message<'s, S: Source<'s>>(&mut self, of: &Type, value: Option<S>) {
        if self.depth == PROTOBUF_WRITE_DEPTH_MAX {
            self.failed = true;
            return;
        }
        self.depth += 1;
        // Most types have few fields, and clearing places for more would cost more than all other work.
        match of.fields.len() {
            0..=8 => self.parts(of, of.wire, &members::<S, 8>(of, value)),
            9..=24 => self.parts(of, of.wire, &members::<S, 24>(of, value)),
            _ => self.parts(of, of.wire, &members::<S, PROTOBUF_FIELDS_MAX>(of, value)),
        }
        self.depth -= 1;
    }

    fn parts<'s, S: Source<'s>>(&mut self, of: &Type, wire: &[Wire], members: &[Option<S>]) {
        for Wire { number, part } in wire.iter().rev() {
            match *part {
                WirePart::Embedded(_, parts) => {
                    let mark = self.out.written();
                    self.parts(of, parts, members);
                    self.out.close(*number, mark);
                }
                WirePart::Field(index) => self.field(*number, &of.fields[index], members.get(index).copied().flatten()),
            }
        }
    }

    fn field<'s, S: Source<'s>>(&mut self, number: u32, field: &Field, value: Option<S>) {
        let value = value.filter(|value| !value.is_null());
        match &field.shape {
            Shape::List(list) if !list.boxed => self.list(number, list, value),
            Shape::Map(map) => self.map(number, map, value),
            Shape::List(_) | Shape::Bytes if value.is_none() => {}
            _ if value.is_none() && matches!(field.presence, Presence::Pointer | Presence::AlwaysPointer) => {}
            shape => self.single(number, shape, value),
        }
    }

    fn list<'s, S: Source<'s>>(&mut self, number: u32, list: &List, value: Option<S>) {
        for item in value.into_iter().flat_map(Source::items) {
            self.single(number, &list.item, Some(item));
        }
    }

    fn map<'s, S: Source<'s>>(&mut self, number: u32, map: &MapShape, value: Option<S>) {
        let members = || value.into_iter().flat_map(Source::members);
        if members().is_sorted_by(|later, earlier| later.0 >= earlier.0) {
            members().for_each(|(key, member)| self.entry(number, map, &key, member));
            return;
        }
        let mut sorted: Vec<_> = members().collect();
        sorted.sort_by(|a, b| b.0.cmp(&a.0));
        sorted.iter().for_each(|(key, member)| self.entry(number, map, key, *member));
    }

    fn entry<'s, S: Source<'s>>(&mut self, number: u32, map: &MapShape, key: &str, value: S) {
        let mark = self.out.written();
        if !(matches!(map.value, Shape::Bytes) && value.is_null()) {
            self.single(2, &map.value, Some(value));
        }
        self.out.bytes(1, key.as_bytes());
        self.out.close(number, mark);
    }

    /// Writes one field, list item or map value; the zero value when there is none.
    fn single<'s, S: Source<'s>>(&mut self, number: u32, shape: &Shape, value: Option<S>) {
        let text = || value.and_then(Source::text);
        let mark = self.out.written();
        match shape {
            Shape::Bool => {
                return self.out.number(number, value.and_then(Source::truth).unwrap_or(false).into());
            }
            Shape::Int32 | Shape::Int64 | Shape::Uint(_) => {
                return self.out.number(number, value.and_then(Source::int).unwrap_or(0));
            }
            Shape::Double => {
                self.out.raw(&value.and_then(Source::double).unwrap_or(0.0).to_le_bytes());
                return self.out.tag(number, wire::FIXED64);
            }
            Shape::String { .. } => return self.out.bytes(number, text().unwrap_or_default().as_bytes()),
            Shape::Bytes => return self.out.bytes(number, &scalar::from_base64(&text().unwrap_or_default())),
            Shape::Quantity => self.out.bytes(1, text().unwrap_or("0".into()).as_bytes()),
            Shape::IntOrString => {
                let number = value.and_then(Source::int).unwrap_or(0);
                scalar::write_int_or_string(text().as_deref(), number, &mut self.out);
            }
            Shape::Time => scalar::write_time(text().as_deref(), false, &mut self.out),
            Shape::MicroTime => scalar::write_time(text().as_deref(), true, &mut self.out),
            Shape::Duration => scalar::write_duration(text().as_deref(), &mut self.out),
            Shape::Any(kind) => self.free_form(*kind, value),
            Shape::Struct(of) => self.message(of, value),
            Shape::List(list) => self.list(1, list, value),
            // No list has maps as items, and no map has maps as values.
            Shape::Map(_) => return,
        }
        self.out.close(number, mark);
    }

    fn free_form<'s, S: Source<'s>>(&mut self, kind: AnyKind, value: Option<S>) {
        let Some(value) = value.filter(|value| !value.is_null()) else { return };
        match kind {
            AnyKind::RawExtension | AnyKind::FieldsV1 | AnyKind::Json => {
                self.out.bytes(1, value.json(&mut self.json));
            }
            AnyKind::SchemaOrBool => {
                if value.truth().is_none() {
                    self.schema(2, value);
                }
                self.out.number(1, value.truth().unwrap_or(true).into());
            }
            AnyKind::SchemaOrArray if value.is_list() => value.items().for_each(|item| self.schema(2, item)),
            AnyKind::SchemaOrStrings if value.is_list() => {
                value.items().for_each(|item| self.out.bytes(2, item.text().unwrap_or_default().as_bytes()));
            }
            AnyKind::SchemaOrArray | AnyKind::SchemaOrStrings => self.schema(1, value),
        }
    }

    fn schema<'s, S: Source<'s>>(&mut self, number: u32, value: S) {
        if let Some(of) = catalogue::json_schema() {
            let mark = self.out.written();
            self.message(of, Some(value));
            self.out.close(number, mark);
        }
    }
}

/// Sorts an object's members into the places of their fields. Fields mostly come in order, from the last to the first.
fn members<'s, S: Source<'s>, const PLACES: usize>(of: &Type, value: Option<S>) -> [Option<S>; PLACES] {
    let mut members = [None; PLACES];
    let mut end = of.fields.len();
    for (key, member) in value.into_iter().flat_map(Source::members) {
        let Some(at) = position(of, &key, end) else { continue };
        end = at;
        if let Some(place @ None) = members.get_mut(at) {
            *place = Some(member);
        }
    }
    members
}

/// Returns the position of a field. Searches backwards from `end`.
fn position(of: &Type, name: &str, end: usize) -> Option<usize> {
    let is_it = |field: &Field| *field.name == *name;
    let (before, after) = of.fields.split_at(end.min(of.fields.len()));
    before.iter().rposition(is_it).or_else(|| after.iter().position(is_it).map(|at| before.len() + at))
}
