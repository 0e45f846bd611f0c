//! The stage of a shard: steps in the log of its group fill it, open it for writes, and end it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::log::ChangeLog;
use super::shard::Shard;
use crate::entry::{Filling, Operation};
use crate::limits::APPLY_UNDER_LOCK_MAX;
use crate::{Object, Revision};

/// How far a shard has been filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The number of the last step.
    pub(crate) step: u64,
    /// The revision up to which the shard is complete. `None` while objects are still missing.
    pub(crate) through: Option<Revision>,
}

/// The stage of a shard, as snapshots contain it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StageContent {
    pub(crate) filled: Progress,
    /// The revision above which the shard was opened for writes. `None` if it was not.
    pub(crate) opened: Option<Revision>,
    /// The revision after which it takes no more writes. `None` if it has not ended.
    pub(crate) ended: Option<Revision>,
}

/// The stage of a shard. Only its actor changes it.
#[derive(Default)]
pub(crate) struct Stage {
    filled: Mutex<Progress>,
    /// Zero when the shard was not opened.
    opened: AtomicU64,
    /// Zero when the shard has not ended.
    ended: AtomicU64,
}

fn known(revision: &AtomicU64) -> Option<Revision> {
    Some(Revision::new(revision.load(Ordering::Acquire))).filter(|revision| *revision > Revision::ZERO)
}

impl Stage {
    pub(super) fn open(base: Revision) -> Stage {
        Stage { opened: AtomicU64::new(base.get()), ..Stage::default() }
    }

    /// Returns how far the shard has been filled.
    pub(crate) fn filled(&self) -> Progress {
        *self.filled.lock()
    }

    /// Returns the revision above which the shard was opened for writes. Returns `None` if it was not.
    pub(crate) fn opened(&self) -> Option<Revision> {
        known(&self.opened)
    }

    /// Returns the revision after which the shard takes no more writes. Returns `None` if it has not ended.
    pub(crate) fn ended(&self) -> Option<Revision> {
        known(&self.ended)
    }

    pub(super) fn is_writable(&self) -> bool {
        self.opened().is_some() && self.ended().is_none()
    }

    pub(crate) fn get(&self) -> StageContent {
        StageContent { filled: self.filled(), opened: self.opened(), ended: self.ended() }
    }

    pub(super) fn restore(&self, content: &StageContent) {
        let number = |revision: Option<Revision>| revision.unwrap_or_default().get();
        *self.filled.lock() = content.filled;
        self.opened.store(number(content.opened), Ordering::Release);
        self.ended.store(number(content.ended), Ordering::Release);
    }
}

impl Shard {
    /// Takes over objects. Does nothing when the shard is open already or the step does not follow the last one.
    /// `present` returns a version that is in memory already, which is then shared.
    pub(crate) fn fill(&self, filling: &Filling, present: impl Fn(&Object) -> Option<Arc<Object>>) {
        let before = self.stage.filled();
        if self.stage.opened().is_some() || filling.step != before.step + 1 {
            return;
        }
        if filling.anew {
            self.keyspace.write().restore(Revision::ZERO, Vec::new());
        }
        for operations in filling.operations.chunks(APPLY_UNDER_LOCK_MAX) {
            let mut keyspace = self.keyspace.write();
            for (key, _, operation) in operations {
                match operation {
                    Operation::Put(object) => keyspace.take_over(present(object).unwrap_or_else(|| object.clone())),
                    Operation::Delete(_) => keyspace.give_up(key),
                }
            }
        }
        let through = if filling.anew { filling.through } else { filling.through.or(before.through) };
        *self.stage.filled.lock() = Progress { step: filling.step, through };
    }

    /// Opens the shard for writes; its history begins at `above`. Does nothing unless it was filled up to exactly that
    /// revision.
    pub(crate) fn open(&self, above: Revision) {
        if self.stage.opened().is_some() || self.stage.filled().through != Some(above) {
            return;
        }
        self.keyspace.write().begin(above);
        *self.log.write() = ChangeLog::new(above);
        self.horizon.lock().begin(above);
        self.last.store(above.get(), Ordering::Release);
        self.stage.opened.store(above.get(), Ordering::Release);
    }

    /// Ends the shard: it takes no more writes, and has no revision above `at`. Does nothing when it has ended before
    /// or was never open.
    pub(crate) fn end(&self, at: Revision) {
        if self.stage.is_writable() {
            self.stage.ended.store(at.get(), Ordering::Release);
        }
    }

    /// Drops everything in an ended shard, since no client may ask for a revision up to `end` any more. Does nothing
    /// while a snapshot still holds one.
    pub(crate) fn clear(&self, end: Revision, now: Instant) {
        let floor = end.next();
        if self.floor() >= floor || self.horizon.lock().raise(floor, now) < floor {
            return;
        }
        self.keyspace.write().restore(floor, Vec::new());
        *self.log.write() = ChangeLog::new(floor);
    }
}
