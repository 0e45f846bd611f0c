//! Closes the groups that subscribers wait for, at a bounded rate.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::Tables;
use crate::Revision;
use crate::clock::GroupClock;
use crate::limits::{CLOSING_INTERVAL, CLOSING_RETRY_INTERVAL};
use crate::shard_map::GroupNumber;
use crate::tasks;

/// Closes each group up to the revision that is wanted ([`GroupClock::wanted`]). Never returns. All groups are asked
/// together, at most once per interval, so that one fsync makes their entries durable.
pub(crate) async fn close_on_demand(tables: Arc<Tables>) {
    let mut closing: BTreeMap<GroupNumber, Rc<Cell<bool>>> = BTreeMap::new();
    loop {
        tables.demands().notified().await;
        for clock in tables.clocks() {
            let wanted = clock.wanted();
            let busy = closing.entry(clock.group_number()).or_default();
            if wanted > clock.closed() && !busy.replace(true) {
                tasks::detached_here("close", close(clock, wanted, busy.clone()));
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
    clock.demand_again(); // there may be a newer demand, or this one failed
}
