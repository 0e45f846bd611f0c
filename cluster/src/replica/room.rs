//! A disk on which the log cannot grow any more: another replica is to lead before the first write has to be refused.
//!
//! One such replica goes on voting and following as long as the segment that it writes has room. What comes after that
//! waits, and is written when there is room again.

use std::sync::Arc;

use super::balance;
use super::placement::Placement;
use crate::limits::WAL_ROOM_INTERVAL;
use crate::wal::Wal;

/// Keeps this replica from leading while its disk has no room, for as long as the store is open.
pub(crate) async fn follow(wal: Wal, placement: Arc<Placement>) {
    let mut lacks = wal.lacks_room();
    while lacks.wait_for(|lacks| *lacks).await.is_ok() {
        tracing::error!("the disk has no room for the log to grow: others are to lead, and writes may be refused");
        placement.set_full(true);
        let _ = balance::hand_over_all(&placement).await; // what nobody can take yet is tried again there
        while *lacks.borrow_and_update() {
            let _ = tokio::time::timeout(WAL_ROOM_INTERVAL, lacks.changed()).await;
            wal.want_room();
        }
        placement.set_full(false);
        tracing::info!("the disk has room for the log again");
    }
}
