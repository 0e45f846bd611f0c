//! The content of etcd's buckets: revisions as keys, and messages of keys, values and leases (`mvccpb.KeyValue`,
//! `leasepb.Lease`).

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// One version of a key of etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Vec<u8>,
    /// The revision that created it.
    pub create_revision: i64,
    /// The revision that made this version.
    pub mod_revision: i64,
    /// How often it was written since it was created.
    pub version: i64,
    /// The value.
    pub value: Vec<u8>,
    /// The lease that it is attached to; 0 for none.
    pub lease: i64,
}

/// A lease: the keys that are attached to it are deleted when it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its number.
    pub id: i64,
    /// Its time to live, in seconds.
    pub ttl_seconds: i64,
}

/// A point in the history of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Revision {
    pub(crate) main: i64,
    pub(crate) sub: i64,
    pub(crate) is_tombstone: bool,
}

/// Bytes of a revision: two numbers of eight bytes, big-endian, with an underscore between them.
const REVISION_BYTES: usize = 17;

/// Parses a revision. A mark after it says that the key was deleted. `None` if the bytes are no revision.
pub(crate) fn revision(bytes: &[u8]) -> Option<Revision> {
    let is_tombstone = match bytes.get(REVISION_BYTES..)? {
        [] => false,
        [b't'] => true,
        _ => return None,
    };
    let number = |at: usize| Some(i64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    if bytes[8] != b'_' {
        return None;
    }
    let (main, sub) = (number(0)?, number(9)?);
    (main >= 0 && sub >= 0).then_some(Revision { main, sub, is_tombstone })
}

/// Encodes a revision.
pub(crate) fn revision_bytes(main: i64, sub: i64) -> [u8; REVISION_BYTES] {
    let mut bytes = [b'_'; REVISION_BYTES];
    bytes[..8].copy_from_slice(&main.to_be_bytes());
    bytes[9..].copy_from_slice(&sub.to_be_bytes());
    bytes
}

/// A reader of the fields of a protobuf message.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A field: a number, or bytes with their offset.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8], usize),
    Other,
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn next(&mut self) -> Option<(u64, Field<'a>)> {
        let tag = self.varint()?;
        let field = match tag & 7 {
            VARINT => Field::Number(self.varint()?),
            BYTES => {
                let (length, from) = (usize::try_from(self.varint()?).ok()?, self.at);
                self.at = from.checked_add(length)?;
                Field::Bytes(self.bytes.get(from..self.at)?, from)
            }
            kind @ (FIXED64 | FIXED32) => {
                self.at += if kind == FIXED64 { 8 } else { 4 };
                self.bytes.get(..self.at)?;
                Field::Other
            }
            _ => return None,
        };
        Some((tag >> 3, field))
    }
}

/// One version of a key, with the offset of its value in the message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Borrowed<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) create_revision: i64,
    pub(crate) mod_revision: i64,
    pub(crate) version: i64,
    pub(crate) value: &'a [u8],
    /// The offset of the value.
    pub(crate) value_at: usize,
    pub(crate) lease: i64,
}

impl<'a> Borrowed<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Borrowed<'a>> {
        let (mut read, mut fields) = (Borrowed::default(), Fields { bytes, at: 0 });
        while fields.at < bytes.len() {
            match fields.next()? {
                (1, Field::Bytes(key, _)) => read.key = key,
                (2, Field::Number(number)) => read.create_revision = number.cast_signed(),
                (3, Field::Number(number)) => read.mod_revision = number.cast_signed(),
                (4, Field::Number(number)) => read.version = number.cast_signed(),
                (5, Field::Bytes(value, at)) => (read.value, read.value_at) = (value, at),
                (6, Field::Number(number)) => read.lease = number.cast_signed(),
                (1..=6, _) => return None,
                _ => {}
            }
        }
        Some(read)
    }
}

impl KeyValue {
    /// Parses a message. `None` if the bytes are not such a message.
    pub fn read(bytes: &[u8]) -> Option<KeyValue> {
        let Borrowed { key, create_revision, mod_revision, version, value, lease, .. } = Borrowed::read(bytes)?;
        let (key, value) = (key.to_vec(), value.to_vec());
        Some(KeyValue { key, create_revision, mod_revision, version, value, lease })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_bytes(1, &self.key, out);
        put_number(2, self.create_revision, out);
        put_number(3, self.mod_revision, out);
        put_number(4, self.version, out);
        put_bytes(5, &self.value, out);
        put_number(6, self.lease, out);
    }
}

impl Lease {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_number(1, self.id, out);
        put_number(2, self.ttl_seconds, out);
    }
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_number(field: u64, number: i64, out: &mut Vec<u8>) {
    if number != 0 {
        put_varint(field << 3 | VARINT, out);
        put_varint(number.cast_unsigned(), out);
    }
}

fn put_bytes(field: u64, bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.is_empty() {
        put_varint(field << 3 | BYTES, out);
        put_varint(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    }
}
