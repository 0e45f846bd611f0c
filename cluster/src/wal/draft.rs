//! The frame that is being filled.

use super::frame;
use super::ledger::Ledger;
use super::record::{self, Ballot, LogRef, Record};
use super::{Callback, GroupId};

/// Records that will be written as one frame.
pub(super) struct Draft {
    /// Space for the header, then the records.
    pub(super) frame: Vec<u8>,
    /// The entries in the frame: their group, their position in the log, and the offset and length of their records.
    pub(super) entries: Vec<(GroupId, LogRef, usize, u32)>,
    pub(super) callbacks: Vec<Callback>,
    /// Whether the frame must not be written, because an entry in it does not follow the one before: a log with such a
    /// gap could not be opened again.
    pub(super) is_broken: bool,
    /// The oldest segment that is still needed once this frame is durable, if the frame makes older ones superfluous.
    pub(super) needed: Option<u64>,
}

impl Draft {
    pub(super) fn new(mut frame: Vec<u8>) -> Draft {
        frame.clear();
        frame.resize(frame::HEADER, 0);
        Draft { frame, entries: Vec::new(), callbacks: Vec::new(), is_broken: false, needed: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frame.len() <= frame::HEADER
    }
}

/// Writes records of one group into the frame that is being filled.
pub(crate) struct Appender<'a> {
    pub(super) group: GroupId,
    pub(super) draft: &'a mut Draft,
    pub(super) ledger: &'a mut Ledger,
}

impl Appender<'_> {
    /// Appends an entry whose bytes `body` writes.
    pub(crate) fn entry(&mut self, at: LogRef, body: impl FnOnce(&mut Vec<u8>)) {
        // Openraft checks this as well, but by its own view of the log.
        if !self.ledger.is_followed_by(at) {
            self.draft.is_broken = true;
            return;
        }
        let start = self.draft.frame.len();
        record::encode_entry(self.group, at, &mut self.draft.frame, body);
        let length = (self.draft.frame.len() - start) as u32;
        self.draft.entries.push((self.group, at, start, length));
        let _ = self.ledger.note(&Record::Entry(at, &[]), None);
    }

    /// Appends any other record.
    pub(crate) fn record(&mut self, record: &Record<'_>) {
        record.encode(self.group, &mut self.draft.frame);
        let _ = self.ledger.note(record, None);
    }

    pub(crate) fn vote(&mut self, ballot: Ballot) {
        self.record(&Record::Vote(ballot));
    }

    pub(crate) fn committed(&mut self, at: LogRef) {
        self.record(&Record::Committed(at));
    }

    /// Drops the entries after this index. `None` drops all.
    pub(crate) fn truncate(&mut self, last: Option<u64>) {
        if seeded!(LostTruncate) {
            let _ = self.ledger.note(&Record::Truncate(last), None);
            return;
        }
        self.record(&Record::Truncate(last));
    }
}
