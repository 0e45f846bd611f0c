//! The oldest readable revision of a shard, and the snapshots that keep it readable.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::{Compacted, Revision};

/// The floor of a shard's history, and the pins of snapshots that keep it from rising.
pub(crate) struct Horizon {
    floor: Revision,
    pins: BTreeMap<(Revision, u64), Instant>,
    pinned: u64,
}

impl Horizon {
    pub(crate) fn new(floor: Revision) -> Horizon {
        Horizon { floor, pins: BTreeMap::new(), pinned: 0 }
    }

    /// Lets the history begin at `floor`, in spite of pins on older revisions.
    pub(crate) fn begin(&mut self, floor: Revision) {
        self.floor = floor;
    }

    /// Starts a new history, in which nothing is pinned. Numbers of pins are never reused, so that an old pin does not
    /// remove a later one.
    pub(crate) fn restart(&mut self, floor: Revision) {
        self.floor = floor;
        self.pins.clear();
    }

    pub(crate) fn floor(&self) -> Revision {
        self.floor
    }

    /// Keeps `revision` readable until it is unpinned, or until `expires`. Fails when it is not readable any more.
    pub(crate) fn pin(&mut self, revision: Revision, expires: Instant) -> Result<Pin, Compacted> {
        if revision < self.floor {
            return Err(Compacted { floor: self.floor });
        }
        self.pinned += 1;
        self.pins.insert((revision, self.pinned), expires);
        Ok(Pin { revision, number: self.pinned })
    }

    pub(crate) fn unpin(&mut self, pin: &Pin) {
        self.pins.remove(&(pin.revision, pin.number));
    }

    /// Raises the floor towards `wanted` as far as the pins allow now. Returns the floor.
    pub(crate) fn raise(&mut self, wanted: Revision, now: Instant) -> Revision {
        self.pins.retain(|_, expires| *expires > now);
        let held = self.pins.first_key_value().map_or(Revision::new(u64::MAX), |((revision, _), _)| *revision);
        self.floor = self.floor.max(wanted.min(held));
        self.floor
    }

    pub(crate) fn pins(&self) -> usize {
        self.pins.len()
    }
}

/// A pin on one revision.
#[derive(Debug)]
pub(crate) struct Pin {
    revision: Revision,
    number: u64,
}
