//! The index of one group's log: its vote, its last committed and last purged entries, and the positions of its entries
//! on disk.

use std::collections::VecDeque;

use super::record::{Ballot, LogRef, Record};

/// The position of a record on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// An entry of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LedgerEntry {
    pub(crate) at: LogRef,
    /// Its position on disk. `None` until it is written.
    pub(crate) position: Option<Position>,
}

/// The index of one group's log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) vote: Option<Ballot>,
    pub(crate) committed: Option<LogRef>,
    pub(crate) purged: Option<LogRef>,
    entries: VecDeque<LedgerEntry>,
}

/// The records of a group have a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap;

impl Ledger {
    /// Applies a record, in the order of the log.
    pub(crate) fn note(&mut self, record: &Record<'_>, position: Option<Position>) -> Result<(), Gap> {
        match record {
            Record::Group(_) => {}
            Record::Entry(at, _) => {
                if self.entries.back().is_some_and(|last| last.at.index + 1 != at.index) {
                    return Err(Gap);
                }
                self.entries.push_back(LedgerEntry { at: *at, position });
            }
            Record::Vote(ballot) => self.vote = Some(*ballot),
            Record::Committed(at) => self.committed = Some(*at),
            Record::Truncate(last) => {
                while self.entries.back().is_some_and(|entry| last.is_none_or(|last| entry.at.index > last)) {
                    self.entries.pop_back();
                }
            }
            Record::Purge(at) => {
                self.purged = self.purged.max(Some(*at));
                while self.entries.front().is_some_and(|entry| entry.at.index <= at.index) {
                    self.entries.pop_front();
                }
            }
        }
        Ok(())
    }

    /// Returns whether an entry may be appended next.
    pub(crate) fn is_followed_by(&self, at: LogRef) -> bool {
        self.last().is_none_or(|last| last.index + 1 == at.index)
    }

    /// Returns whether the entries begin where the purged ones end.
    pub(crate) fn is_whole(&self) -> bool {
        let first = self.entries.front().map(|entry| entry.at.index);
        first.is_none_or(|first| first == self.purged.map_or(0, |purged| purged.index + 1))
    }

    /// Sets the position of an entry that was written, unless it was truncated meanwhile.
    pub(crate) fn written(&mut self, at: LogRef, position: Position) {
        if let Some(entry) = self.entry_mut(at.index).filter(|entry| entry.at == at) {
            entry.position = Some(position);
        }
    }

    /// Returns the last entry, or the last purged one when there is none.
    pub(crate) fn last(&self) -> Option<LogRef> {
        self.entries.back().map(|entry| entry.at).or(self.purged)
    }

    /// Returns the index of the first entry. Returns `None` when there is none.
    pub(crate) fn first_index(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.at.index)
    }

    pub(crate) fn entry(&self, index: u64) -> Option<LedgerEntry> {
        let first = self.first_index()?;
        self.entries.get(usize::try_from(index.checked_sub(first)?).ok()?).copied()
    }

    fn entry_mut(&mut self, index: u64) -> Option<&mut LedgerEntry> {
        let first = self.first_index()?;
        self.entries.get_mut(usize::try_from(index.checked_sub(first)?).ok()?)
    }

    /// Returns the oldest segment with an entry of the group. Returns `None` when none is on disk.
    pub(crate) fn oldest_segment(&self) -> Option<u64> {
        // Positions rise with indexes, so the first entry on disk is in the oldest segment.
        self.entries.iter().find_map(|entry| entry.position).map(|position| position.segment)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the group's records with which a new segment begins, so that earlier segments are not needed to read it.
    pub(crate) fn checkpoint(&self) -> impl Iterator<Item = Record<'static>> {
        let vote = self.vote.map(Record::Vote);
        let (committed, purged) = (self.committed.map(Record::Committed), self.purged.map(Record::Purge));
        [vote, committed, purged].into_iter().flatten()
    }
}
