//! Records: the parts of the body of a frame.

use std::fmt;

/// Bytes before the payload of a record: kind, group, length, and the checksum of an entry.
pub(crate) const RECORD_HEADER: usize = 12;
/// Bytes in an entry's record before the entry's own bytes.
pub(crate) const ENTRY_HEADER: usize = 24;

/// The identity of an entry in the log of its group: the leader that proposed it, and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LogRef {
    pub(crate) term: u64,
    pub(crate) node: u64,
    pub(crate) index: u64,
}

impl LogRef {
    fn encode(self, out: &mut Vec<u8>) {
        for number in [self.term, self.node, self.index] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Option<LogRef> {
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(LogRef { term: number(0)?, node: number(8)?, index: number(16)? })
    }
}

impl fmt::Display for LogRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.term, self.node, self.index)
    }
}

/// A vote of this replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ballot {
    pub(crate) term: u64,
    pub(crate) node: u64,
    /// Whether a quorum cast the same vote.
    pub(crate) committed: bool,
}

/// One record of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// The name of the group; the first record of a group in every segment.
    Group(&'a str),
    /// An entry was appended.
    Entry(LogRef, &'a [u8]),
    /// A vote was cast.
    Vote(Ballot),
    /// Everything up to this entry is known to be committed.
    Committed(LogRef),
    /// Only entries up to this index are kept; no entries at all for `None`.
    Truncate(Option<u64>),
    /// A snapshot supersedes entries up to this one.
    Purge(LogRef),
}

impl Record<'_> {
    fn kind(&self) -> u8 {
        match self {
            Record::Group(_) => 1,
            Record::Entry(..) => 2,
            Record::Vote(_) => 3,
            Record::Committed(_) => 4,
            Record::Truncate(_) => 5,
            Record::Purge(_) => 6,
        }
    }

    /// Encodes the record and appends it to `out`.
    pub(crate) fn encode(&self, group: u16, out: &mut Vec<u8>) {
        write(self.kind(), group, out, |out| match self {
            Record::Group(name) => out.extend_from_slice(name.as_bytes()),
            Record::Entry(at, body) => {
                at.encode(out);
                out.extend_from_slice(body);
            }
            Record::Vote(Ballot { term, node, committed }) => {
                out.extend_from_slice(&term.to_le_bytes());
                out.extend_from_slice(&node.to_le_bytes());
                out.push(u8::from(*committed));
            }
            Record::Committed(at) | Record::Purge(at) => at.encode(out),
            Record::Truncate(last) => {
                out.push(u8::from(last.is_some()));
                out.extend_from_slice(&last.unwrap_or(0).to_le_bytes());
            }
        });
    }

    /// Decodes the record at the start of `bytes`. Returns its group, the record, and its length. `None` when it is
    /// malformed.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(u16, Record<'_>, usize)> {
        let header = bytes.get(..RECORD_HEADER)?;
        let group = u16::from_le_bytes([header[2], header[3]]);
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let payload = bytes.get(RECORD_HEADER..RECORD_HEADER + length)?;
        let number = |at: usize| Some(u64::from_le_bytes(payload.get(at..at + 8)?.try_into().ok()?));
        let record = match header[0] {
            1 => Record::Group(std::str::from_utf8(payload).ok()?),
            2 => Record::Entry(LogRef::decode(payload)?, &payload[ENTRY_HEADER..]),
            3 => Record::Vote(Ballot { term: number(0)?, node: number(8)?, committed: *payload.get(16)? != 0 }),
            4 => Record::Committed(LogRef::decode(payload)?),
            5 => Record::Truncate(if *payload.first()? != 0 { Some(number(1)?) } else { None }),
            6 => Record::Purge(LogRef::decode(payload)?),
            _ => return None,
        };
        Some((group, record, RECORD_HEADER + length))
    }
}

/// Appends the record of an entry whose bytes `body` writes.
pub(crate) fn encode_entry(group: u16, at: LogRef, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    write(2, group, out, |out| {
        at.encode(out);
        body(out);
    });
}

fn write(kind: u8, group: u16, out: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(&group.to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    payload(out);
    let length = (out.len() - start - RECORD_HEADER) as u32;
    let checksum = crc32c::crc32c(&out[start + RECORD_HEADER..]);
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    out[start + 8..start + 12].copy_from_slice(&checksum.to_le_bytes());
}

/// Returns the bytes of an entry from its record alone. `None` when the checksum is wrong.
pub(crate) fn reread(bytes: &[u8], at: LogRef) -> Option<&[u8]> {
    let checksum = u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?);
    match Record::decode(bytes)? {
        (_, Record::Entry(found, body), length)
            if found == at && crc32c::crc32c(&bytes[RECORD_HEADER..length]) == checksum =>
        {
            Some(body)
        }
        _ => None,
    }
}
