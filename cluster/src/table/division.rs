//! One division of a table into shards, and where reading passes from one to the next.

use std::sync::Arc;

use super::log::Stretch;
use super::merge;
use super::shard::Shard;
use crate::clock::GroupClock;
use crate::shard_map::{Epoch, shard_of, takes_writes};
use crate::{Change, Compacted, Revision};

/// A shard and the clock of its group.
pub(crate) struct Place {
    pub(crate) shard: Arc<Shard>,
    pub(crate) clock: Arc<GroupClock>,
}

/// How a table is divided, or was, or is about to be.
pub(crate) struct Division {
    epoch: Epoch,
    places: Box<[Place]>,
    /// The clocks of its groups, each once.
    clocks: Box<[Arc<GroupClock>]>,
}

/// Up to where a division can be read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// It takes writes, and nothing is added up to here any more.
    Closed(Revision),
    /// It takes no writes any more, and has nothing after this revision.
    Ended(Revision),
}

impl Division {
    pub(crate) fn new(epoch: Epoch, places: Vec<Place>) -> Division {
        let mut clocks: Vec<Arc<GroupClock>> = places.iter().map(|place| place.clock.clone()).collect();
        clocks.sort_by_key(|clock| clock.slot());
        clocks.dedup_by_key(|clock| clock.slot());
        Division { epoch, places: places.into(), clocks: clocks.into() }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    pub(crate) fn clocks(&self) -> &[Arc<GroupClock>] {
        &self.clocks
    }

    /// The number of the shard that a key belongs to.
    pub(crate) fn number_of(&self, key: &str) -> u16 {
        shard_of(key, self.places.len()) as u16
    }

    /// Where a key belongs to.
    pub(crate) fn place(&self, key: &str) -> &Place {
        &self.places[shard_of(key, self.places.len())]
    }

    /// Whether all of its shards take writes, or did.
    pub(crate) fn is_open(&self) -> bool {
        self.places.iter().all(|place| place.shard.stage().opened().is_some())
    }

    /// The revision above which it takes writes, once it does.
    pub(crate) fn base(&self) -> Option<Revision> {
        self.places
            .iter()
            .map(|place| place.shard.stage().opened())
            .try_fold(Revision::ZERO, |base, opened| opened.map(|opened| base.max(opened)))
    }

    /// Up to where it can be read.
    ///
    /// A shard that has ended has nothing to add, however far its group is closed; as long as another one takes writes,
    /// that one will end above where its group is closed.
    pub(crate) fn extent(&self) -> Extent {
        let (mut closed, mut end, mut base): (Option<Revision>, _, _) = (None, Revision::ZERO, Revision::ZERO);
        for place in &self.places {
            let of_group = place.clock.closed(); // before looking: the group closes further after the shard has ended
            let stage = place.shard.stage();
            base = base.max(stage.opened().unwrap_or_default());
            match stage.ended() {
                Some(ended) => end = end.max(ended),
                None if seeded!(SkippedClosedRevision) => closed = closed.max(Some(of_group)),
                None => closed = Some(closed.map_or(of_group, |closed| closed.min(of_group))),
            }
        }
        match closed {
            // What a later division was filled with is all up to where it was opened, however far its groups are.
            Some(closed) if !takes_writes(self.epoch) => Extent::Closed(closed.max(base)),
            Some(closed) => Extent::Closed(closed),
            None => Extent::Ended(end),
        }
    }

    /// Appends the changes of a stretch whose end is closed, at least one if there is any. The revision up to which
    /// that is all there are.
    pub(crate) fn changes(&self, of: Stretch, out: &mut Vec<Arc<Change>>) -> Result<Revision, Compacted> {
        merge::changes(&self.places, of, out)
    }

    /// The oldest revision that can be read, and after which changes can be read.
    pub(crate) fn floor(&self) -> Revision {
        self.places.iter().map(|place| place.shard.floor()).max().unwrap_or_default()
    }

    /// The revision of the last change of any shard, closed or not.
    pub(crate) fn last_change(&self) -> Revision {
        self.places.iter().map(|place| place.shard.last_change()).max().unwrap_or_default()
    }
}

/// The divisions of a table, oldest first. There is at least one, of which all shards are open; only the last may not
/// be.
pub(crate) type Divisions = Arc<[Arc<Division>]>;

/// The division that shows the newest of a table here, its place among the others, and up to where it can be read.
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

/// The place where a key is written to, and its division: the newest of which that shard is open.
pub(crate) fn newest<'a>(divisions: &'a [Arc<Division>], key: &str) -> (&'a Division, &'a Place) {
    let open = divisions.iter().rev().map(|division| (&**division, division.place(key)));
    let newest = open.clone().find(|(_, place)| place.shard.stage().opened().is_some());
    newest.unwrap_or_else(|| (&divisions[0], divisions[0].place(key)))
}

/// The division that knows a revision: the newest that begins there or before.
pub(crate) fn at(divisions: &[Arc<Division>], revision: Revision) -> usize {
    let begins = |division: &Arc<Division>| division.base().is_some_and(|base| base <= revision);
    divisions.iter().rposition(begins).unwrap_or(0)
}
