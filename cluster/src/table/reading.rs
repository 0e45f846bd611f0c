//! What a table shows, now and at revisions that its history reaches back to.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::division;
use super::{Change, Extent, Snapshot, Stretch, Table};
use crate::{Compacted, Object, Revision, SnapshotError, TooLarge};

/// How often a snapshot, or an object of one, is tried again whose revision leaves the history meanwhile.
const SNAPSHOT_ATTEMPTS: usize = 64;

impl Table {
    /// The object as it is now on this replica.
    pub fn get(&self, key: &str) -> Option<Arc<Object>> {
        let divisions = self.divisions.read();
        division::newest(&divisions, key).1.shard.keyspace.read().live(key).cloned()
    }

    /// The latest version of an object on this replica, which may be its deletion, as long as history tells of that.
    pub(crate) fn latest(&self, key: &str) -> Option<Arc<Object>> {
        let divisions = self.divisions.read();
        division::newest(&divisions, key).1.shard.keyspace.read().latest(key).cloned()
    }

    /// The object as lists and watches show it by now: where there are several groups, [`Table::get`] may be a moment
    /// ahead of them.
    pub(crate) fn get_closed(&self, key: &str) -> Option<Arc<Object>> {
        // History reaches back to what is closed, unless that rises meanwhile.
        let tries = (0..SNAPSHOT_ATTEMPTS).find_map(|_| self.get_at(key, self.revision()).ok());
        tries.unwrap_or_else(|| self.get(key))
    }

    /// The object as it was at a revision, which must not be above [`Table::revision`].
    ///
    /// # Errors
    /// The revision is older than the history.
    pub fn get_at(&self, key: &str, revision: Revision) -> Result<Option<Arc<Object>>, Compacted> {
        let divisions = self.divisions();
        let division = &divisions[division::at(&divisions, revision)];
        Ok(division.place(key).shard.keyspace.read().at(key, revision)?.cloned())
    }

    /// The closed revision: everything up to it is visible here, and nothing can be added to that any more. Never
    /// zero, even of an empty table.
    pub fn revision(&self) -> Revision {
        division::front(&self.divisions.read()).1
    }

    /// The oldest revision that can be read, and after which changes can be read.
    pub fn floor(&self) -> Revision {
        let divisions = self.divisions();
        let mut floor = Revision::ZERO;
        for division in divisions.iter() {
            floor = division.floor();
            match division.extent() {
                Extent::Ended(end) if floor > end => {} // nothing is left of it
                Extent::Ended(_) | Extent::Closed(_) => break,
            }
        }
        floor
    }

    /// The oldest revision that clients may name: history reaches back to it, and it was the newest within the history
    /// window. Where nothing has happened for longer, it is after [`Table::revision`].
    pub fn horizon(&self) -> Revision {
        let outdated = self.front().clocks().first().map(|clock| clock.hybrid().outdated());
        outdated.unwrap_or_default().max(self.floor())
    }

    /// Has the groups close soon where what is closed is of a while ago, so that what is told is good for the history
    /// window. Whether that is so anywhere.
    pub fn freshen(&self) -> bool {
        let mut stale = self.clocks();
        stale.retain(|clock| clock.is_stale());
        stale.iter().for_each(|clock| clock.demand(clock.hybrid().now()));
        !stale.is_empty()
    }

    /// Waits until this replica has everything up to `revision`. Does nothing to bring that about: see
    /// [`crate::Store::reach`].
    ///
    /// # Errors
    /// The deadline passed before.
    pub(crate) async fn wait_applied(&self, revision: Revision, deadline: Instant) -> Result<(), TooLarge> {
        let waiting = async {
            loop {
                let turned = self.turned.notified();
                tokio::pin!(turned);
                turned.as_mut().enable(); // before looking
                if self.revision() >= revision {
                    return;
                }
                let front = self.front();
                let closing = join_all(front.clocks().iter().map(|clock| clock.reached(revision)));
                let closed = async {
                    closing.await;
                    if self.revision() < revision {
                        std::future::pending::<()>().await; // the division has ended before, and the next is not open
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

    /// The table as of its closed revision.
    pub fn snapshot(&self) -> Snapshot {
        for _ in 0..SNAPSHOT_ATTEMPTS {
            // The history is trimmed only up to the closed revision, so that this ends.
            if let Ok(snapshot) = self.snapshot_at(self.revision()) {
                return snapshot;
            }
            std::thread::yield_now(); // all tables of a group are being replaced
        }
        // A group is so far behind that others do not have its revision any more: every read will say so.
        let (divisions, revision) = (self.divisions(), self.revision());
        Snapshot::new(revision, divisions[division::at(&divisions, revision)].clone(), Vec::new())
    }

    /// The table as of a revision.
    ///
    /// # Errors
    /// The revision is older than the history or not reached yet.
    pub fn snapshot_at(&self, revision: Revision) -> Result<Snapshot, SnapshotError> {
        self.snapshot_for(revision, self.snapshot_hold)
    }

    /// The table as of a revision, kept readable for at most `hold`.
    ///
    /// # Errors
    /// The revision is older than the history or not reached yet.
    pub(crate) fn snapshot_for(&self, revision: Revision, hold: Duration) -> Result<Snapshot, SnapshotError> {
        let divisions = self.divisions();
        let (_, current) = division::front(&divisions);
        if revision > current {
            return Err(TooLarge { current }.into());
        }
        let division = &divisions[division::at(&divisions, revision)];
        let holds = division.places().iter().map(|place| place.shard.pin(revision, hold));
        let holds = holds.collect::<Result<Vec<_>, _>>()?;
        Ok(Snapshot::new(revision, division.clone(), holds))
    }

    /// Up to `max` changes after a revision, in revision order and no further than [`Table::revision`].
    ///
    /// # Errors
    /// The revision is older than the history.
    pub fn changes(&self, mut after: Revision, max: usize) -> Result<Vec<Arc<Change>>, Compacted> {
        let (mut changes, through) = (Vec::new(), self.revision());
        while after < through && changes.len() < max {
            let of = Stretch { after, through, max: max - changes.len() };
            after = self.read_changes(of, &mut changes)?;
        }
        Ok(changes)
    }

    /// The change that a write of a revision made to a key, while the history has it; closed or not.
    pub(crate) fn change(&self, key: &str, revision: Revision) -> Option<Arc<Change>> {
        let divisions = self.divisions();
        let mut changes = Vec::with_capacity(1);
        for division in divisions.iter().rev() {
            let shard = &division.place(key).shard;
            let only = Stretch { after: revision.previous(), through: revision, max: 1 };
            if shard.stage().opened().is_some_and(|base| base < revision)
                && shard.log.read().read(only, &mut changes).is_ok()
                && !changes.is_empty()
            {
                break;
            }
        }
        changes.pop()
    }

    /// The changes of the shards of a key after a revision, closed or not.
    ///
    /// # Errors
    /// The revision is older than the history.
    pub(crate) fn changes_beside(&self, key: &str, after: Revision) -> Result<Vec<Arc<Change>>, Compacted> {
        let divisions = self.divisions();
        let mut changes = Vec::new();
        for division in divisions.iter() {
            let shard = &division.place(key).shard;
            let Some(base) = shard.stage().opened() else { continue };
            if shard.stage().ended().is_none_or(|end| end > after) {
                let after = if std::ptr::eq(division, &divisions[0]) { after } else { after.max(base) };
                let all = Stretch { after, through: Revision::LAST, max: usize::MAX };
                shard.log.read().read(all, &mut changes)?;
            }
        }
        Ok(changes)
    }

    /// Appends the changes of a stretch whose end is closed, as far as one division of the table has them. The revision
    /// up to which that is all there are.
    pub(crate) fn read_changes(&self, of: Stretch, out: &mut Vec<Arc<Change>>) -> Result<Revision, Compacted> {
        let divisions = self.divisions();
        let division = &divisions[division::at(&divisions, of.after)];
        let through = match division.extent() {
            Extent::Ended(end) => of.through.min(end), // from there on the next one knows
            Extent::Closed(_) => of.through,
        };
        division.changes(Stretch { through, ..of }, out)
    }

    /// The revision of the last change of any shard, closed or not, or the floor of the history when there is none.
    pub fn last_change(&self) -> Revision {
        self.current().map(|division| division.last_change()).max().unwrap_or_default()
    }
}
