//! Frames: the layout of the bytes that one flush writes into a segment.
//!
//! A frame is `header | body | zeros | trailer`. Its length is a multiple of [`ALIGNMENT`], and it is aligned to that,
//! so that its header and its trailer each lie within one disk sector. Only one frame is in flight to the disk at any
//! time. Therefore a torn frame, which can only be the last one, differs from damage:
//!
//! - A torn frame lacks at least one sector, which still has the zeros of the fresh segment, and nothing follows it.
//! - A frame of which every sector was written but whose checksum is wrong was durable, and has been damaged since.
//! - A frame that reaches beyond the end of its segment, whose size never changes, has lost its end since.

use crate::disk::SECTOR;
use crate::wal::ALIGNMENT;

/// Bytes before the body.
pub(crate) const HEADER: usize = 32;
const TRAILER: usize = 8;
const MAGIC: u32 = 0x314d_5246; // FRM1
const END: u64 = 0x4652_414d_4545_4e44;
const CUT_OFF: &str = "a frame reaches beyond the end of the file";

/// The content of a frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) segment: u64,
    /// The number of the frame, counted over all segments.
    pub(crate) sequence: u64,
    body_length: u32,
    body_checksum: u32,
}

impl Header {
    /// Returns the length of the whole frame.
    pub(crate) fn frame_length(&self) -> usize {
        frame_length(self.body_length as usize)
    }

    pub(crate) fn body_length(&self) -> usize {
        self.body_length as usize
    }

    fn decode(bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.get(..HEADER)?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if word(0) != MAGIC || word(4) != crc32c::crc32c(&bytes[8..]) {
            return None;
        }
        Some(Header { body_length: word(8), body_checksum: word(12), segment: long(16), sequence: long(24) })
    }
}

/// Returns the length of a frame with a body of this length.
pub(crate) fn frame_length(body: usize) -> usize {
    (HEADER + body + TRAILER).next_multiple_of(ALIGNMENT)
}

/// Returns the length of the frame at the start of these bytes. Returns `None` if its header cannot be read.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    Header::decode(bytes).map(|header| header.frame_length())
}

/// Completes a frame in place. `frame` has space for the header, and then the body.
pub(crate) fn seal(frame: &mut Vec<u8>, segment: u64, sequence: u64) {
    let body = frame.len() - HEADER;
    let body_checksum = crc32c::crc32c(&frame[HEADER..]);
    frame[..4].copy_from_slice(&MAGIC.to_le_bytes());
    frame[8..12].copy_from_slice(&(body as u32).to_le_bytes());
    frame[12..16].copy_from_slice(&body_checksum.to_le_bytes());
    frame[16..24].copy_from_slice(&segment.to_le_bytes());
    frame[24..32].copy_from_slice(&sequence.to_le_bytes());
    let header_checksum = crc32c::crc32c(&frame[8..HEADER]);
    frame[4..8].copy_from_slice(&header_checksum.to_le_bytes());
    frame.resize(frame_length(body) - TRAILER, 0);
    frame.extend_from_slice(&(END ^ sequence).to_le_bytes());
}

/// The contents of a segment at an offset.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SegmentContent {
    /// A complete frame. Another one may follow.
    Frame(Header),
    /// Only zeros: nothing was written here.
    End,
    /// A frame that was never completely written.
    Torn,
    /// Data that was written and has been damaged since.
    Damaged(&'static str),
}

/// Examines the frame at `offset` of a segment. `expected` is the number that it should have, if known. `bytes` start
/// at the offset and reach to the end of the segment.
pub(crate) fn look(bytes: &[u8], offset: u64, segment: u64, expected: Option<u64>) -> SegmentContent {
    let sequence = expected.unwrap_or(0);
    let Some(header) = Header::decode(bytes) else {
        let (head, rest) = bytes.split_at(bytes.len().min(HEADER));
        let (no_head, no_rest) = (is_blank(head), is_blank(rest));
        return match () {
            () if no_head && no_rest => SegmentContent::End,
            () if bytes.len() < ALIGNMENT => SegmentContent::Damaged(CUT_OFF),
            () if follows(bytes.get(ALIGNMENT..), segment, sequence) => SegmentContent::Damaged("a frame is missing"),
            // A header lies within one sector, so it is complete or missing. Without a body the frame was never
            // complete.
            () if no_head || no_rest => SegmentContent::Torn,
            () => SegmentContent::Damaged("the header of a frame does not match its checksum"),
        };
    };
    if header.segment != segment || expected.is_some_and(|expected| header.sequence != expected) {
        return SegmentContent::Damaged("a frame is out of sequence");
    }
    let length = header.frame_length();
    if length > bytes.len() {
        return SegmentContent::Damaged(CUT_OFF);
    }
    if crc32c::crc32c(&bytes[HEADER..HEADER + header.body_length()]) == header.body_checksum {
        return SegmentContent::Frame(header);
    }
    if follows(bytes.get(length..), segment, sequence) || is_complete(bytes, offset, length) {
        return SegmentContent::Damaged("the body of a frame does not match its checksum");
    }
    SegmentContent::Torn
}

pub(crate) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Returns whether a later frame begins anywhere in `bytes`, whose start is aligned.
fn follows(bytes: Option<&[u8]>, segment: u64, sequence: u64) -> bool {
    let later = |header: Header| header.segment == segment && header.sequence > sequence;
    let mut blocks = bytes.unwrap_or_default().chunks(ALIGNMENT);
    blocks.any(|block| block.starts_with(&MAGIC.to_le_bytes()) && Header::decode(block).is_some_and(later))
}

/// Returns whether something was written to every sector of the frame.
fn is_complete(bytes: &[u8], offset: u64, length: usize) -> bool {
    let Some(frame) = bytes.get(..length) else { return false };
    let (first, rest) = frame.split_at((SECTOR - offset as usize % SECTOR).min(length));
    !is_blank(first) && rest.chunks(SECTOR).all(|sector| !is_blank(sector))
}
