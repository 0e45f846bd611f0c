//! Closes groups that subscribers wait for, at a pace.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::Tables;
use crate::Revision;
use crate::clock::GroupClock;
use crate::limits::{CLOSING_INTERVAL, CLOSING_RETRY_INTERVAL};
use crate::shard_map::Slot;

/// Has groups closed as their clocks are asked to, for ever. All of them are asked together and no oftener than once
/// in an interval, so that their entries are made durable by one fsync.
pub(crate) async fn close_on_demand(tables: Arc<Tables>) {
    let mut closing: BTreeMap<Slot, Rc<Cell<bool>>> = BTreeMap::new();
    loop {
        tables.demands().notified().await;
        for clock in tables.clocks() {
            let wanted = clock.wanted();
            let busy = closing.entry(clock.slot()).or_default();
            if wanted > clock.closed() && !busy.replace(true) {
                actix::spawn(close(clock, wanted, busy.clone()));
            }
        }
        tokio::time::sleep(CLOSING_INTERVAL).await;
    }
}

async fn close(clock: Arc<GroupClock>, wanted: Revision, busy: Rc<Cell<bool>>) {
    if let Err(error) = clock.close_to(wanted).await {
        tracing::debug!(group = %clock.name(), %error, "a group that subscribers wait for cannot be closed");
        tokio::time::sleep(CLOSING_RETRY_INTERVAL).await;
    }
    busy.set(false);
    clock.demand_again(); // what was wanted meanwhile, or still is
}
