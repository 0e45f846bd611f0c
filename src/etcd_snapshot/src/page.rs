//! The layout of bbolt's pages, all numbers little-endian.
//!
//! A page begins with its number (8 bytes), its type (2), its number of elements (2), and its number of overflow pages
//! (4). Then come the elements, 16 bytes each: in a branch the position and length of the key, and the page below; in a
//! leaf flags, the position of the key, and the lengths of key and value. Positions are relative to the element. Keys
//! and values follow the elements.

use crate::Error;

/// Bytes before the elements of a page.
pub(crate) const HEADER_BYTES: usize = 16;
/// Bytes of an element of a branch or of a leaf.
pub(crate) const ELEMENT_BYTES: usize = 16;
/// Bytes of a bucket's header: the page of its root, and a counter.
pub(crate) const BUCKET_BYTES: usize = 16;
/// Bytes of the meta data after the header of a meta page.
pub(crate) const META_BYTES: usize = 64;

pub(crate) const BRANCH: u16 = 0x01;
pub(crate) const LEAF: u16 = 0x02;
pub(crate) const META: u16 = 0x04;
pub(crate) const FREELIST: u16 = 0x10;
/// The flag of a leaf's element that is a bucket.
pub(crate) const BUCKET: u32 = 0x01;

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;

/// A location in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLocation {
    /// The page.
    pub page: u64,
    /// Offset from the beginning of the file, in bytes.
    pub offset: u64,
    /// Length, in bytes.
    pub length: u32,
}

pub(crate) fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The header of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) number: u64,
    pub(crate) flags: u16,
    pub(crate) count: u16,
    pub(crate) overflow: u32,
}

impl Header {
    pub(crate) fn read(bytes: &[u8]) -> Option<Header> {
        let (number, flags) = (long(bytes, 0)?, short(bytes, 8)?);
        Some(Header { number, flags, count: short(bytes, 10)?, overflow: word(bytes, 12)? })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.overflow.to_le_bytes());
    }
}

/// The content of a meta page, one of the first two pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) page_size: u32,
    /// The page of the root of all buckets.
    pub(crate) root: u64,
    pub(crate) freelist: u64,
    /// The first page that is not used.
    pub(crate) pages: u64,
    pub(crate) transaction: u64,
}

impl Meta {
    /// Parses a meta page. `Err` is the fault of the page.
    pub(crate) fn read(page: &[u8]) -> Result<Meta, &'static str> {
        let header = Header::read(page).ok_or("is not there")?;
        let bytes = page.get(HEADER_BYTES..HEADER_BYTES + META_BYTES).ok_or("is not there")?;
        if header.flags & META == 0 || word(bytes, 0) != Some(MAGIC) {
            return Err("does not begin as it must");
        }
        if word(bytes, 4) != Some(VERSION) {
            return Err("has another version of the format");
        }
        if long(bytes, META_BYTES - 8) != Some(checksum(&bytes[..META_BYTES - 8])) {
            return Err("does not match its checksum");
        }
        let read = || {
            let (page_size, root, freelist) = (word(bytes, 8)?, long(bytes, 16)?, long(bytes, 32)?);
            Some(Meta { page_size, root, freelist, pages: long(bytes, 40)?, transaction: long(bytes, 48)? })
        };
        read().ok_or("is not there")
    }

    pub(crate) fn write(&self, number: u64, out: &mut Vec<u8>) {
        Header { number, flags: META, count: 0, overflow: 0 }.write(out);
        let from = out.len();
        for word in [MAGIC, VERSION, self.page_size, 0] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for long in [self.root, 0, self.freelist, self.pages, self.transaction] {
            out.extend_from_slice(&long.to_le_bytes());
        }
        out.extend_from_slice(&checksum(&out[from..]).to_le_bytes());
    }
}

/// Returns the 64-bit FNV-1a hash.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A node of a tree: the bytes of page `number`, at `offset` in the file, or a part of them.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) number: u64,
    pub(crate) offset: u64,
    /// Header, elements, keys and values.
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_branch: bool,
    pub(crate) count: usize,
}

/// An element of a leaf.
pub(crate) struct Element<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) is_bucket: bool,
    pub(crate) location: FileLocation,
}

impl Page {
    /// Parses the bytes of a page, or of the inline page in the value of a small bucket.
    pub(crate) fn of(number: u64, offset: u64, bytes: Vec<u8>) -> Result<Page, Error> {
        let header = Header::read(&bytes).ok_or(Error::page(number, "its header is cut off"))?;
        let is_branch = match header.flags & (BRANCH | LEAF | META | FREELIST) {
            BRANCH => true,
            LEAF => false,
            _ => return Err(Error::page(number, "it is no page of a tree")),
        };
        let count = usize::from(header.count);
        if HEADER_BYTES + count * ELEMENT_BYTES > bytes.len() {
            return Err(Error::page(number, "it says to have more elements than it has room for"));
        }
        if is_branch && count == 0 {
            return Err(Error::page(number, "it is a branch with nothing below"));
        }
        Ok(Page { number, offset, bytes, is_branch, count })
    }

    fn part(&self, at: usize, position: u32, length: usize) -> Result<(usize, &[u8]), Error> {
        let from = at.saturating_add(position as usize);
        let part = self.bytes.get(from..from.saturating_add(length));
        part.map(|part| (from, part)).ok_or(Error::page(self.number, "an element lies outside of it"))
    }

    fn element(&self, index: usize) -> Result<(usize, [u32; 4]), Error> {
        let at = HEADER_BYTES + index * ELEMENT_BYTES;
        let read = |part: usize| word(&self.bytes, at + 4 * part);
        let words = || Some([read(0)?, read(1)?, read(2)?, read(3)?]);
        words().map(|words| (at, words)).ok_or(Error::page(self.number, "an element is cut off"))
    }

    /// Returns the key of an element of a branch, and the page below it.
    pub(crate) fn branch(&self, index: usize) -> Result<(&[u8], u64), Error> {
        let (at, [position, length, low, high]) = self.element(index)?;
        let (_, key) = self.part(at, position, length as usize)?;
        Ok((key, u64::from(low) | u64::from(high) << 32))
    }

    /// Returns an element of a leaf.
    pub(crate) fn leaf(&self, index: usize) -> Result<Element<'_>, Error> {
        let (at, [flags, position, key_length, value_length]) = self.element(index)?;
        let (key_length, length) = (key_length as usize, value_length as usize);
        let (from, both) = self.part(at, position, key_length.saturating_add(length))?;
        let (key, value) = both.split_at(key_length);
        let offset = self.offset + (from + key_length) as u64;
        let location = FileLocation { page: self.number, offset, length: value_length };
        Ok(Element { key, value, is_bucket: flags & BUCKET != 0, location })
    }
}
