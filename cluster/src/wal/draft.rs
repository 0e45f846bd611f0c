//! The frame that is being filled.

use super::frame;
use super::ledger::Ledger;
use super::record::{self, Ballot, LogRef, Record};
use super::{Callback, GroupId};

/// Records that wait to be written as one frame.
pub(super) struct Draft {
    /// Room for the header, then the records.
    pub(super) frame: Vec<u8>,
    /// The entries in it: their group, and where their records begin and how long they are.
    pub(super) entries: Vec<(GroupId, LogRef, usize, u32)>,
    pub(super) callbacks: Vec<Callback>,
    /// Whether it must not be written, because an entry in it does not follow the one before it: a log with that could
    /// never be opened again.
    pub(super) is_broken: bool,
    /// The oldest segment that is needed once this is durable, where it makes older ones superfluous.
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
    /// Appends an entry of which `body` writes the bytes.
    pub(crate) fn entry(&mut self, at: LogRef, body: impl FnOnce(&mut Vec<u8>)) {
        // openraft checks that before it asks, by what it believes to be in the log.
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

    /// Drops entries after this index, or all.
    pub(crate) fn truncate(&mut self, last: Option<u64>) {
        if seeded!(LostTruncate) {
            let _ = self.ledger.note(&Record::Truncate(last), None);
            return;
        }
        self.record(&Record::Truncate(last));
    }
}
