//! Whether a shard takes writes: filled, opened and ended by steps in the log of its group.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::log::ChangeLog;
use super::shard::Shard;
use crate::entry::{Filling, Operation};
use crate::limits::APPLY_UNDER_LOCK_MAX;
use crate::{Object, Revision};

/// How far a shard was filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The last step.
    pub(crate) step: u64,
    /// Up to where it has everything; none while objects are still missing.
    pub(crate) through: Option<Revision>,
}

/// Where a shard stands, as it is kept in snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StageContent {
    pub(crate) filled: Progress,
    /// It takes writes since it was opened above this revision.
    pub(crate) opened: Option<Revision>,
    /// It took none any more after this one.
    pub(crate) ended: Option<Revision>,
}

/// Where a shard stands. Changed by its actor alone.
#[derive(Default)]
pub(crate) struct Stage {
    filled: Mutex<Progress>,
    /// Zero when it was not.
    opened: AtomicU64,
    /// Zero when it was not.
    ended: AtomicU64,
}

fn known(revision: &AtomicU64) -> Option<Revision> {
    Some(Revision::new(revision.load(Ordering::Acquire))).filter(|revision| *revision > Revision::ZERO)
}

impl Stage {
    pub(super) fn open(base: Revision) -> Stage {
        Stage { opened: AtomicU64::new(base.get()), ..Stage::default() }
    }

    /// How far it was filled.
    pub(crate) fn filled(&self) -> Progress {
        *self.filled.lock()
    }

    /// Above which revision it takes writes, if it does or did.
    pub(crate) fn opened(&self) -> Option<Revision> {
        known(&self.opened)
    }

    /// After which revision it takes none any more, if that is so.
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
    /// Takes over objects, unless it is open already or the step does not follow the last one. `present` finds a
    /// version that is in memory already.
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

    /// Takes writes from now on; its history begins at `above`. Without effect unless it was filled up to there.
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

    /// Takes no writes any more; there will be no revision above `at`. Without effect when it has ended before.
    pub(crate) fn end(&self, at: Revision) {
        if self.stage.is_writable() {
            self.stage.ended.store(at.get(), Ordering::Release);
        }
    }

    /// Forgets everything, because nothing up to `end` may be asked for any more, unless somebody still holds it.
    pub(crate) fn clear(&self, end: Revision, now: Instant) {
        let floor = end.next();
        if self.floor() >= floor || self.horizon.lock().raise(floor, now) < floor {
            return;
        }
        self.keyspace.write().restore(floor, Vec::new());
        *self.log.write() = ChangeLog::new(floor);
    }
}
