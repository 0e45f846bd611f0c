//! A watcher's position in a change log.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Table;
use crate::change::ChangeRange;
use crate::limits::{CHANGES_PER_READ_MAX, CHANGES_UNDER_LOCK_MAX};
use crate::watch::{Interest, Signal};
use crate::{Change, Compacted, Revision};

/// Follows the changes of a table that concern an interest. It is a cursor, never a queue.
///
/// A slow subscriber costs no memory but its position. It loses the position only when the history has been trimmed
/// past a change that it has not read, so one that no change concerns never loses it.
pub struct Subscription {
    table: Arc<Table>,
    signal: Arc<Signal>,
    number: u64,
    position: Revision,
    /// The table's age when this subscription began: see [`Table::age`].
    age: u64,
}

impl Subscription {
    pub(crate) fn new(table: Arc<Table>, interest: Interest, after: Revision) -> Result<Subscription, Compacted> {
        let age = table.age();
        let after = if seeded!(WatchSkipsAtResume) { after.max(table.revision()) } else { after };
        let signal = Arc::new(Signal::new(interest, None));
        let number = table.subscribers.insert(signal.clone());
        let subscription = Subscription { table, signal, number, position: after, age };
        let table = &subscription.table;
        let floor = table.floor();
        if after < floor {
            return Err(Compacted { floor });
        }
        // From here on the broadcaster announces changes that become closed. Changes that are closed already are marked
        // as unread here.
        let closed = table.revision();
        if closed > after && table.last_change() > after {
            subscription.signal.mark(after.next(), closed);
        }
        // Groups may have been asked to close when there was no subscription yet, and are asked again.
        table.demand();
        Ok(subscription)
    }

    /// Waits until [`Subscription::read`] may return something.
    pub async fn changed(&mut self) {
        poll_fn(|cx| self.poll_changed(cx)).await;
    }

    /// Returns ready when [`Subscription::read`] may return something; otherwise wakes the task once it may. Only the
    /// task that polled last is woken.
    pub fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.signal.poll_pending(cx)
    }

    /// Returns whether [`Subscription::read`] may return something now.
    pub fn has_changed(&self) -> bool {
        self.signal.pending().is_some()
    }

    /// Appends the next changes that concern the interest, at most `max`, in revision order. Returns false when nothing
    /// is left to read for now.
    ///
    /// # Errors
    /// Fails when the history has been trimmed past a change that was not read, or when the table's closed revision
    /// went back after the subscription began.
    pub fn read(&mut self, max: usize, out: &mut Vec<Arc<Change>>) -> Result<bool, Compacted> {
        let Some((first, last)) = self.signal.pending() else { return Ok(false) };
        if self.table.age() != self.age {
            return Err(Compacted { floor: self.table.floor() });
        }
        let mut position = self.position.max(first.previous());
        let (start, mut examined) = (out.len(), 0);
        while position < last && out.len() - start < max && examined < CHANGES_PER_READ_MAX {
            let from = out.len();
            let wanted = CHANGES_UNDER_LOCK_MAX.min(max - (from - start));
            let of = ChangeRange { after: position, through: last, max: wanted };
            position = self.table.read_changes(of, out)?;
            examined += out.len() - from;
            let mut known = from;
            out.retain(|change| {
                let is_before = known > 0;
                known -= usize::from(is_before);
                is_before || self.signal.interest().concerns(change)
            });
        }
        self.position = position;
        self.signal.advance(position);
        Ok(self.signal.pending().is_some())
    }

    /// Returns to an earlier position: `through` must be the revision of one of the changes read last, and those after
    /// it are read again.
    pub fn give_back(&mut self, through: Revision) {
        if through < self.position {
            let read = std::mem::replace(&mut self.position, through);
            self.signal.mark(through.next(), read);
        }
    }

    /// Returns the revision up to which every change that concerns the interest has been read. A bookmark may contain
    /// it.
    pub fn position(&self) -> Revision {
        let announced = self.table.announced(); // read before `pending`, so that no change is missed
        match self.signal.pending() {
            None => self.position.max(announced),
            Some(_) if seeded!(BookmarkAhead) => self.table.revision(),
            Some((first, _)) => self.position.max(first.previous().min(announced)),
        }
    }

    /// Returns the table that is followed.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.table.subscribers.remove(self.number, self.signal.interest());
    }
}
