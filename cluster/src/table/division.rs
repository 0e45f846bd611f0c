//! One division of a table into shards, and the order in which divisions are read.

use std::sync::Arc;

use super::merge;
use super::shard::Shard;
use crate::change::ChangeRange;
use crate::clock::GroupClock;
use crate::shard_map::{Epoch, shard_of, takes_writes};
use crate::{Change, Compacted, Revision};

/// A shard and the clock of its group.
pub(crate) struct PlacedShard {
    pub(crate) shard: Arc<Shard>,
    pub(crate) clock: Arc<GroupClock>,
}

/// A division of a table into shards: a past one, the present one, or the next one.
pub(crate) struct Division {
    epoch: Epoch,
    shards: Box<[PlacedShard]>,
    /// The clocks of its groups, each once.
    clocks: Box<[Arc<GroupClock>]>,
}

/// The revision up to which a division can be read on this replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The division takes writes, and is closed up to this revision.
    Closed(Revision),
    /// The division takes no more writes, and has no change after this revision.
    Ended(Revision),
}

impl Division {
    pub(crate) fn new(epoch: Epoch, shards: Vec<PlacedShard>) -> Division {
        let mut clocks: Vec<Arc<GroupClock>> = shards.iter().map(|placed| placed.clock.clone()).collect();
        clocks.sort_by_key(|clock| clock.group_number());
        clocks.dedup_by_key(|clock| clock.group_number());
        Division { epoch, shards: shards.into(), clocks: clocks.into() }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn shards(&self) -> &[PlacedShard] {
        &self.shards
    }

    pub(crate) fn clocks(&self) -> &[Arc<GroupClock>] {
        &self.clocks
    }

    /// Returns the number of the shard that a key belongs to.
    pub(crate) fn number_of(&self, key: &str) -> u16 {
        shard_of(key, self.shards.len()) as u16
    }

    /// Returns the shard that a key belongs to, with the clock of its group.
    pub(crate) fn shard_for(&self, key: &str) -> &PlacedShard {
        &self.shards[shard_of(key, self.shards.len())]
    }

    /// Returns whether all shards have been opened for writes.
    pub(crate) fn is_open(&self) -> bool {
        self.shards.iter().all(|placed| placed.shard.stage().opened().is_some())
    }

    /// Returns the revision above which the division takes writes; `None` until all shards have been opened.
    pub(crate) fn base(&self) -> Option<Revision> {
        self.shards
            .iter()
            .map(|placed| placed.shard.stage().opened())
            .try_fold(Revision::ZERO, |base, opened| opened.map(|opened| base.max(opened)))
    }

    /// Returns the revision up to which the division can be read.
    ///
    /// A shard that has ended adds nothing more, so the clock of its group does not matter. While another shard still
    /// takes writes, that one will end above the revision up to which its own group is closed.
    pub(crate) fn extent(&self) -> Extent {
        let (mut closed, mut end, mut base): (Option<Revision>, _, _) = (None, Revision::ZERO, Revision::ZERO);
        for placed in &self.shards {
            let of_group = placed.clock.closed(); // before the stage: the group closes further once the shard has ended
            let stage = placed.shard.stage();
            base = base.max(stage.opened().unwrap_or_default());
            match stage.ended() {
                Some(ended) => end = end.max(ended),
                None if seeded!(SkippedClosedRevision) => closed = closed.max(Some(of_group)),
                None => closed = Some(closed.map_or(of_group, |closed| closed.min(of_group))),
            }
        }
        match closed {
            // A later division contains everything up to the revision at which it was opened, whatever its groups have
            // closed.
            Some(closed) if !takes_writes(self.epoch) => Extent::Closed(closed.max(base)),
            Some(closed) => Extent::Closed(closed),
            None => Extent::Ended(end),
        }
    }

    /// Appends the changes of a range whose end is closed, at least one if there is any. Returns the revision up to
    /// which these are all changes.
    pub(crate) fn changes(&self, of: ChangeRange, out: &mut Vec<Arc<Change>>) -> Result<Revision, Compacted> {
        merge::changes(&self.shards, of, out)
    }

    /// Returns the oldest revision that can be read, and from which changes can be followed.
    pub(crate) fn floor(&self) -> Revision {
        self.shards.iter().map(|placed| placed.shard.floor()).max().unwrap_or_default()
    }

    /// Returns the revision of the last change of any shard, closed or not.
    pub(crate) fn last_change(&self) -> Revision {
        self.shards.iter().map(|placed| placed.shard.last_change()).max().unwrap_or_default()
    }
}

/// The divisions of a table, oldest first; at least one. All shards of every division but the last are open.
pub(crate) type Divisions = Arc<[Arc<Division>]>;

/// Returns the index of the division that has the newest readable state of a table here, and the revision up to which
/// it can be read.
pub(crate) fn front(divisions: &[Arc<Division>]) -> (usize, Revision) {
    let mut last = (0, Revision::ZERO);
    for (number, division) in divisions.iter().enumerate() {
        if number > 0 && !division.is_open() {
            return last;
        }
        match division.extent() {
            Extent::Closed(closed) => return (number, closed),
            Extent::Ended(end) => last = (number, end),
        }
    }
    last
}

/// Returns the division and the shard in which a key is written now: the newest division whose shard of the key is
/// open.
pub(crate) fn newest<'a>(divisions: &'a [Arc<Division>], key: &str) -> (&'a Division, &'a PlacedShard) {
    let open = divisions.iter().rev().map(|division| (&**division, division.shard_for(key)));
    let newest = open.clone().find(|(_, placed)| placed.shard.stage().opened().is_some());
    newest.unwrap_or_else(|| (&divisions[0], divisions[0].shard_for(key)))
}

/// Returns the index of the division in which a revision is read: the newest that begins at it or before.
pub(crate) fn at(divisions: &[Arc<Division>], revision: Revision) -> usize {
    let begins = |division: &Arc<Division>| division.base().is_some_and(|base| base <= revision);
    divisions.iter().rposition(begins).unwrap_or(0)
}
