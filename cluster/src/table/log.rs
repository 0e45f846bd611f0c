//! The change log of one shard: its committed changes in revision order, as far back as the history window reaches.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::change::ChangeRange;
use crate::{Change, Compacted, Revision};

pub(crate) struct ChangeLog {
    changes: VecDeque<Arc<Change>>,
    /// Every change after this revision is present.
    floor: Revision,
    /// Memory that the history keeps, in bytes.
    bytes: usize,
    /// The number of changes, counted from the oldest, whose shared encodings were dropped.
    forgotten: usize,
}

impl ChangeLog {
    pub(crate) fn new(floor: Revision) -> ChangeLog {
        ChangeLog { changes: VecDeque::new(), floor, bytes: 0, forgotten: 0 }
    }

    pub(crate) fn push(&mut self, change: Arc<Change>) {
        debug_assert!(change.revision() > self.last());
        self.bytes += change.memory();
        self.changes.push_back(change);
    }

    /// Appends the changes of a range, oldest first.
    pub(crate) fn read(
        &self,
        ChangeRange { after, through, max }: ChangeRange,
        out: &mut Vec<Arc<Change>>,
    ) -> Result<(), Compacted> {
        if after < self.floor {
            return Err(Compacted { floor: self.floor });
        }
        let start = self.behind(after);
        let changes = self.changes.range(start..).take(max).take_while(|change| change.revision() <= through);
        out.extend(changes.cloned());
        Ok(())
    }

    /// Returns the index of the first change after a revision. Searches from the end, since most readers know nearly
    /// all changes.
    fn behind(&self, after: Revision) -> usize {
        let is_known = |at: usize| self.changes[at].revision() <= after;
        let (mut low, mut high, mut step) = (self.changes.len(), self.changes.len(), 1);
        while low > 0 && !is_known(low - 1) {
            high = low - 1;
            low = high.saturating_sub(step);
            step *= 2;
        }
        while low < high {
            let middle = low.midpoint(high);
            if is_known(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the revision of the last change, or the floor when there is none.
    pub(crate) fn last(&self) -> Revision {
        self.changes.back().map_or(self.floor, |change| change.revision())
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the revision to which the floor may rise: that of the last change not newer than `aged`, and beyond it
    /// as long as the history takes more than `bytes_max`.
    pub(crate) fn excess(&self, aged: Revision, bytes_max: usize) -> Revision {
        let by_age = self.changes.partition_point(|change| change.revision() <= aged);
        let mut floor = by_age.checked_sub(1).map_or(self.floor, |last| self.changes[last].revision());
        let mut bytes = self.bytes;
        for (position, change) in self.changes.iter().enumerate() {
            if position >= by_age && bytes <= bytes_max {
                break;
            }
            bytes -= change.memory().min(bytes);
            floor = floor.max(change.revision());
        }
        floor
    }

    /// Removes and returns up to `max` of the oldest changes that are not newer than `floor`.
    pub(crate) fn trim(&mut self, floor: Revision, max: usize) -> Vec<Arc<Change>> {
        let count = self.changes.partition_point(|change| change.revision() <= floor).min(max);
        let trimmed: Vec<Arc<Change>> = self.changes.drain(..count).collect();
        for change in &trimmed {
            self.bytes -= change.memory().min(self.bytes);
            self.floor = change.revision();
        }
        self.forgotten -= count.min(self.forgotten);
        if self.changes.capacity() > 1024 && self.changes.capacity() > 4 * self.changes.len() {
            self.changes.shrink_to(2 * self.changes.len());
        }
        trimmed
    }

    /// Returns the changes not newer than `aged` that may still hold shared encodings. Each is returned once.
    pub(crate) fn forget(&mut self, aged: Revision) -> Vec<Arc<Change>> {
        let end = self.changes.partition_point(|change| change.revision() <= aged).max(self.forgotten);
        let forgotten = self.changes.range(self.forgotten..end).cloned().collect();
        self.forgotten = end;
        forgotten
    }
}
