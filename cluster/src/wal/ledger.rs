//! What the log holds of one group: its vote, how far it is committed and purged, and where its entries are.

use std::collections::VecDeque;

use super::record::{Ballot, LogRef, Record};

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// An entry of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) at: LogRef,
    /// Where it is on disk, once it is.
    pub(crate) position: Option<Position>,
}

/// The index of one group's log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) vote: Option<Ballot>,
    pub(crate) committed: Option<LogRef>,
    pub(crate) purged: Option<LogRef>,
    slots: VecDeque<Slot>,
}

/// The records of a group do not follow from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap;

impl Ledger {
    /// Takes note of a record in the order of the log.
    pub(crate) fn note(&mut self, record: &Record<'_>, position: Option<Position>) -> Result<(), Gap> {
        match record {
            Record::Group(_) => {}
            Record::Entry(at, _) => {
                if self.slots.back().is_some_and(|last| last.at.index + 1 != at.index) {
                    return Err(Gap);
                }
                self.slots.push_back(Slot { at: *at, position });
            }
            Record::Vote(ballot) => self.vote = Some(*ballot),
            Record::Committed(at) => self.committed = Some(*at),
            Record::Truncate(last) => {
                while self.slots.back().is_some_and(|slot| last.is_none_or(|last| slot.at.index > last)) {
                    self.slots.pop_back();
                }
            }
            Record::Purge(at) => {
                self.purged = self.purged.max(Some(*at));
                while self.slots.front().is_some_and(|slot| slot.at.index <= at.index) {
                    self.slots.pop_front();
                }
            }
        }
        Ok(())
    }

    /// Whether an entry may come next.
    pub(crate) fn is_followed_by(&self, at: LogRef) -> bool {
        self.last().is_none_or(|last| last.index + 1 == at.index)
    }

    /// Whether the entries begin where the purged ones end.
    pub(crate) fn is_whole(&self) -> bool {
        let first = self.slots.front().map(|slot| slot.at.index);
        first.is_none_or(|first| first == self.purged.map_or(0, |purged| purged.index + 1))
    }

    /// An entry that was appended is on disk now, unless it was truncated meanwhile.
    pub(crate) fn written(&mut self, at: LogRef, position: Position) {
        if let Some(slot) = self.slot_mut(at.index).filter(|slot| slot.at == at) {
            slot.position = Some(position);
        }
    }

    /// The last entry, or the last purged one when there is none.
    pub(crate) fn last(&self) -> Option<LogRef> {
        self.slots.back().map(|slot| slot.at).or(self.purged)
    }

    /// The index of the first entry, if any.
    pub(crate) fn first_index(&self) -> Option<u64> {
        self.slots.front().map(|slot| slot.at.index)
    }

    pub(crate) fn slot(&self, index: u64) -> Option<Slot> {
        let first = self.first_index()?;
        self.slots.get(usize::try_from(index.checked_sub(first)?).ok()?).copied()
    }

    fn slot_mut(&mut self, index: u64) -> Option<&mut Slot> {
        let first = self.first_index()?;
        self.slots.get_mut(usize::try_from(index.checked_sub(first)?).ok()?)
    }

    /// The oldest segment that holds an entry of the group, when any is on disk.
    pub(crate) fn oldest_segment(&self) -> Option<u64> {
        // Positions rise with indexes, so that the first that is on disk is the oldest.
        self.slots.iter().find_map(|slot| slot.position).map(|position| position.segment)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The records with which a segment begins, from which the rest of the log makes sense.
    pub(crate) fn checkpoint(&self) -> impl Iterator<Item = Record<'static>> {
        let vote = self.vote.map(Record::Vote);
        let (committed, purged) = (self.committed.map(Record::Committed), self.purged.map(Record::Purge));
        [vote, committed, purged].into_iter().flatten()
    }
}
