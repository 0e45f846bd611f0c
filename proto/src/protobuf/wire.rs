//! Tags, varints and lengths: reading forwards, writing backwards.

use super::Error;

/// A varint follows.
pub(super) const VARINT: u8 = 0;
/// Eight bytes follow.
pub(super) const FIXED64: u8 = 1;
/// A length and as many bytes follow.
pub(super) const BYTES: u8 = 2;
const GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

/// The size of the first buffer, in bytes; most small objects fit.
pub(super) const ROOM: usize = 1024;

/// Writes a message after the content of a buffer, from its end to its start, so that a length is known when it is
/// written and nothing must be measured before.
pub(super) struct WireWriter<'a> {
    out: &'a mut Vec<u8>,
    /// The offset at which the message will start.
    start: usize,
    /// The offset of the first byte that is written.
    at: usize,
}

impl<'a> WireWriter<'a> {
    /// Starts a message after the content of `out`, with this much room at first.
    pub(super) fn new(room: usize, out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        out.resize(start + room, 0);
        let at = out.len();
        Self { out, start, at }
    }

    /// Returns the number of bytes written.
    pub(super) fn written(&self) -> usize {
        self.out.len() - self.at
    }

    fn make_room(&mut self, needed: usize) {
        if self.at - self.start >= needed {
            return;
        }
        let (length, written) = (self.out.len(), self.written());
        let room = (2 * (length - self.start)).max(written + needed);
        self.out.resize(self.start + room, 0);
        let at = self.out.len() - written;
        self.out.copy_within(self.at..length, at);
        self.at = at;
    }

    /// Puts bytes in front.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        let from = self.at - bytes.len();
        self.out[from..self.at].copy_from_slice(bytes);
        self.at = from;
    }

    /// Puts a varint in front.
    pub(super) fn varint(&mut self, mut value: u64) {
        let size = varint_size(value);
        self.make_room(size);
        self.at -= size;
        for byte in &mut self.out[self.at..self.at + size - 1] {
            *byte = value as u8 | 0x80;
            value >>= 7;
        }
        self.out[self.at + size - 1] = value as u8;
    }

    /// Puts a tag in front.
    pub(super) fn tag(&mut self, number: u32, wire_type: u8) {
        self.varint(u64::from(number) << 3 | u64::from(wire_type));
    }

    /// Puts a field of bytes in front.
    pub(super) fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.raw(bytes);
        self.varint(bytes.len() as u64);
        self.tag(number, BYTES);
    }

    /// Puts a number in front.
    pub(super) fn number(&mut self, number: u32, value: i64) {
        self.varint(value as u64);
        self.tag(number, VARINT);
    }

    /// Makes all bytes that were written since `mark` (see [`WireWriter::written`]) the contents of a field.
    pub(super) fn close(&mut self, number: u32, mark: usize) {
        self.varint((self.written() - mark) as u64);
        self.tag(number, BYTES);
    }

    /// Moves the message to its final position.
    pub(super) fn finish(self) {
        let written = self.written();
        self.out.copy_within(self.at.., self.start);
        self.out.truncate(self.start + written);
    }

    /// Removes everything that was written.
    pub(super) fn abandon(self) {
        self.out.truncate(self.start);
    }
}

/// Returns how many bytes a varint takes.
pub(super) fn varint_size(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends a varint.
pub(super) fn push_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the head of a field of `length` bytes.
pub(super) fn push_head(number: u32, length: usize, out: &mut Vec<u8>) {
    if number < 16 && length < 0x80 {
        out.extend_from_slice(&[(number << 3) as u8 | BYTES, length as u8]); // nearly all
        return;
    }
    push_varint(u64::from(number) << 3 | u64::from(BYTES), out);
    push_varint(length as u64, out);
}

/// The number of bytes that are appended together.
const SPAN: usize = 32;

/// Appends a part of a text. A short part is copied together with the bytes after it, which are then removed: copying a
/// fixed number of bytes needs no call.
pub(super) fn push_part(text: &[u8], from: usize, to: usize, out: &mut Vec<u8>) {
    let end = out.len() + (to - from);
    match text.get(from..).and_then(<[u8]>::first_chunk::<SPAN>) {
        Some(span) if to - from <= SPAN => {
            out.extend_from_slice(span);
            out.truncate(end);
        }
        _ => out.extend_from_slice(&text[from..to]),
    }
}

/// Reads the fields of one message.
#[derive(Clone, Copy)]
pub(super) struct WireReader<'a> {
    rest: &'a [u8],
}

/// The start of a field.
#[derive(Clone, Copy)]
pub(super) struct Tag {
    /// Field number.
    pub(super) number: u32,
    /// Wire type, unchecked.
    pub(super) wire_type: u8,
}

impl<'a> WireReader<'a> {
    /// Returns a reader of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns whether everything has been read.
    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the tag of the next field. Returns `None` at the end. `message` is the name of the message in errors.
    pub(super) fn tag(&mut self, message: &str) -> Result<Option<Tag>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let (number, wire_type) = ((tag >> 3) as i32, (tag & 7) as u8);
        if wire_type == END_GROUP {
            return Err(Error::EndGroup(message.to_owned()));
        }
        if number <= 0 {
            return Err(Error::IllegalTag { message: message.to_owned(), number, tag });
        }
        Ok(Some(Tag { number: number as u32, wire_type }))
    }

    /// Reads a varint. Bits above the 64th are dropped.
    pub(super) fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for (index, &byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 { Error::UnexpectedEnd } else { Error::Overflow })
    }

    /// Reads a length and as many bytes.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = self.varint()?;
        if length > i64::MAX as u64 {
            return Err(Error::Length);
        }
        usize::try_from(length).map_err(|_| Error::Length).and_then(|length| self.take(length))
    }

    /// Reads eight bytes, little-endian.
    pub(super) fn fixed64(&mut self) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Error::UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Skips a field whose tag was read.
    pub(super) fn skip(&mut self, tag: Tag) -> Result<(), Error> {
        let (mut wire_type, mut groups) = (tag.wire_type, 0_usize);
        loop {
            match wire_type {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.take(8)?),
                BYTES => drop(self.bytes()?),
                FIXED32 => drop(self.take(4)?),
                GROUP => groups += 1,
                END_GROUP if groups == 0 => return Err(Error::UnexpectedEndGroup),
                END_GROUP => groups -= 1,
                other => return Err(Error::IllegalWireType(other)),
            }
            if groups == 0 {
                return Ok(());
            }
            wire_type = (self.varint()? & 7) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_come_back() {
        for value in [0, 1, 127, 128, 300, 1 << 21, u64::from(u32::MAX), u64::MAX] {
            let (mut backwards, mut forwards) = (b"x".to_vec(), b"x".to_vec());
            let mut writer = WireWriter::new(ROOM, &mut backwards);
            writer.varint(value);
            writer.finish();
            push_varint(value, &mut forwards);
            assert_eq!(backwards, forwards);
            assert_eq!(backwards.len() - 1, varint_size(value));
            assert_eq!(WireReader::new(&backwards[1..]).varint(), Ok(value));
        }
        assert_eq!(WireReader::new(&[0x80]).varint(), Err(Error::UnexpectedEnd));
        assert_eq!(WireReader::new(&[0xff; 11]).varint(), Err(Error::Overflow));
    }

    #[test]
    fn room_grows_without_losing_bytes() {
        let mut out = vec![7];
        let mut writer = WireWriter::new(ROOM, &mut out);
        for index in (0..200_u8).rev() {
            writer.raw(&[index; 100]);
        }
        writer.finish();
        assert_eq!(out.len(), 20_001);
        assert!((0..200).all(|index| out[1 + 100 * index..][..100].iter().all(|&byte| usize::from(byte) == index)));
    }

    #[test]
    fn unknown_fields_of_every_wire_type_are_passed_over() {
        // A group that contains a varint and a group, then eight and four bytes, then field 1.
        let bytes = [0x0b, 0x10, 0x01, 0x1b, 0x1c, 0x0c, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0x15, 0, 0, 0, 0, 0x08, 0x05];
        let mut reader = WireReader::new(&bytes);
        for _ in 0..3 {
            let tag = reader.tag("M").unwrap().unwrap();
            reader.skip(tag).unwrap();
        }
        assert_eq!(reader.tag("M").unwrap().unwrap().number, 1);
        assert_eq!(reader.varint(), Ok(5));
        assert!(reader.is_done());
        assert_eq!(WireReader::new(&[0x0c]).tag("M").err(), Some(Error::EndGroup("M".into())));
        assert_eq!(
            WireReader::new(&[0x12, 5, 0]).skip(Tag { number: 1, wire_type: 7 }),
            Err(Error::IllegalWireType(7))
        );
    }
}
