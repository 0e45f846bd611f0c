//! Bounds how many writes may wait in one group.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::{GROUP_BYTES_MAX, GROUP_WRITES_MAX};

/// Counts the writes of a group that have no outcome yet.
#[derive(Default)]
pub(crate) struct WaitingWrites {
    count: AtomicUsize,
    bytes: AtomicUsize,
}

impl WaitingWrites {
    /// Counts a write of this size. Returns `None` when too many writes or bytes are waiting already.
    pub(crate) fn add(self: &Arc<WaitingWrites>, bytes: usize) -> Option<WaitingWrite> {
        let write = WaitingWrite { waiting_writes: self.clone(), bytes };
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let waiting = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        // A refused write is dropped here, which subtracts from both counts again.
        (count < GROUP_WRITES_MAX && waiting < GROUP_BYTES_MAX).then_some(write)
    }

    /// Returns the number of writes without an outcome.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns their size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Counts one write as waiting until it is dropped.
pub(crate) struct WaitingWrite {
    waiting_writes: Arc<WaitingWrites>,
    bytes: usize,
}

impl Drop for WaitingWrite {
    fn drop(&mut self) {
        self.waiting_writes.count.fetch_sub(1, Ordering::Relaxed);
        self.waiting_writes.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_writes_are_refused_beyond_the_bound() {
        let waiting_writes = Arc::new(WaitingWrites::default());
        let waiting: Vec<_> = (0..GROUP_WRITES_MAX).map(|_| waiting_writes.add(1).unwrap()).collect();
        assert!(waiting_writes.add(1).is_none());
        assert_eq!((waiting_writes.count(), waiting_writes.bytes()), (GROUP_WRITES_MAX, GROUP_WRITES_MAX));
        drop(waiting);
        assert!(waiting_writes.add(GROUP_BYTES_MAX).is_some());
        assert_eq!((waiting_writes.count(), waiting_writes.bytes()), (0, 0));
    }
}
