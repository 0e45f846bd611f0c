//! Reads the frames of a segment that is larger than what is kept in memory.

use std::io;

use super::frame::{self, HEADER, SegmentContent};
use crate::disk::DiskFile;
use crate::limits::WAL_READ_BYTES;

/// A part of a segment in memory, since a whole segment is far larger than what is examined at a time.
pub(super) struct Window<'a> {
    file: &'a dyn DiskFile,
    buffer: &'a mut Vec<u8>,
    /// The offset in the segment at which the buffer begins.
    start: usize,
    /// The size of the segment.
    pub(super) size: usize,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a dyn DiskFile, buffer: &'a mut Vec<u8>) -> io::Result<Window<'a>> {
        buffer.clear();
        let size = file.size()? as usize;
        Ok(Window { file, buffer, start: 0, size })
    }

    /// Returns these bytes of the segment, up to its end.
    pub(super) fn bytes(&mut self, offset: usize, length: usize) -> io::Result<&[u8]> {
        let end = offset.saturating_add(length).min(self.size);
        if offset < self.start || end > self.start + self.buffer.len() {
            let read = (end - offset).max(WAL_READ_BYTES).min(self.size - offset);
            self.buffer.clear();
            self.buffer.resize(read, 0);
            self.file.read_at(offset as u64, self.buffer)?;
            self.start = offset;
        }
        Ok(&self.buffer[offset - self.start..end - self.start])
    }

    /// Examines an offset. A complete frame is judged by itself, anything else by everything that follows it.
    pub(super) fn look(&mut self, offset: usize, number: u64, expected: Option<u64>) -> io::Result<SegmentContent> {
        let length = frame::length(self.bytes(offset, HEADER)?);
        if let Some(length) = length
            && let SegmentContent::Frame(header) =
                frame::look(self.bytes(offset, length)?, offset as u64, number, expected)
        {
            return Ok(SegmentContent::Frame(header));
        }
        if self.is_blank_from(offset)? {
            return Ok(SegmentContent::End);
        }
        Ok(frame::look(self.bytes(offset, usize::MAX)?, offset as u64, number, expected))
    }

    /// Returns the number of bytes from an offset to the last one that was written.
    pub(super) fn written_from(&mut self, offset: usize) -> io::Result<usize> {
        let bytes = self.bytes(offset, usize::MAX)?;
        Ok(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1))
    }

    /// Returns whether nothing was written from an offset on.
    fn is_blank_from(&mut self, offset: usize) -> io::Result<bool> {
        for offset in (offset..self.size).step_by(WAL_READ_BYTES) {
            if !frame::is_blank(self.bytes(offset, WAL_READ_BYTES)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
