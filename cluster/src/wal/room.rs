//! Room in the log: what is to be proposed has it set aside before, so that whatever was let in finds its place.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::record::{ENTRY_HEADER, RECORD_HEADER};
use super::{ALIGNMENT, Shared, Wal};
use crate::limits::{WAL_FRAMES_WAITING_MAX, WAL_HEADROOM_BYTES, WAL_RETRY_INTERVAL};

/// The disk has no room for what was to be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for the write-ahead log")]
pub(crate) struct NoRoom;

/// Room that is set aside in the log, until dropped.
pub(crate) struct Reservation {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shared.reserved.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// What an entry of these bytes takes in the log at most.
fn with_headers(bytes: usize) -> usize {
    bytes + RECORD_HEADER + ENTRY_HEADER + 2 * ALIGNMENT
}

impl Wal {
    /// Sets room aside for entries of these bytes in all. Waits while the next segment is being made ready, and as long
    /// as the disk is far behind.
    ///
    /// # Errors
    /// The disk has no room for the next segment, no segment has so much, or the log is closed.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<Reservation, NoRoom> {
        if with_headers(bytes) as u64 + self.headroom() > self.segment_bytes() {
            return Err(NoRoom);
        }
        let mut attempts = None;
        while self.is_behind() {
            self.shared.behind.notify_one();
            tokio::time::sleep(WAL_RETRY_INTERVAL / 100).await;
        }
        loop {
            if let Some(reservation) = self.try_reserve(bytes) {
                return Ok(reservation);
            }
            // One attempt to make room, begun after this write came, decides.
            let made = self.shared.spare.want();
            match *attempts.get_or_insert(made) {
                first if made > first + 1 => return Err(NoRoom),
                _ => tokio::time::sleep(WAL_RETRY_INTERVAL / 100).await,
            }
        }
    }

    /// Whether the disk is too slow for what is appended.
    pub(crate) fn is_behind(&self) -> bool {
        let queue = self.shared.queue.lock();
        queue.drafts.len() > WAL_FRAMES_WAITING_MAX && !queue.closing && !queue.failed
    }

    /// Waits until somebody has to wait because the disk is too slow.
    pub(crate) async fn fell_behind(&self) {
        self.shared.behind.notified().await;
    }

    /// Whether the disk had no room for the next segment when one was to be made last: when what is left of the active
    /// one is used up, nothing can be reserved any more.
    pub(crate) fn lacks_room(&self) -> watch::Receiver<bool> {
        self.shared.spare.lacks()
    }

    /// Tries to make the next segment, unless there is one.
    pub(crate) fn want_room(&self) {
        self.shared.spare.want();
    }

    /// Everything reserved fits into what is left of the active segment; or else all of it fits into the next,
    /// wherever the first frame that does not fit into this one falls.
    fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let shared = &self.shared;
        let bytes = with_headers(bytes);
        let reserved = shared.reserved.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let reservation = Reservation { shared: shared.clone(), bytes };
        let size = shared.options.segment_bytes;
        let spare = if shared.spare.is_ready() { size } else { 0 };
        let room = shared.active_left.load(Ordering::Acquire).max(spare);
        (reserved as u64 + self.headroom() <= room).then_some(reservation)
    }

    /// Bytes of a segment that are never reserved.
    fn headroom(&self) -> u64 {
        (WAL_HEADROOM_BYTES as u64).min(self.segment_bytes() / 8)
    }
}
