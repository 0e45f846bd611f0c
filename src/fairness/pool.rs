//! The seats of all levels. A level uses seats of its own, and borrows those that other levels lend and do not use.
//!
//! A request takes a seat of its level, or waits in one of the level's queues. A request that ends hands its seat to
//! the next waiting request of its level, or of a level that may borrow the seat. Nothing polls for free seats.
//!
//! Locks are taken in this order: the queues of a level, then lending. The queues of two levels are never locked at the
//! same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::level::Level;
use super::queues::{Number, QueuePosition, Queues};
use super::shares::Limit;
use super::waiting::Waiter;
use crate::limits;

/// The seat of a request. Its holder must give it back by [`Pool::leave`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Seat(Number);

impl Seat {
    /// The seat of a request that did not wait. No queue has this number.
    pub(super) const AT_ONCE: Self = Self(Number::MAX);

    /// Returns the queue through which the request got it. `None` if it did not wait.
    fn queue(self) -> Option<Number> {
        (self != Self::AT_ONCE).then_some(self.0)
    }
}

/// The answer to a request for a seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// The request has a seat.
    Seat(Seat),
    /// The request waits.
    Queued(QueuePosition),
    /// Its queue is full, or too many requests wait in the server.
    QueueFull,
    /// Requests of its level do not wait.
    ConcurrencyLimit,
}

/// All levels.
#[derive(Debug, Default)]
pub struct Pool {
    levels: ArcSwap<Vec<Arc<Level>>>,
    /// Requests that wait, in all levels.
    waiting: AtomicUsize,
    /// Held while a level borrows: two must not borrow the same seat.
    lending: Mutex<()>,
    /// Selects the level to which a lent seat is offered first: each level in turn.
    turn: AtomicUsize,
}

impl Pool {
    /// Replaces the levels. Their limits may have changed: requests that wait get the seats that are free now. A level
    /// that is no longer among them keeps its limits, and at least one seat, for the requests that wait in it.
    pub(super) fn set(&self, levels: Vec<Arc<Level>>) {
        let before = self.levels.swap(Arc::new(levels));
        let now = self.levels.load();
        for level in before.iter().filter(|level| !now.iter().any(|other| Arc::ptr_eq(level, other))) {
            let limit = level.limit();
            level.set_limit(Limit { nominal: limit.nominal.max(1), ..limit });
            self.serve(level);
        }
        now.iter().for_each(|level| self.serve(level));
    }

    /// Returns the levels.
    pub fn levels(&self) -> Arc<Vec<Arc<Level>>> {
        self.levels.load_full()
    }

    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Takes a seat for a request, or lets it wait.
    pub(super) fn enter(&self, level: &Level, hash: u64, waiter: impl FnOnce() -> Waiter) -> Taken {
        if level.take_at_once() {
            return Taken::Seat(Seat::AT_ONCE);
        }
        let mut queues = level.queues.lock();
        if queues.waiting() == 0 && self.take(level) {
            return Taken::Seat(Seat::AT_ONCE);
        }
        if !queues.may_wait() {
            return if level.take_first() { Taken::Seat(Seat::AT_ONCE) } else { Taken::ConcurrencyLimit };
        }
        if self.waiting.load(Ordering::Relaxed) >= limits::WAITING_REQUESTS {
            return Taken::QueueFull;
        }
        let Some(position) = queues.push(hash, waiter()) else { return Taken::QueueFull };
        level.note_waiting(true);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // A request that ended before `note_waiting` did not offer its seat to this one.
        self.hand_out(level, &mut queues, |level| self.take(level));
        Taken::Queued(position)
    }

    /// Gives the seat of a request, which held it for `took`, to the next request of its level. A seat that the level
    /// had borrowed goes to any level that may borrow it.
    pub(super) fn leave(&self, level: &Level, seat: Seat, took: Duration) {
        let at_once = seat.queue().is_none() && level.give_back_at_once();
        if !at_once {
            let mut queues = level.queues.lock();
            level.give_back();
            if let Some(number) = seat.queue() {
                queues.finished(number, took);
            }
            self.hand_out(level, &mut queues, Level::take_own);
        }
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.offer();
        }
    }

    /// Lets a request leave its queue. Returns false if it waits no longer.
    pub(super) fn withdraw(&self, level: &Level, position: QueuePosition) -> bool {
        let mut queues = level.queues.lock();
        let removed = queues.remove(position).is_some();
        if removed {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            level.note_waiting(queues.waiting() > 0);
        }
        removed
    }

    /// Offers a free seat to the levels whose requests wait.
    fn offer(&self) {
        let levels = self.levels.load();
        if levels.is_empty() || self.lent(&levels) <= 0 {
            return;
        }
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % levels.len();
        for level in levels[first..].iter().chain(&levels[..first]).filter(|level| level.has_waiting()) {
            self.serve(level);
        }
    }

    fn serve(&self, level: &Level) {
        self.hand_out(level, &mut level.queues.lock(), |level| self.take(level));
    }

    /// Gives seats to requests that wait in a level, as long as one can be taken.
    fn hand_out(&self, level: &Level, queues: &mut Queues<Waiter>, take: impl Fn(&Level) -> bool) {
        while queues.waiting() > 0 && take(level) {
            let Some((number, waiter)) = queues.next() else { break };
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            if !waiter.seat(Seat(number)) {
                level.give_back();
                queues.finished(number, Duration::ZERO);
            }
        }
        level.note_waiting(queues.waiting() > 0);
    }

    /// Takes a seat of a level, or one that it borrows. The caller holds the lock of the level's queues.
    fn take(&self, level: &Level) -> bool {
        level.take_own() || {
            let _lending = self.lending.lock();
            self.lent(&self.levels.load()) > 0 && level.take_lent()
        }
    }

    /// Returns the seats that levels lend and nobody has borrowed yet. Negative if a level has taken its own seats
    /// while others had borrowed them.
    fn lent(&self, levels: &[Arc<Level>]) -> i64 {
        levels.iter().map(|level| level.balance()).sum()
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
