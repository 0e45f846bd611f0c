//! Identifies connections.

use std::sync::atomic::{AtomicU64, Ordering};

/// Identifies the connection of a request within this process. Requests without a connection share the default value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(u64);

impl ConnectionId {
    /// Returns an id that no other connection has.
    pub fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
