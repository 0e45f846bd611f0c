//! Bounds how many bytes of answers the server produces before clients receive them, per stream and for all streams
//! together.
//!
//! A stream produces the next bytes once its connection has taken the last ones, and holds them until then. When all
//! streams together hold much, each produces less at a time; then many clients that do not read cost little memory. No
//! stream waits for another one: clients that read are at most slower.

mod pieces;

use std::sync::atomic::{AtomicUsize, Ordering};

pub use self::pieces::Pieces;
use crate::limits;

/// Bytes that all streams of this process hold.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Returns how many bytes all streams hold together.
pub fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// The bytes that a stream holds until its client receives them, without those that it shares with the store.
#[derive(Debug, Default)]
pub struct UnsentBytes(usize);

impl UnsentBytes {
    /// Notes how many bytes the stream holds now.
    pub fn hold(&mut self, bytes: usize) {
        if bytes == self.0 {
            return;
        }
        HELD.fetch_add(bytes, Ordering::Relaxed);
        HELD.fetch_sub(self.0, Ordering::Relaxed);
        self.0 = bytes;
    }

    /// Returns how many bytes a stream should produce next: `usual`, or less if all streams together hold too many.
    pub fn portion(usual: usize) -> usize {
        portion(usual, held())
    }
}

impl Drop for UnsentBytes {
    fn drop(&mut self) {
        self.hold(0);
    }
}

fn portion(usual: usize, held: usize) -> usize {
    if held < limits::UNSENT_BYTES { usual } else { limits::UNSENT_CHUNK_BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_shrink_as_more_bytes_are_held() {
        assert_eq!(portion(65_536, 0), 65_536);
        assert_eq!(portion(65_536, limits::UNSENT_BYTES - 1), 65_536);
        assert_eq!(portion(65_536, limits::UNSENT_BYTES), limits::UNSENT_CHUNK_BYTES);
    }

    #[test]
    fn a_dropped_stream_holds_nothing() {
        let before = held();
        let mut unsent = UnsentBytes::default();
        // More than other tests hold at the same time.
        unsent.hold(1 << 40);
        assert!(held() >= before + (1 << 39));
        unsent.hold(7);
        unsent.hold(1 << 40);
        drop(unsent);
        assert!(held() < 1 << 39);
    }
}
