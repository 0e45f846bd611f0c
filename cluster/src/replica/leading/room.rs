//! Moves leadership away from a replica whose disk has no room for the log to grow, before the first write must be
//! refused; also from one whose disk is too slow for the writes of the groups that it leads.
//!
//! Such a replica goes on voting and following as long as the segment that it writes to has room. Records beyond that
//! wait, and are written once there is room again.

use std::sync::Arc;

use super::placement::Placement;
use crate::limits::{WAL_PATIENCE, WAL_RETRY_INTERVAL, WAL_ROOM_INTERVAL};
use crate::wal::Wal;

/// Keeps this replica from leading while its disk has no room, for as long as the store is open.
pub(crate) async fn follow(wal: Wal, placement: Arc<Placement>) {
    let mut lacks = wal.lacks_room();
    placement.set_full(false); // this may begin again after it failed
    while lacks.wait_for(|lacks| *lacks).await.is_ok() {
        tracing::error!("the disk has no room for the log to grow: handing over leadership; writes may be refused");
        placement.set_full(true);
        let _ = placement.hand_over_all().await; // groups that no other can take yet are tried again
        while *lacks.borrow_and_update() {
            let _ = tokio::time::timeout(WAL_ROOM_INTERVAL, lacks.changed()).await;
            wal.want_room();
        }
        placement.set_full(false);
        tracing::info!("the disk has room for the log again");
    }
}

/// Keeps this replica from leading while its disk is too slow for the writes of the groups that it leads.
pub(crate) async fn keep_pace(wal: Wal, placement: Arc<Placement>) {
    placement.set_slow(false); // this may begin again after it failed
    loop {
        wal.fell_behind().await;
        tokio::time::sleep(WAL_PATIENCE).await;
        if !wal.is_behind() {
            continue;
        }
        tracing::error!("the disk is too slow for the log: handing over leadership; writes wait");
        placement.set_slow(true);
        while wal.is_behind() {
            let _ = placement.hand_over_all().await; // groups that no other can take yet are tried again
            tokio::time::sleep(WAL_RETRY_INTERVAL).await;
        }
        placement.set_slow(false);
        tracing::info!("the disk has caught up with the log");
    }
}
