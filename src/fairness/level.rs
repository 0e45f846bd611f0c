//! A priority level: the number of its requests that hold seats, and the requests that wait for one.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use compact_str::CompactString;
use parking_lot::Mutex;

use super::queues::{Queues, Queuing};
use super::retry_after::RetryAfter;
use super::shares::Limit;
use super::waiting::Waiter;

/// The bit of a level's state that is set while requests wait.
const WAITING: u64 = 1 << 63;

/// A level. It lives as long as requests hold its seats, even if its object was deleted.
#[derive(Debug)]
pub struct Level {
    /// The name of its object.
    pub name: CompactString,
    /// Whether its requests need not wait for seats.
    pub is_exempt: bool,
    nominal: AtomicU32,
    lendable: AtomicU32,
    most: AtomicU32,
    /// The number of seats that are taken, and [`WAITING`]. While requests wait, it changes only under the lock of the
    /// queues.
    state: AtomicU64,
    pub(super) queues: Mutex<Queues<Waiter>>,
    pub(super) retry_after: Mutex<RetryAfter>,
}

impl Level {
    /// Creates a level without seats.
    pub(super) fn new(name: CompactString, is_exempt: bool) -> Self {
        Self {
            name,
            is_exempt,
            nominal: AtomicU32::new(0),
            lendable: AtomicU32::new(0),
            most: AtomicU32::new(0),
            state: AtomicU64::new(0),
            queues: Mutex::default(),
            retry_after: Mutex::default(),
        }
    }

    /// Sets how its requests wait. If `queuing` is `None`, no further requests may wait.
    pub(super) fn set_queuing(&self, queuing: Option<Queuing>) {
        self.queues.lock().configure(queuing);
    }

    /// Sets its limits.
    pub(super) fn set_limit(&self, limit: Limit) {
        self.nominal.store(limit.nominal, Ordering::SeqCst);
        self.lendable.store(limit.lendable, Ordering::SeqCst);
        self.most.store(limit.most, Ordering::SeqCst);
    }

    /// Returns its limits.
    pub fn limit(&self) -> Limit {
        Limit {
            nominal: self.nominal.load(Ordering::SeqCst),
            lendable: self.lendable.load(Ordering::SeqCst),
            most: self.most.load(Ordering::SeqCst),
        }
    }

    /// Returns the number of seats that are taken.
    pub fn executing(&self) -> u32 {
        seats(self.state.load(Ordering::SeqCst))
    }

    /// Returns whether requests wait.
    pub fn has_waiting(&self) -> bool {
        self.state.load(Ordering::SeqCst) & WAITING != 0
    }

    /// Takes one of the level's own seats, unless others wait. This is all that most requests need. Returns whether it
    /// has taken one.
    pub(super) fn take_at_once(&self) -> bool {
        if self.is_exempt {
            self.state.fetch_add(1, Ordering::SeqCst);
            return true;
        }
        let nominal = self.nominal.load(Ordering::Relaxed);
        let next = |state: u64| (state & WAITING == 0 && seats(state) < nominal).then_some(state + 1);
        self.state.fetch_update(Ordering::SeqCst, Ordering::Relaxed, next).is_ok()
    }

    /// Takes one of the level's own seats. The caller holds the lock of the queues.
    pub(super) fn take_own(&self) -> bool {
        let nominal = self.nominal.load(Ordering::SeqCst);
        let next = |state: u64| (seats(state) < nominal).then_some(state + 1);
        self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).is_ok()
    }

    /// Takes a seat if nobody has one: a level without queues admits one request even if it has no seats.
    pub(super) fn take_first(&self) -> bool {
        let next = |state: u64| (seats(state) == 0).then_some(state + 1);
        self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).is_ok()
    }

    /// Takes a seat that other levels lend. The caller holds the lock of lending.
    pub(super) fn take_lent(&self) -> bool {
        let most = self.most.load(Ordering::SeqCst);
        let next = |state: u64| (seats(state) < most).then_some(state + 1);
        self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).is_ok()
    }

    /// Gives a seat back, unless requests wait for it. This is all that most requests need. Returns whether it has
    /// given the seat back.
    pub(super) fn give_back_at_once(&self) -> bool {
        let next = |state: u64| (state & WAITING == 0).then(|| state.saturating_sub(1));
        self.state.fetch_update(Ordering::SeqCst, Ordering::Relaxed, next).is_ok()
    }

    /// Gives a seat back. The caller holds the lock of the queues.
    pub(super) fn give_back(&self) {
        self.state.fetch_sub(1, Ordering::SeqCst);
    }

    /// Records whether requests wait. The caller holds the lock of the queues.
    pub(super) fn note_waiting(&self, waits: bool) {
        match waits {
            true => self.state.fetch_or(WAITING, Ordering::SeqCst),
            false => self.state.fetch_and(!WAITING, Ordering::SeqCst),
        };
    }

    /// Returns the seats that the level lends now, less those that it has borrowed.
    pub(super) fn balance(&self) -> i64 {
        let (limit, executing) = (self.limit(), self.executing());
        match limit.nominal.checked_sub(executing) {
            Some(unused) => i64::from(unused.min(limit.lendable)),
            None => -i64::from(executing - limit.nominal),
        }
    }
}

/// Returns the number of seats in a state.
const fn seats(state: u64) -> u32 {
    (state & 0xffff_ffff) as u32
}
