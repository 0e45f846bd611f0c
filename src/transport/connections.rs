//! How many connections there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The connections of a server whose handshake is done.
#[derive(Debug, Clone, Default)]
pub struct Connections(Arc<AtomicUsize>);

/// One of them, for as long as this lives.
#[derive(Debug)]
pub(super) struct Counted(Connections);

impl Connections {
    /// Counts one more.
    pub(super) fn enter(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
