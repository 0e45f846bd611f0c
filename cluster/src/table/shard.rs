//! One shard of a table: what its actor writes and everybody reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use compact_str::CompactString;
use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

use super::change::Change;
use super::horizon::Horizon;
use super::keyspace::{Keyspace, Scan};
use super::log::{ChangeLog, Stretch};
use super::stage::{Stage, StageContent};
use crate::entry::{Command, Operation};
use crate::limits::{APPLY_UNDER_LOCK_MAX, CHANGES_UNDER_LOCK_MAX, SCAN_UNDER_LOCK_MAX};
use crate::{Compacted, Key, Object, Outcome, Revision, Scope};

/// The shared state of one shard. Only its actor calls the methods that change it, but for [`Shard::adopt`], and for
/// [`Shard::trim`] while a store is opened: whoever has it write waits for its answers.
///
/// Locks are taken one at a time and never held across an await; the order of effects is: the keyspace, the change
/// log, the revision of the last change, and then the closed revision, which is that of the shard's group, so that
/// whoever sees a closed revision sees everything up to it.
pub(crate) struct Shard {
    pub(super) keyspace: RwLock<Keyspace>,
    pub(super) log: RwLock<ChangeLog>,
    pub(super) horizon: Mutex<Horizon>,
    /// Whether it takes writes.
    pub(super) stage: Stage,
    /// The revision of the last change, or the floor when there was none.
    pub(super) last: AtomicU64,
}

/// What a snapshot says of a shard, ready to take the place of what that has.
pub(crate) struct Restored {
    floor: Revision,
    keyspace: Keyspace,
    log: ChangeLog,
    stage: StageContent,
}

impl Shard {
    /// A shard that takes writes above a revision, and is empty before.
    pub(crate) fn new(base: Revision, indexed: impl IntoIterator<Item = CompactString>) -> Shard {
        Shard {
            keyspace: RwLock::new(Keyspace::new(base, indexed)),
            log: RwLock::new(ChangeLog::new(base)),
            horizon: Mutex::new(Horizon::new(base)),
            stage: Stage::open(base),
            last: AtomicU64::new(base.get()),
        }
    }

    /// A shard that is to be filled before it takes writes.
    pub(crate) fn blank(indexed: impl IntoIterator<Item = CompactString>) -> Shard {
        Shard { stage: Stage::default(), ..Shard::new(Revision::ZERO, indexed) }
    }

    /// Whether it takes writes, has taken them, or is being filled.
    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Keeps an index by a field from now on; without effect when there is one.
    pub(crate) fn index(&self, field: &str) {
        if !self.keyspace.read().is_indexed(field) {
            self.keyspace.write().index(field);
        }
    }

    /// The fields by which there is an index.
    pub(crate) fn fields(&self) -> Vec<CompactString> {
        self.keyspace.read().fields().map(CompactString::new).collect()
    }

    /// The revision of the last change, closed or not, or the floor of the history when there was none.
    pub(crate) fn last_change(&self) -> Revision {
        Revision::new(self.last.load(Ordering::Acquire))
    }

    /// The oldest revision that can be read, and after which changes can be read.
    pub(crate) fn floor(&self) -> Revision {
        self.horizon.lock().floor()
    }

    /// Appends the changes of a stretch, the oldest first.
    pub(super) fn changes(&self, of: Stretch, out: &mut Vec<Arc<Change>>) -> Result<(), Compacted> {
        // Most shards of a table have nothing new, which needs no lock. The floor is never above the last change.
        if self.last_change() <= of.after {
            return Ok(());
        }
        self.log.read().read(of, out)
    }

    /// Decides and records writes in order. The closed revision does not rise yet. No outcome for those of a shard that
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

    /// Makes the state that a snapshot has, aside, on any thread: it may be much. Others read meanwhile, up to a
    /// revision that was closed before and is not above what the snapshot has.
    pub(crate) fn prepare(&self, content: Content) -> Restored {
        let Content { floor, stage, objects, changes } = content;
        let mut keyspace = Keyspace::new(floor, self.fields());
        keyspace.restore(floor, objects);
        let mut log = ChangeLog::new(floor);
        for (key, revision, operation) in changes {
            let previous = keyspace.live(key.as_str()).cloned();
            let object = match (operation, &previous) {
                (Operation::Put(object), _) => object,
                (Operation::Delete(attempt), Some(previous)) => Arc::new(previous.buried(revision, attempt)),
                (Operation::Delete(_), None) => continue,
            };
            log.push(Arc::new(keyspace.record(object, previous)));
        }
        Restored { floor, keyspace, log, stage }
    }

    /// Replaces the whole state by that of a snapshot. Watchers who stand before its floor start over. Answers what was
    /// there before, which may be much to drop.
    pub(crate) fn adopt(&self, restored: Restored) -> impl Send + use<> {
        let Restored { floor, mut keyspace, log, stage } = restored;
        let last = log.last();
        let before = {
            let mut current = self.keyspace.write();
            // An index may have been asked for meanwhile.
            current.fields().for_each(|field| keyspace.index(field));
            std::mem::replace(&mut *current, keyspace)
        };
        let history = std::mem::replace(&mut *self.log.write(), log);
        self.horizon.lock().restart(floor);
        self.last.store(last.get(), Ordering::Release);
        self.stage.restore(&stage);
        (before, history)
    }

    /// The state up to the closed revision of the group, to be read at leisure; it stays as it is for `hold`.
    ///
    /// What is read of a shard that is being filled may have more of later steps. They do it no harm when they are
    /// taken again, which all of them are that follow the entry up to which the snapshot is: they say what is to be
    /// there.
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

    /// Forgets changes not newer than `aged`, and more of the oldest while the history holds more than `bytes_max`, as
    /// far as nobody has pinned them, and none after `through`. Whether there may be more to forget: one call forgets
    /// what takes a bounded time.
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

    /// Memory of the objects now, in bytes.
    pub(crate) fn object_bytes(&self) -> usize {
        self.keyspace.read().live_bytes()
    }

    /// Whether it has what time makes superfluous: history, or everything of one that has ended.
    pub(crate) fn is_aging(&self) -> bool {
        self.log.read().len() > 0 || self.stage.ended().is_some_and(|ended| self.floor() <= ended)
    }

    /// Keeps `revision` readable for at most `hold`.
    pub(super) fn pin(self: &Arc<Shard>, revision: Revision, hold: Duration) -> Result<Hold, Compacted> {
        let pin = self.horizon.lock().pin(revision, Instant::now() + hold)?;
        Ok(Hold { shard: self.clone(), pin })
    }
}

/// The state of a shard with its history.
#[derive(Default)]
pub(crate) struct Content {
    /// Where the history begins.
    pub(crate) floor: Revision,
    pub(crate) stage: StageContent,
    /// The objects as of the floor, sorted by key.
    pub(crate) objects: Vec<Arc<Object>>,
    /// What changed since, in revision order.
    pub(crate) changes: Vec<(Key, Revision, Operation)>,
}

impl Content {
    /// That of a shard that has nothing yet.
    pub(crate) fn blank(floor: Revision, takes_writes: bool) -> Content {
        let floor = if takes_writes { floor } else { Revision::ZERO };
        let stage = StageContent { opened: takes_writes.then_some(floor), ..StageContent::default() };
        Content { floor, stage, ..Content::default() }
    }
}

/// The state of a shard with its history as of one moment, read chunk by chunk while the shard goes on.
pub(crate) struct Capture {
    hold: Hold,
    pub(crate) floor: Revision,
    pub(crate) stage: StageContent,
    closed: Revision,
}

impl Capture {
    /// Appends the next objects as of the floor, after a key. The key to go on after, unless that was the last.
    pub(crate) fn objects(&self, after: Option<&Key>, out: &mut Vec<Arc<Object>>) -> Result<Option<Key>, Compacted> {
        let scan = Scan { scope: &Scope::All, after, field: None, required: &[] };
        let keyspace = self.hold.shard.keyspace.read();
        // A shard that was being filled has versions of one kind only until it is opened, and then up to there.
        let filled = || self.hold.shard.stage.opened().unwrap_or(Revision::LAST);
        let at = if self.stage.opened.is_some() { self.floor } else { filled() };
        keyspace.scan(&scan, at, SCAN_UNDER_LOCK_MAX, SCAN_UNDER_LOCK_MAX, out)
    }

    /// Appends the next changes after a revision; none when that was the last.
    pub(crate) fn changes(&self, after: Revision, out: &mut Vec<Arc<Change>>) -> Result<(), Compacted> {
        if self.stage.opened.is_none() {
            return Ok(());
        }
        let of = Stretch { after, through: self.closed, max: CHANGES_UNDER_LOCK_MAX };
        self.hold.shard.log.read().read(of, out)
    }
}

/// Keeps a revision of a shard readable while it lives.
pub(super) struct Hold {
    pub(super) shard: Arc<Shard>,
    pin: super::horizon::Pin,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shard.horizon.lock().unpin(&self.pin);
    }
}
