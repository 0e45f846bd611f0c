//! The envelope of a message: the magic number and type of an object, list items, frames of a watch.

use super::wire::{self, WireReader};
use super::{Error, decode_onto, encode, scalar};
use crate::schema::Type;
use crate::value::{Map, Str, Value};

/// The first bytes of every object in protobuf.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// The encoding and the type of the content, which are always empty.
const TAIL: [u8; 4] = [0x1a, 0, 0x22, 0];

/// The field of a list that holds its items.
const ITEMS: u32 = 2;

/// An object whose message is not decoded yet (`runtime.Unknown`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The object's `apiVersion`; may be empty.
    pub api_version: Str,
    /// The object's `kind`; may be empty.
    pub kind: Str,
    /// The object's message.
    pub message: &'a [u8],
    /// The encoding of the message; empty for none.
    pub content_encoding: Str,
    /// The type of the message; empty for protobuf.
    pub content_type: Str,
}

/// Reads the envelope of an object.
///
/// # Errors
///
/// Fails, in the words of the reference, when the magic number, the body or everything is missing, or when the body is
/// not a message.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>, Error> {
    let body = match bytes.strip_prefix(&MAGIC) {
        _ if bytes.is_empty() => return Err(Error::EmptyData),
        None => return Err(Error::Magic),
        Some([]) => return Err(Error::EmptyBody),
        Some(body) => body,
    };
    let mut envelope = Envelope::default();
    let mut reader = WireReader::new(body);
    while let Some(tag) = reader.tag("Unknown")? {
        if !(1..=4).contains(&tag.number) {
            reader.skip(tag)?;
            continue;
        }
        if tag.wire_type != wire::BYTES {
            let field = ["TypeMeta", "Raw", "ContentEncoding", "ContentType"][tag.number as usize - 1];
            return Err(scalar::wrong(tag.wire_type, field));
        }
        let contents = reader.bytes()?;
        match tag.number {
            1 => type_meta(contents, &mut envelope)?,
            2 => envelope.message = contents,
            3 => envelope.content_encoding = Str::from_utf8_lossy(contents),
            _ => envelope.content_type = Str::from_utf8_lossy(contents),
        }
    }
    Ok(envelope)
}

fn type_meta(bytes: &[u8], envelope: &mut Envelope<'_>) -> Result<(), Error> {
    scalar::fields(bytes, "TypeMeta", |tag, reader| match (tag.number, tag.wire_type) {
        (1, wire::BYTES) => scalar::set(&mut envelope.api_version, Str::from_utf8_lossy(reader.bytes()?)),
        (2, wire::BYTES) => scalar::set(&mut envelope.kind, Str::from_utf8_lossy(reader.bytes()?)),
        (1, found) => Err(scalar::wrong(found, "APIVersion")),
        (2, found) => Err(scalar::wrong(found, "Kind")),
        _ => reader.skip(tag),
    })
}

/// Returns the object in an envelope, with its `kind` and `apiVersion`.
///
/// # Errors
///
/// As for [`super::decode`].
pub fn decode_object(of: &Type, envelope: &Envelope<'_>) -> Result<Value, Error> {
    let mut meta = Map::with_capacity(2);
    meta.insert("kind", envelope.kind.clone());
    meta.insert("apiVersion", envelope.api_version.clone());
    decode_onto(of, envelope.message, Value::Object(meta))
}

/// Appends an object in its envelope. `api_version` and `kind` are written as given, whatever the value has.
///
/// # Errors
///
/// As for [`encode`]. Nothing is appended then.
pub fn encode_object(of: &Type, api_version: &str, kind: &str, value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut message = Vec::new();
    encode(of, value, &mut message)?;
    write_object(api_version, kind, &message, out);
    Ok(())
}

/// Appends an object's message in its envelope.
pub fn write_object(api_version: &str, kind: &str, message: &[u8], out: &mut Vec<u8>) {
    out.reserve(message.len() + api_version.len() + kind.len() + 32);
    head(api_version, kind, message.len(), out);
    out.extend_from_slice(message);
    write_tail(out);
}

fn head(api_version: &str, kind: &str, message_length: usize, out: &mut Vec<u8>) {
    let length = |text: &str| 1 + wire::varint_size(text.len() as u64) + text.len();
    out.extend_from_slice(&MAGIC);
    wire::push_head(1, length(api_version) + length(kind), out);
    wire::push_head(1, api_version.len(), out);
    out.extend_from_slice(api_version.as_bytes());
    wire::push_head(2, kind.len(), out);
    out.extend_from_slice(kind.as_bytes());
    wire::push_head(2, message_length, out);
}

/// Appends the start of a list whose items follow one by one, so that a long list needs no buffer: `metadata` is the
/// message of its `ListMeta`, `item_lengths` gives the length in bytes of each item's message.
///
/// For each item, [`write_item_head`] and its message follow. [`write_tail`] ends the list.
pub fn write_list_head(
    api_version: &str,
    kind: &str,
    metadata: &[u8],
    item_lengths: impl Iterator<Item = usize>,
    out: &mut Vec<u8>,
) {
    let field = |length: usize| 1 + wire::varint_size(length as u64) + length;
    let total = field(metadata.len()) + item_lengths.map(field).sum::<usize>();
    head(api_version, kind, total, out);
    wire::push_head(1, metadata.len(), out);
    out.extend_from_slice(metadata);
}

/// Appends the tag and the length that precede the message of a list item.
pub fn write_item_head(length: usize, out: &mut Vec<u8>) {
    wire::push_head(ITEMS, length, out);
}

/// Appends the end of an object or list.
pub fn write_tail(out: &mut Vec<u8>) {
    out.extend_from_slice(&TAIL);
}

/// Appends a frame of a watch: its length in four bytes, and the event with an object that is already encoded in its
/// envelope.
pub fn write_event(kind: &str, object: &[u8], out: &mut Vec<u8>) {
    let field = |length: usize| 1 + wire::varint_size(length as u64) + length;
    let raw = field(object.len());
    let total = field(kind.len()) + field(raw);
    // A frame holds one object, which the limit on bodies keeps far below 4 GiB.
    out.extend_from_slice(&u32::try_from(total).unwrap_or(u32::MAX).to_be_bytes());
    wire::push_head(1, kind.len(), out);
    out.extend_from_slice(kind.as_bytes());
    wire::push_head(2, raw, out);
    wire::push_head(1, object.len(), out);
    out.extend_from_slice(object);
}
