//! One shard of a table: written by its actor, read by everyone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use compact_str::CompactString;
use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

use super::horizon::Horizon;
use super::keyspace::{Keyspace, Scan};
use super::log::ChangeLog;
use super::stage::{Stage, StageContent};
use crate::change::ChangeRange;
use crate::entry::{Command, Operation};
use crate::limits::{APPLY_UNDER_LOCK_MAX, CHANGES_UNDER_LOCK_MAX, SCAN_UNDER_LOCK_MAX};
use crate::{Change, Compacted, Key, Object, Outcome, Revision, Scope};

/// The shared state of one shard. Only its actor calls the methods that change it, with these exceptions: anybody may
/// call [`Shard::index`]. The caller of [`Shard::adopt`], or of [`Shard::trim`] while a store is opened, waits for the
/// actor's answers, so the actor is idle then.
///
/// Locks are taken one at a time and never held across an await. Effects take place in this order: the keyspace, the
/// change log, the revision of the last change, the closed revision of the shard's group. A reader that sees a closed
/// revision therefore sees everything up to it.
pub(crate) struct Shard {
    pub(super) keyspace: RwLock<Keyspace>,
    pub(super) log: RwLock<ChangeLog>,
    pub(super) horizon: Mutex<Horizon>,
    /// Whether the shard takes writes.
    pub(super) stage: Stage,
    /// The revision of the last change, or the floor when there was none.
    pub(super) last: AtomicU64,
}

/// The state of a shard according to a snapshot, ready to replace the present one.
pub(crate) struct Restored {
    floor: Revision,
    keyspace: Keyspace,
    log: ChangeLog,
    stage: StageContent,
}

impl Shard {
    /// Returns an empty shard that takes writes above `base`.
    pub(crate) fn new(base: Revision, indexed: impl IntoIterator<Item = CompactString>) -> Shard {
        Shard {
            keyspace: RwLock::new(Keyspace::new(base, indexed)),
            log: RwLock::new(ChangeLog::new(base)),
            horizon: Mutex::new(Horizon::new(base)),
            stage: Stage::open(base),
            last: AtomicU64::new(base.get()),
        }
    }

    /// Returns a shard that must be filled before it takes writes.
    pub(crate) fn blank(indexed: impl IntoIterator<Item = CompactString>) -> Shard {
        Shard { stage: Stage::default(), ..Shard::new(Revision::ZERO, indexed) }
    }

    /// Returns the stage of the shard: being filled, open or ended.
    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Keeps an index by a field from now on. Does nothing when there is one.
    pub(crate) fn index(&self, field: &str) {
        if !self.keyspace.read().is_indexed(field) {
            self.keyspace.write().index(field);
        }
    }

    /// Returns the fields by which there is an index.
    pub(crate) fn fields(&self) -> Vec<CompactString> {
        self.keyspace.read().fields().map(CompactString::new).collect()
    }

    /// Returns the revision of the last change, closed or not, or the floor of the history when there was none.
    pub(crate) fn last_change(&self) -> Revision {
        Revision::new(self.last.load(Ordering::Acquire))
    }

    /// Returns the oldest revision that can be read, and from which changes can be followed.
    pub(crate) fn floor(&self) -> Revision {
        self.horizon.lock().floor()
    }

    /// Appends the changes of a range to `out`, oldest first. Fails when the history begins after the start of the
    /// range.
    pub(super) fn changes(&self, of: ChangeRange, out: &mut Vec<Arc<Change>>) -> Result<(), Compacted> {
        // Most shards of a table have nothing new, and this check needs no lock. The floor is never above the last
        // change.
        if self.last_change() <= of.after {
            return Ok(());
        }
        self.log.read().read(of, out)
    }

    /// Decides and records writes in order. Does not raise the closed revision. Outcomes are `None` when the shard
    /// takes no writes.
    pub(crate) fn apply(&self, commands: &[&Command]) -> Vec<Option<Outcome>> {
        if !self.stage.is_writable() {
            return commands.iter().map(|_| None).collect();
        }
        let mut outcomes = Vec::with_capacity(commands.len());
        let mut changes = Vec::with_capacity(commands.len().min(APPLY_UNDER_LOCK_MAX));
        for commands in commands.chunks(APPLY_UNDER_LOCK_MAX) {
            let mut keyspace = self.keyspace.write();
            for command in commands {
                let (outcome, change) = keyspace.apply(command);
                outcomes.push(Some(outcome));
                changes.extend(change);
            }
            drop(keyspace);
            self.append(&mut changes);
        }
        outcomes
    }

    /// Builds the state of a snapshot without touching the present one. Any thread may do this, since the state may be
    /// large. Meanwhile others read the present state, up to a revision that was closed before and that the snapshot
    /// also has.
    pub(crate) fn prepare(&self, content: Content) -> Restored {
        let Content { floor, stage, objects, changes } = content;
        let mut keyspace = Keyspace::new(floor, self.fields());
        keyspace.restore(floor, objects);
        let mut log = ChangeLog::new(floor);
        for (key, revision, operation) in changes {
            let previous = keyspace.live(key.as_str()).cloned();
            let object = match (operation, &previous) {
                (Operation::Put(object), _) => object,
                (Operation::Delete(write_id), Some(previous)) => Arc::new(previous.buried(revision, write_id)),
                (Operation::Delete(_), None) => continue,
            };
            log.push(Arc::new(keyspace.record(object, previous)));
        }
        Restored { floor, keyspace, log, stage }
    }

    /// Replaces the whole state by that of a snapshot. Watchers at a position before its floor must start again.
    /// Returns the former state, which may take long to drop.
    pub(crate) fn adopt(&self, restored: Restored) -> impl Send + use<> {
        let Restored { floor, mut keyspace, log, stage } = restored;
        let last = log.last();
        let before = {
            let mut current = self.keyspace.write();
            // An index may have been created meanwhile.
            current.fields().for_each(|field| keyspace.index(field));
            std::mem::replace(&mut *current, keyspace)
        };
        let history = std::mem::replace(&mut *self.log.write(), log);
        self.horizon.lock().restart(floor);
        self.last.store(last.get(), Ordering::Release);
        self.stage.restore(&stage);
        (before, history)
    }

    /// Captures the state up to the closed revision of the group, to be read chunk by chunk. The captured state stays
    /// readable for `hold`.
    ///
    /// The captured content of a shard that is being filled may include later steps. That is harmless: the steps that
    /// follow the snapshot's entry in the log are applied again, and each of them states the objects that must exist
    /// afterwards.
    pub(crate) fn capture(self: &Arc<Shard>, closed: Revision, hold: Duration) -> Capture {
        loop {
            let floor = if seeded!(SnapshotWithoutHistory) { closed.max(self.floor()) } else { self.floor() };
            if let Ok(hold) = self.pin(floor, hold) {
                let stage = self.stage.get();
                return Capture { hold, floor, closed, stage };
            }
        }
    }

    pub(super) fn append(&self, changes: &mut Vec<Change>) {
        let mut log = self.log.write();
        changes.drain(..).for_each(|change| log.push(Arc::new(change)));
        self.last.store(log.last().get(), Ordering::Release);
    }

    /// Drops the changes up to `aged`, and further ones, oldest first, while the history takes more than `bytes_max`.
    /// Keeps pinned changes, and all changes after `through`. Each call does a bounded amount of work. Returns whether
    /// there may be more to drop.
    pub(crate) fn trim(&self, aged: Revision, bytes_max: usize, through: Revision, now: Instant) -> bool {
        let wanted = self.log.read().excess(aged, bytes_max).min(through);
        let floor = self.horizon.lock().raise(wanted, now);
        let trimmed = self.log.write().trim(floor, CHANGES_UNDER_LOCK_MAX);
        for changes in trimmed.chunks(APPLY_UNDER_LOCK_MAX) {
            let mut keyspace = self.keyspace.write();
            keyspace.raise_floor(floor);
            changes.iter().for_each(|change| keyspace.trim(change));
        }
        trimmed.len() >= CHANGES_UNDER_LOCK_MAX
    }

    /// Drops the shared encodings of changes not newer than `aged`.
    pub(crate) fn forget_shared(&self, aged: Revision) {
        let forgotten = self.log.write().forget(aged);
        forgotten.iter().for_each(|change| change.forget_shared());
    }

    #[cfg(test)]
    pub(crate) fn keyspace_len(&self) -> u64 {
        self.keyspace.read().len()
    }

    /// Returns the memory of the present objects, in bytes.
    pub(crate) fn object_bytes(&self) -> usize {
        self.keyspace.read().live_bytes()
    }

    /// Returns whether the shard has data that will be dropped by age: history, or all data of an ended shard.
    pub(crate) fn is_aging(&self) -> bool {
        self.log.read().len() > 0 || self.stage.ended().is_some_and(|ended| self.floor() <= ended)
    }

    /// Keeps `revision` readable for at most `hold`. Fails when it is not readable any more.
    pub(super) fn pin(self: &Arc<Shard>, revision: Revision, hold: Duration) -> Result<Hold, Compacted> {
        let pin = self.horizon.lock().pin(revision, Instant::now() + hold)?;
        Ok(Hold { shard: self.clone(), pin })
    }
}

/// The state of a shard with its history.
#[derive(Default)]
pub(crate) struct Content {
    /// The revision at which the history begins.
    pub(crate) floor: Revision,
    pub(crate) stage: StageContent,
    /// The objects as of the floor, sorted by key.
    pub(crate) objects: Vec<Arc<Object>>,
    /// The changes since then, in revision order.
    pub(crate) changes: Vec<(Key, Revision, Operation)>,
}

impl Content {
    /// Returns the content of a shard that has no objects.
    pub(crate) fn blank(floor: Revision, takes_writes: bool) -> Content {
        let floor = if takes_writes { floor } else { Revision::ZERO };
        let stage = StageContent { opened: takes_writes.then_some(floor), ..StageContent::default() };
        Content { floor, stage, ..Content::default() }
    }
}

/// The state of a shard with its history at one moment. It is read chunk by chunk while the shard is in use.
pub(crate) struct Capture {
    hold: Hold,
    pub(crate) floor: Revision,
    pub(crate) stage: StageContent,
    closed: Revision,
}

impl Capture {
    /// Appends the next objects as of the floor, after a key. Returns the key after which to continue. Returns `None`
    /// at the end.
    pub(crate) fn objects(&self, after: Option<&Key>, out: &mut Vec<Arc<Object>>) -> Result<Option<Key>, Compacted> {
        let scan = Scan { scope: &Scope::All, after, field: None, required: &[] };
        let keyspace = self.hold.shard.keyspace.read();
        // Until a shard is opened, every key has a single version; after that, only newer versions are added above the
        // opening revision.
        let filled = || self.hold.shard.stage.opened().unwrap_or(Revision::LAST);
        let at = if self.stage.opened.is_some() { self.floor } else { filled() };
        keyspace.scan(&scan, at, SCAN_UNDER_LOCK_MAX, SCAN_UNDER_LOCK_MAX, out)
    }

    /// Appends the next changes after a revision. Appends nothing at the end.
    pub(crate) fn changes(&self, after: Revision, out: &mut Vec<Arc<Change>>) -> Result<(), Compacted> {
        if self.stage.opened.is_none() {
            return Ok(());
        }
        let of = ChangeRange { after, through: self.closed, max: CHANGES_UNDER_LOCK_MAX };
        self.hold.shard.log.read().read(of, out)
    }
}

/// Keeps a revision of a shard readable until this is dropped.
pub(super) struct Hold {
    pub(super) shard: Arc<Shard>,
    pin: super::horizon::Pin,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shard.horizon.lock().unpin(&self.pin);
    }
}
