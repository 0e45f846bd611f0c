//! Telling the watchers of a table of its changes: merged from all shards, in revision order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::{Actor, ArbiterHandle, Context, Handler, Message};

use super::{Stretch, Table};
use crate::Revision;
use crate::limits::APPLY_UNDER_LOCK_MAX;

impl Table {
    /// Every subscription that a change up to here concerns knows of it.
    pub(crate) fn announced(&self) -> Revision {
        let closed = self.revision(); // before looking for changes: all up to there are to be seen
        let announced = Revision::new(self.announced.load(Ordering::Acquire));
        // Where there is no change after what was announced, there is nothing to announce.
        if self.last_change() <= announced { announced.max(closed) } else { announced }
    }

    /// Whether there is a change that subscribers may be told of and were not.
    pub(crate) fn has_news(&self) -> bool {
        let announced = Revision::new(self.announced.load(Ordering::Acquire));
        self.last_change() > announced && self.revision() > announced
    }

    /// There may be changes to tell of: has the broadcaster do that, on this thread, if anybody wants to know.
    pub(crate) fn tell(self: &Arc<Table>, thread: &ArbiterHandle) {
        let closed = self.revision();
        let subscribed = self.subscribers.unless_any(|| {
            self.announced.fetch_max(closed.get(), Ordering::AcqRel);
        });
        if !subscribed || self.telling.swap(true, Ordering::AcqRel) {
            return; // one message stands for any number of changes
        }
        let start = || Broadcaster::start_in_arbiter(thread, |_| Broadcaster);
        self.broadcaster.get_or_init(start).do_send(Announce { table: self.clone() });
    }

    /// Wakes the subscriptions that changes up to the closed revision concern, and has the groups that hold that back
    /// close.
    pub(crate) fn announce(&self) {
        self.telling.store(false, Ordering::Release);
        let closed = self.revision();
        let mut changes = Vec::new();
        loop {
            let announced = Revision::new(self.announced.load(Ordering::Acquire));
            if announced >= closed {
                break;
            }
            changes.clear();
            let of = Stretch { after: announced, through: closed, max: APPLY_UNDER_LOCK_MAX };
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

    /// Has those groups close that keep changes of others from being seen.
    pub(crate) fn demand(&self) {
        if self.is_spread() {
            let last = self.last_change();
            self.clocks().iter().for_each(|clock| clock.demand(last));
        }
    }
}

/// Turns the change logs of a table into wake-ups of the watchers that want each change.
pub(super) struct Broadcaster;

impl Actor for Broadcaster {
    type Context = Context<Broadcaster>;
}

/// There are changes to tell of.
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
