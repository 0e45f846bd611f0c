//! Entries on disk, and the announcement of committed ones while the log is still being read.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::ledger::{Ledger, Position};
use super::record::{self, LogRef, Record};
use super::{Segment, Segments, WalError};
use crate::limits::{ANNOUNCED_ENTRIES_MAX, ANNOUNCED_MESSAGES_MAX};

/// An entry on disk.
pub(crate) struct EntryOnDisk {
    pub(crate) at: LogRef,
    segment: Arc<Segment>,
    position: Position,
}

impl EntryOnDisk {
    /// Returns the entry as it is on disk. `None` when its segment was removed.
    pub(super) fn of(at: LogRef, position: Position, segments: &Segments) -> Option<EntryOnDisk> {
        let segment = segments.get(&position.segment)?.clone();
        Some(EntryOnDisk { at, segment, position })
    }

    /// Returns the length of the entry's record, in bytes.
    pub(crate) fn length(&self) -> usize {
        self.position.length as usize
    }

    /// Reads the entry with `decode`, through a buffer that grows as needed.
    pub(crate) fn read<T>(&self, buffer: &mut Vec<u8>, decode: impl FnOnce(LogRef, &[u8]) -> T) -> Result<T, WalError> {
        let (length, path) = (self.length(), || self.segment.path.clone());
        buffer.resize(length.max(buffer.len()), 0);
        let bytes = &mut buffer[..length];
        let read = self.segment.file.read_at(self.position.offset, bytes);
        read.map_err(|source| WalError::Io { path: path(), source })?;
        let what = "an entry does not match its checksum";
        let damaged = || WalError::Damaged { path: path(), offset: self.position.offset, what };
        Ok(decode(self.at, record::reread(bytes, self.at).ok_or_else(damaged)?))
    }
}

/// A message about a group while its log is being read.
pub(crate) enum Announced {
    /// The next entries that are known to be committed, so that the log cannot revoke them.
    Entries(Vec<EntryOnDisk>),
    /// The log did revoke announced entries: the state made of them is invalid.
    Void,
}

/// Announces the entries of one group once they are known to be committed. A message has only their positions: they are
/// likely still in the page cache when they are read again. While too many messages wait, nothing is announced. The
/// ledger has all entries, so the rest follows with a later record, or is read once the log is open.
pub(crate) struct Announcer {
    sender: mpsc::Sender<Announced>,
    /// The index of the next entry to announce.
    next: u64,
}

impl Announcer {
    pub(crate) fn new() -> (Announcer, mpsc::Receiver<Announced>) {
        let (sender, receiver) = mpsc::channel(ANNOUNCED_MESSAGES_MAX + 1); // one more, for `Announced::Void`
        (Announcer { sender, next: 0 }, receiver)
    }

    /// Handles a record of the group that was read. The group's ledger has it already.
    pub(super) fn note(&mut self, record: &Record<'_>, ledger: &Ledger, segments: &Segments) {
        match record {
            Record::Committed(at) if ledger.entry(at.index).is_some_and(|entry| entry.at == *at) => {
                self.announce_up_to(at.index, ledger, segments);
            }
            // One message is enough: the receiver stops at the first of these.
            Record::Truncate(last) if last.map_or(0, |last| last + 1) < self.next => {
                let _ = self.sender.try_send(Announced::Void);
            }
            _ => {}
        }
    }

    fn announce_up_to(&mut self, last: u64, ledger: &Ledger, segments: &Segments) {
        self.next = self.next.max(ledger.first_index().unwrap_or(0));
        while self.next <= last && self.sender.capacity() > 1 {
            let end = last.min(self.next + ANNOUNCED_ENTRIES_MAX as u64 - 1);
            let entries = (self.next..=end).filter_map(|index| ledger.entry(index));
            let on_disk =
                entries.filter_map(|entry| EntryOnDisk::of(entry.at, entry.position?, segments)).collect::<Vec<_>>();
            self.next = end + 1;
            if !on_disk.is_empty() {
                let _ = self.sender.try_send(Announced::Entries(on_disk)); // fails if the receiver has stopped
            }
        }
    }
}
