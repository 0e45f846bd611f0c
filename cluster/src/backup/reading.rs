//! Reads a backup from front to back, and checks all of it.

use std::io::{self, Read};

use super::{BackupHeader, FORMAT, KIND_END, KIND_HEADER, KIND_OBJECTS, MAGIC};
use crate::codec::Decoder;
use crate::limits::BACKUP_CHUNK_BYTES_MAX;
use crate::{Object, Revision, TableId, chunk};

/// The reason why a backup cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BackupReadError {
    /// Reading the file or connection failed.
    #[error("the backup cannot be read")]
    Io(#[from] io::Error),
    /// It is not a backup.
    #[error("this is not a backup: it does not begin like one")]
    Other,
    /// It was written by a later release.
    #[error("the backup has format {format}, of a later release; this one reads up to {FORMAT}")]
    Newer {
        /// The format of the backup.
        format: u32,
    },
    /// It is incomplete.
    #[error("the backup is incomplete: it breaks off after {bytes} bytes")]
    Truncated {
        /// The number of bytes that it has.
        bytes: u64,
    },
    /// It has changed since it was written.
    #[error("the backup is damaged at byte {offset}: {what}")]
    Damaged {
        /// The offset of the damage, in bytes.
        offset: u64,
        /// The fault, in words.
        what: &'static str,
    },
}

/// The content of a backup that was read completely without finding damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupSummary {
    /// The number of objects.
    pub objects: u64,
    /// The number of bytes of the backup.
    pub bytes: u64,
    /// The largest revision that the store had assigned when the backup was complete, as far as the replica that made
    /// it knew.
    pub last: Revision,
}

/// Reads a backup, chunk by chunk.
pub struct BackupReader<R> {
    from: R,
    header: BackupHeader,
    content: Vec<u8>,
    /// The offset of the next chunk.
    offset: u64,
    chunks: u64,
    objects: u64,
    summary: Option<BackupSummary>,
}

impl<R: Read> BackupReader<R> {
    /// Starts reading a backup.
    ///
    /// # Errors
    /// Fails when the bytes are not a backup, or their beginning is damaged.
    pub fn open(mut from: R) -> Result<BackupReader<R>, BackupReadError> {
        let mut head = Vec::new();
        (&mut from).take(12).read_to_end(&mut head)?;
        let (magic, format) = head.split_at(head.len().min(MAGIC.len()));
        if magic != MAGIC {
            let cut = MAGIC.starts_with(magic) && !magic.is_empty();
            return Err(if cut {
                BackupReadError::Truncated { bytes: head.len() as u64 }
            } else {
                BackupReadError::Other
            });
        }
        let truncated = |_| BackupReadError::Truncated { bytes: head.len() as u64 };
        let format = u32::from_le_bytes(format.try_into().map_err(truncated)?);
        match format {
            FORMAT => {}
            0 => return Err(BackupReadError::Damaged { offset: 8, what: "there is no format 0" }),
            format => return Err(BackupReadError::Newer { format }),
        }
        let (header, content, summary) = (BackupHeader::default(), Vec::new(), None);
        let mut reader = BackupReader { from, header, content, offset: 12, chunks: 0, objects: 0, summary };
        let at = reader.read_chunk()?;
        let mut decoder = Decoder::new(&reader.content);
        let header = (decoder.byte() == Some(KIND_HEADER)).then(|| BackupHeader::read(&mut decoder)).flatten();
        reader.header = header.ok_or(BackupReadError::Damaged { offset: at, what: "there is no header" })?;
        Ok(reader)
    }

    /// Returns the header.
    pub fn header(&self) -> &BackupHeader {
        &self.header
    }

    /// Returns the next objects and their table. Returns `None` at the end of a complete backup.
    ///
    /// # Errors
    /// See [`BackupReadError`].
    pub fn read(&mut self) -> Result<Option<(TableId, Vec<Object>)>, BackupReadError> {
        if self.summary.is_some() {
            return Ok(None);
        }
        let offset = self.read_chunk()?;
        let damaged = |what| BackupReadError::Damaged { offset, what };
        let mut decoder = Decoder::new(&self.content);
        match decoder.byte() {
            Some(KIND_OBJECTS) => {
                let read = objects(&mut decoder).ok_or_else(|| damaged("an object cannot be read"))?;
                self.chunks += 1;
                self.objects += read.1.len() as u64;
                Ok(Some(read))
            }
            Some(KIND_END) => {
                let counts = (decoder.long(), decoder.long());
                let last = decoder.revision().filter(|_| counts == (Some(self.chunks), Some(self.objects)));
                let last = last.ok_or_else(|| damaged("it has not as much as its end says"))?;
                if self.from.read(&mut [0])? > 0 {
                    return Err(BackupReadError::Damaged { offset: self.offset, what: "something follows its end" });
                }
                self.summary = Some(BackupSummary { objects: self.objects, bytes: self.offset, last });
                Ok(None)
            }
            _ => Err(damaged("a chunk has an unknown kind")),
        }
    }

    /// Reads the rest of the backup to check it. Returns the header and the summary.
    ///
    /// # Errors
    /// See [`BackupReadError`].
    pub fn check(mut self) -> Result<(BackupHeader, BackupSummary), BackupReadError> {
        while self.read()?.is_some() {}
        let truncated = BackupReadError::Truncated { bytes: self.offset };
        self.summary.map(|summary| (self.header, summary)).ok_or(truncated)
    }

    /// Reads the next chunk. Returns its offset.
    fn read_chunk(&mut self) -> Result<u64, BackupReadError> {
        let offset = self.offset;
        let mut head = Vec::new();
        (&mut self.from).take(chunk::HEAD_BYTES as u64).read_to_end(&mut head)?;
        let there = offset + head.len() as u64;
        let head = head.try_into().map_err(|_| BackupReadError::Truncated { bytes: there })?;
        let (length, checksum) = chunk::head(head);
        if length > BACKUP_CHUNK_BYTES_MAX {
            return Err(BackupReadError::Damaged { offset, what: "a chunk is longer than any can be" });
        }
        self.content.clear();
        (&mut self.from).take(length as u64).read_to_end(&mut self.content)?;
        self.offset = there + self.content.len() as u64;
        if self.content.len() < length {
            return Err(BackupReadError::Truncated { bytes: self.offset });
        }
        if crc32c::crc32c(&self.content) != checksum {
            return Err(BackupReadError::Damaged { offset, what: "a chunk does not match its checksum" });
        }
        Ok(offset)
    }
}

fn objects(decoder: &mut Decoder<'_>) -> Option<(TableId, Vec<Object>)> {
    let table = TableId::new(decoder.text()?);
    let mut objects = Vec::new();
    while !decoder.is_empty() {
        objects.push(decoder.object()?);
    }
    Some((table, objects))
}
