//! Notifies the watchers of a table of its changes, merged from all shards in revision order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::{Actor, ArbiterHandle, Context, Handler, Message};

use super::Table;
use crate::Revision;
use crate::change::ChangeRange;
use crate::limits::APPLY_UNDER_LOCK_MAX;

impl Table {
    /// Returns the revision up to which every subscription knows of the changes that concern it.
    pub(crate) fn announced(&self) -> Revision {
        let closed = self.revision(); // read before `last_change`, so that no change up to it is missed
        let announced = Revision::new(self.announced.load(Ordering::Acquire));
        // Without a change after the announced revision there is nothing to announce.
        if self.last_change() <= announced { announced.max(closed) } else { announced }
    }

    /// Returns whether subscribers can be told of a change that they do not know yet.
    pub(crate) fn has_news(&self) -> bool {
        let announced = Revision::new(self.announced.load(Ordering::Acquire));
        self.last_change() > announced && self.revision() > announced
    }

    /// Makes the broadcaster look for changes, on this thread, if there are subscribers.
    pub(crate) fn notify_subscribers(self: &Arc<Table>, thread: &ArbiterHandle) {
        let closed = self.revision();
        let subscribed = self.subscribers.unless_any(|| {
            self.announced.fetch_max(closed.get(), Ordering::AcqRel);
        });
        if !subscribed || self.notification_pending.swap(true, Ordering::AcqRel) {
            return; // one message covers any number of changes
        }
        let start = || Broadcaster::start_in_arbiter(thread, |_| Broadcaster);
        self.broadcaster.get_or_init(start).do_send(Announce { table: self.clone() });
    }

    /// Wakes the subscriptions that changes up to the closed revision concern. Asks the groups that hold this revision
    /// back to close.
    pub(crate) fn announce(&self) {
        self.notification_pending.store(false, Ordering::Release);
        let closed = self.revision();
        let mut changes = Vec::new();
        loop {
            let announced = Revision::new(self.announced.load(Ordering::Acquire));
            if announced >= closed {
                break;
            }
            changes.clear();
            let of = ChangeRange { after: announced, through: closed, max: APPLY_UNDER_LOCK_MAX };
            let read = self.read_changes(of, &mut changes);
            let through = read.unwrap_or_else(|_| {
                self.subscribers.wake_all(closed);
                closed
            });
            self.subscribers.wake(&changes);
            self.announced.fetch_max(through.get(), Ordering::AcqRel);
        }
        self.demand();
    }

    /// Asks the groups that keep changes of other groups invisible to close.
    pub(crate) fn demand(&self) {
        if self.is_spread() {
            let last = self.last_change();
            self.clocks().iter().for_each(|clock| clock.demand(last));
        }
    }
}

/// The actor that wakes the watchers of a table.
pub(super) struct Broadcaster;

impl Actor for Broadcaster {
    type Context = Context<Broadcaster>;
}

/// Asks the broadcaster to announce a table's changes.
pub(super) struct Announce {
    table: Arc<Table>,
}

impl Message for Announce {
    type Result = ();
}

impl Handler<Announce> for Broadcaster {
    type Result = ();

    fn handle(&mut self, announce: Announce, _: &mut Context<Broadcaster>) {
        announce.table.announce();
    }
}
