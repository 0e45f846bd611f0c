//! Reads of a table: its present state, and its state at past revisions within the history.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::division;
use super::{Extent, Snapshot, Table};
use crate::change::ChangeRange;
use crate::limits::SNAPSHOT_ATTEMPTS;
use crate::{Change, Compacted, Object, Revision, SnapshotError, TooLarge};

impl Table {
    /// Returns the object as it is now on this replica. In a table of several groups it may be newer than
    /// [`Table::revision`].
    pub fn get(&self, key: &str) -> Option<Arc<Object>> {
        let divisions = self.divisions.read();
        division::newest(&divisions, key).1.shard.keyspace.read().live(key).cloned()
    }

    /// Returns the latest version of an object on this replica. It may be the deletion of the object, as long as that
    /// is in the history.
    pub(crate) fn latest(&self, key: &str) -> Option<Arc<Object>> {
        let divisions = self.divisions.read();
        division::newest(&divisions, key).1.shard.keyspace.read().latest(key).cloned()
    }

    /// Returns the object as lists and watches show it now. In a table of several groups, [`Table::get`] may be a
    /// moment ahead.
    pub(crate) fn get_closed(&self, key: &str) -> Option<Arc<Object>> {
        // The history reaches back to the closed revision, unless that rises meanwhile.
        let tries = (0..SNAPSHOT_ATTEMPTS).find_map(|_| self.get_at(key, self.revision()).ok());
        tries.unwrap_or_else(|| self.get(key))
    }

    /// Returns the object as it was at a revision, which must not be above [`Table::revision`].
    ///
    /// # Errors
    /// Fails when the revision is older than the history.
    pub fn get_at(&self, key: &str, revision: Revision) -> Result<Option<Arc<Object>>, Compacted> {
        let divisions = self.divisions();
        let division = &divisions[division::at(&divisions, revision)];
        Ok(division.shard_for(key).shard.keyspace.read().at(key, revision)?.cloned())
    }

    /// Returns the closed revision: everything up to it is visible here, and nothing can be added at or below it. It is
    /// never zero, even for an empty table.
    pub fn revision(&self) -> Revision {
        division::front(&self.divisions.read()).1
    }

    /// Returns the oldest revision that can be read, and from which changes can be followed.
    pub fn floor(&self) -> Revision {
        let divisions = self.divisions();
        let mut floor = Revision::ZERO;
        for division in divisions.iter() {
            floor = division.floor();
            match division.extent() {
                Extent::Ended(end) if floor > end => {} // all of it has been dropped
                Extent::Ended(_) | Extent::Closed(_) => break,
            }
        }
        floor
    }

    /// Returns the oldest revision that clients may name: the history reaches back to it, and the clock showed it
    /// within the history window. In a table without changes for longer than that, it is above [`Table::revision`].
    pub fn horizon(&self) -> Revision {
        let outdated = self.front().clocks().first().map(|clock| clock.hybrid().outdated());
        outdated.unwrap_or_default().max(self.floor())
    }

    /// Asks groups with an old closed revision to close soon, so that clients can use a revision that they receive for
    /// the whole history window. Returns whether any group was asked.
    pub fn freshen(&self) -> bool {
        let mut stale = self.clocks();
        stale.retain(|clock| clock.is_stale());
        stale.iter().for_each(|clock| clock.demand(clock.hybrid().now()));
        !stale.is_empty()
    }

    /// Waits until this replica has everything up to `revision`. Does not make groups close: see
    /// [`crate::Store::reach`].
    ///
    /// # Errors
    /// Fails when the deadline passes first.
    pub(crate) async fn wait_applied(&self, revision: Revision, deadline: Instant) -> Result<(), TooLarge> {
        let waiting = async {
            loop {
                let turned = self.turned.notified();
                tokio::pin!(turned);
                turned.as_mut().enable(); // before looking, so that no change is missed
                if self.revision() >= revision {
                    return;
                }
                let front = self.front();
                let closing = join_all(front.clocks().iter().map(|clock| clock.reached(revision)));
                let closed = async {
                    closing.await;
                    if self.revision() < revision {
                        std::future::pending::<()>().await; // the division ended earlier, and the next is not open
                    }
                };
                tokio::select! {
                    biased;
                    () = turned => {}
                    () = closed => {}
                }
            }
        };
        let waited = tokio::time::timeout_at(deadline, waiting).await;
        waited.map_err(|_| TooLarge { current: self.revision() })
    }

    /// Returns a snapshot of the table at its closed revision.
    pub fn snapshot(&self) -> Snapshot {
        for _ in 0..SNAPSHOT_ATTEMPTS {
            // History is trimmed only up to the closed revision, so this succeeds after a few attempts.
            if let Ok(snapshot) = self.snapshot_at(self.revision()) {
                return snapshot;
            }
            std::thread::yield_now(); // a snapshot is replacing all tables of a group
        }
        // One group is so far behind that the others no longer have its closed revision. Every read of this snapshot
        // fails.
        let (divisions, revision) = (self.divisions(), self.revision());
        Snapshot::new(revision, divisions[division::at(&divisions, revision)].clone(), Vec::new())
    }

    /// Returns a snapshot of the table at a revision.
    ///
    /// # Errors
    /// Fails when the revision is older than the history or not reached yet.
    pub fn snapshot_at(&self, revision: Revision) -> Result<Snapshot, SnapshotError> {
        self.snapshot_for(revision, self.snapshot_hold)
    }

    /// Returns a snapshot of the table at a revision, which is kept readable for at most `hold`.
    ///
    /// # Errors
    /// Fails when the revision is older than the history or not reached yet.
    pub(crate) fn snapshot_for(&self, revision: Revision, hold: Duration) -> Result<Snapshot, SnapshotError> {
        let divisions = self.divisions();
        let (_, current) = division::front(&divisions);
        if revision > current {
            return Err(TooLarge { current }.into());
        }
        let division = &divisions[division::at(&divisions, revision)];
        let holds = division.shards().iter().map(|placed| placed.shard.pin(revision, hold));
        let holds = holds.collect::<Result<Vec<_>, _>>()?;
        Ok(Snapshot::new(revision, division.clone(), holds))
    }

    /// Returns up to `max` changes after a revision, in revision order and not above [`Table::revision`].
    ///
    /// # Errors
    /// Fails when the revision is older than the history.
    pub fn changes(&self, mut after: Revision, max: usize) -> Result<Vec<Arc<Change>>, Compacted> {
        let (mut changes, through) = (Vec::new(), self.revision());
        while after < through && changes.len() < max {
            let of = ChangeRange { after, through, max: max - changes.len() };
            after = self.read_changes(of, &mut changes)?;
        }
        Ok(changes)
    }

    /// Returns the change that the write with this revision made to a key, closed or not. `None` when it is not in the
    /// history.
    pub(crate) fn change(&self, key: &str, revision: Revision) -> Option<Arc<Change>> {
        let divisions = self.divisions();
        let mut changes = Vec::with_capacity(1);
        for division in divisions.iter().rev() {
            let shard = &division.shard_for(key).shard;
            let only = ChangeRange { after: revision.previous(), through: revision, max: 1 };
            if shard.stage().opened().is_some_and(|base| base < revision)
                && shard.log.read().read(only, &mut changes).is_ok()
                && !changes.is_empty()
            {
                break;
            }
        }
        changes.pop()
    }

    /// Returns the changes after a revision of every shard that has or had the key, closed or not.
    ///
    /// # Errors
    /// Fails when the revision is older than the history.
    pub(crate) fn changes_beside(&self, key: &str, after: Revision) -> Result<Vec<Arc<Change>>, Compacted> {
        let divisions = self.divisions();
        let mut changes = Vec::new();
        for division in divisions.iter() {
            let shard = &division.shard_for(key).shard;
            let Some(base) = shard.stage().opened() else { continue };
            if shard.stage().ended().is_none_or(|end| end > after) {
                let after = if std::ptr::eq(division, &divisions[0]) { after } else { after.max(base) };
                let all = ChangeRange { after, through: Revision::LAST, max: usize::MAX };
                shard.log.read().read(all, &mut changes)?;
            }
        }
        Ok(changes)
    }

    /// Appends the changes of a range whose end is closed, as far as a single division has them. Returns the revision
    /// up to which these are all changes.
    pub(crate) fn read_changes(&self, of: ChangeRange, out: &mut Vec<Arc<Change>>) -> Result<Revision, Compacted> {
        let divisions = self.divisions();
        let division = &divisions[division::at(&divisions, of.after)];
        let through = match division.extent() {
            Extent::Ended(end) => of.through.min(end), // the next division has the later ones
            Extent::Closed(_) => of.through,
        };
        division.changes(ChangeRange { through, ..of }, out)
    }

    /// Returns the revision of the last change of any shard, closed or not, or the floor of the history when there is
    /// none.
    pub fn last_change(&self) -> Revision {
        self.current().map(|division| division.last_change()).max().unwrap_or_default()
    }
}
