//! Seats: counts and bounds the requests in progress.
//!
//! Without priority and fairness, reads, writes and watches have a bound each, as in the reference. Members of
//! `system:masters` are exempt from the first two, so that administrators get through to an overloaded server; a far
//! higher bound limits their requests. With priority and fairness, the seats of [levels](crate::fairness) replace the
//! first two, and the level decides who is exempt; here requests are only counted.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::uploads::Uploads;
use crate::limits;

/// The kinds of seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Requests that only read.
    ReadOnly,
    /// Requests that may change something.
    Mutating,
    /// Either kind, of exempt users.
    Exempt {
        /// Whether it may change something.
        mutating: bool,
    },
    /// Watches and other long-running requests.
    Watch,
}

impl Lane {
    /// Returns the lane of a bounded request.
    pub(super) const fn with_an_end(mutating: bool, is_exempt: bool) -> Self {
        match mutating {
            _ if is_exempt => Self::Exempt { mutating },
            true => Self::Mutating,
            false => Self::ReadOnly,
        }
    }
}

/// A number with a bound.
#[derive(Debug)]
struct Bounded {
    now: AtomicUsize,
    most: usize,
}

impl Bounded {
    const fn new(most: usize) -> Self {
        Self { now: AtomicUsize::new(0), most }
    }

    fn enter(&self) -> bool {
        let entered = self.now.fetch_add(1, Ordering::Relaxed) < self.most;
        if !entered {
            self.leave();
        }
        entered
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }

    fn now(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }
}

/// Requests in progress.
#[derive(Debug)]
pub struct Seats {
    read_only: Bounded,
    mutating: Bounded,
    exempt_read_only: Bounded,
    exempt_mutating: Bounded,
    watches: Bounded,
    /// Requests that wait for their bodies.
    pub(super) uploads: Uploads,
    /// The most since the last [`Seats::take_peaks`]: reads, writes.
    peaks: [AtomicUsize; 2],
}

impl Seats {
    /// Returns seats for this many reads and writes of users who are not exempt.
    pub fn new(read_only: usize, mutating: usize) -> Self {
        Self {
            read_only: Bounded::new(read_only),
            mutating: Bounded::new(mutating),
            exempt_read_only: Bounded::new(limits::EXEMPT_REQUESTS),
            exempt_mutating: Bounded::new(limits::EXEMPT_REQUESTS),
            watches: Bounded::new(limits::WATCHES),
            uploads: Uploads::default(),
            peaks: [const { AtomicUsize::new(0) }; 2],
        }
    }

    fn lane(&self, lane: Lane) -> &Bounded {
        match lane {
            Lane::ReadOnly => &self.read_only,
            Lane::Mutating => &self.mutating,
            Lane::Exempt { mutating: false } => &self.exempt_read_only,
            Lane::Exempt { mutating: true } => &self.exempt_mutating,
            Lane::Watch => &self.watches,
        }
    }

    /// Begins a request. Returns false if too many are in progress. Otherwise the caller must call [`Seats::leave`].
    #[must_use]
    pub fn enter(&self, lane: Lane) -> bool {
        if !self.lane(lane).enter() {
            return false;
        }
        self.note_peak(lane);
        true
    }

    /// Begins a request that is bounded elsewhere. The caller must call [`Seats::leave`].
    pub fn join(&self, lane: Lane) {
        self.lane(lane).now.fetch_add(1, Ordering::Relaxed);
        self.note_peak(lane);
    }

    fn note_peak(&self, lane: Lane) {
        if lane != Lane::Watch {
            let mutating = matches!(lane, Lane::Mutating | Lane::Exempt { mutating: true });
            let now = self.in_progress(mutating);
            let peak = &self.peaks[usize::from(mutating)];
            if now > peak.load(Ordering::Relaxed) {
                peak.fetch_max(now, Ordering::Relaxed);
            }
        }
    }

    /// Ends a request.
    pub fn leave(&self, lane: Lane) {
        self.lane(lane).leave();
    }

    /// Returns whether nothing is in progress, not even a watch.
    pub fn is_idle(&self) -> bool {
        self.total() == 0
    }

    /// Returns the number of requests in progress, with watches.
    pub fn total(&self) -> usize {
        self.in_progress(false) + self.in_progress(true) + self.watches.now() + self.uploads.now()
    }

    /// Returns the number of requests in progress that only read, or that may change something.
    pub fn in_progress(&self, mutating: bool) -> usize {
        match mutating {
            false => self.read_only.now() + self.exempt_read_only.now(),
            true => self.mutating.now() + self.exempt_mutating.now(),
        }
    }

    /// Returns the number of open watches and of other long-running requests.
    pub fn watches(&self) -> usize {
        self.watches.now()
    }

    /// Returns the most reads and writes that were in progress at a time since the last call.
    pub fn take_peaks(&self) -> [usize; 2] {
        [false, true].map(|mutating| {
            let peak = self.peaks[usize::from(mutating)].swap(self.in_progress(mutating), Ordering::Relaxed);
            peak.max(self.in_progress(mutating))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_has_its_own_bound() {
        let seats = Seats::new(2, 1);
        assert!(seats.enter(Lane::ReadOnly) && seats.enter(Lane::ReadOnly));
        assert!(!seats.enter(Lane::ReadOnly), "two are the most");
        assert!(seats.enter(Lane::Mutating), "writes do not wait for reads");
        assert!(!seats.enter(Lane::Mutating));
        assert!(seats.enter(Lane::Exempt { mutating: false }) && seats.enter(Lane::Watch));
        seats.leave(Lane::ReadOnly);
        assert!(seats.enter(Lane::ReadOnly), "a request that ends makes room");
        assert_eq!(seats.take_peaks(), [3, 1]);
        seats.leave(Lane::ReadOnly);
        seats.leave(Lane::ReadOnly);
        assert_eq!(seats.take_peaks(), [3, 1], "the most since the last look");
        assert_eq!(seats.take_peaks(), [1, 1]);
        assert!(!seats.is_idle());
        seats.leave(Lane::Exempt { mutating: false });
        seats.leave(Lane::Mutating);
        assert!(!seats.is_idle(), "a watch is open");
        seats.leave(Lane::Watch);
        assert!(seats.is_idle());
    }

    #[test]
    fn watches_are_bounded() {
        let seats = Seats::new(1, 1);
        assert!((0..limits::WATCHES).all(|_| seats.enter(Lane::Watch)));
        assert!(!seats.enter(Lane::Watch));
        seats.leave(Lane::Watch);
        assert!(seats.enter(Lane::Watch));
    }
}
