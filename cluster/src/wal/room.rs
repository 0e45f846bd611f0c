//! Reserves room in the log before a batch is proposed, so that an admitted write always finds room.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::record::{ENTRY_HEADER, RECORD_HEADER};
use super::{ALIGNMENT, Shared, Wal};
use crate::limits::{WAL_FRAMES_WAITING_MAX, WAL_HEADROOM_BYTES, WAL_RETRY_INTERVAL};

/// The disk has no room for a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for the write-ahead log")]
pub(crate) struct NoRoom;

/// Room that is reserved in the log until this is dropped.
pub(crate) struct Reservation {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shared.reserved.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// Returns how much room entries with this many bytes take in the log, at most.
fn with_headers(bytes: usize) -> usize {
    bytes + RECORD_HEADER + ENTRY_HEADER + 2 * ALIGNMENT
}

impl Wal {
    /// Reserves room for entries with this many bytes in all. Waits while the next segment is being prepared, and while
    /// the disk is far behind.
    ///
    /// # Errors
    /// Fails when the disk has no room for the next segment, the bytes exceed a segment, or the log is closed.
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
            // An attempt to make room may have begun before this call. The next one decides.
            let made = self.shared.spare.want();
            match *attempts.get_or_insert(made) {
                first if made > first + 1 => return Err(NoRoom),
                _ => tokio::time::sleep(WAL_RETRY_INTERVAL / 100).await,
            }
        }
    }

    /// Returns whether the disk is too slow for the appended records.
    pub(crate) fn is_behind(&self) -> bool {
        let queue = self.shared.queue.lock();
        queue.drafts.len() > WAL_FRAMES_WAITING_MAX && !queue.closing && !queue.failed
    }

    /// Waits until a caller must wait because the disk is too slow.
    pub(crate) async fn fell_behind(&self) {
        self.shared.behind.notified().await;
    }

    /// Returns a receiver of whether the last attempt to make the next segment failed. If it failed, nothing can be
    /// reserved once the active segment is used up.
    pub(crate) fn lacks_room(&self) -> watch::Receiver<bool> {
        self.shared.spare.lacks()
    }

    /// Tries to make the next segment, unless there is one.
    pub(crate) fn want_room(&self) {
        self.shared.spare.want();
    }

    /// Reserves room if everything that is reserved fits into the rest of the active segment, or all of it into the
    /// next segment. Then it does not matter which frame is the first that goes into the next segment. `None` when
    /// there is not enough room.
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

    /// Returns the bytes of a segment that are never reserved.
    fn headroom(&self) -> u64 {
        (WAL_HEADROOM_BYTES as u64).min(self.segment_bytes() / 8)
    }
}
