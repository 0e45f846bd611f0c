//! Bounds how many writes may wait in one group.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::{GROUP_BYTES_MAX, GROUP_WRITES_MAX};

/// Counts the writes of a group that have no outcome yet.
#[derive(Default)]
pub(crate) struct Admission {
    writes: AtomicUsize,
    bytes: AtomicUsize,
}

impl Admission {
    /// Admits a write of this size. Returns `None` when too many writes or bytes are waiting already.
    pub(crate) fn admit(self: &Arc<Admission>, bytes: usize) -> Option<Permit> {
        let permit = Permit { admission: self.clone(), bytes };
        let writes = self.writes.fetch_add(1, Ordering::Relaxed);
        let waiting = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        // A refused permit is dropped here, which subtracts from both counts again.
        (writes < GROUP_WRITES_MAX && waiting < GROUP_BYTES_MAX).then_some(permit)
    }

    /// Returns the number of writes without an outcome.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    /// Returns their size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Counts one write as waiting until it is dropped.
pub(crate) struct Permit {
    admission: Arc<Admission>,
    bytes: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.writes.fetch_sub(1, Ordering::Relaxed);
        self.admission.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_beyond_the_bound_and_recovers() {
        let admission = Arc::new(Admission::default());
        let permits: Vec<_> = (0..GROUP_WRITES_MAX).map(|_| admission.admit(1).unwrap()).collect();
        assert!(admission.admit(1).is_none());
        assert_eq!((admission.writes(), admission.bytes()), (GROUP_WRITES_MAX, GROUP_WRITES_MAX));
        drop(permits);
        assert!(admission.admit(GROUP_BYTES_MAX).is_some());
        assert_eq!((admission.writes(), admission.bytes()), (0, 0));
    }
}
