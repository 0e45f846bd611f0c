//! What is made of an answer before its client has taken it: how much one stream makes, and all of them together.
//!
//! A stream makes the next bytes when its connection has taken the last ones, and holds them until then. Many streams
//! whose clients do not read hold little together: the more is held, the less each makes at a time. None of them has to
//! wait for others, so that clients that read are slower at most.

mod pieces;

use std::sync::atomic::{AtomicUsize, Ordering};

pub use self::pieces::Pieces;
use crate::limits;

/// Bytes that the streams of this process hold.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes that all streams together hold.
pub fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// The bytes of one stream that its client has not taken. What is shared with the store is not among them.
#[derive(Debug, Default)]
pub struct Ahead(usize);

impl Ahead {
    /// Notes how many bytes the stream holds now.
    pub fn hold(&mut self, bytes: usize) {
        if bytes == self.0 {
            return;
        }
        HELD.fetch_add(bytes, Ordering::Relaxed);
        HELD.fetch_sub(self.0, Ordering::Relaxed);
        self.0 = bytes;
    }

    /// How many bytes the stream is to make next: as many as usual, unless too many are held.
    pub fn portion(usual: usize) -> usize {
        portion(usual, held())
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.hold(0);
    }
}

fn portion(usual: usize, held: usize) -> usize {
    if held < limits::AHEAD_BYTES { usual } else { limits::AHEAD_CHUNK_BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_is_held_the_less_is_made() {
        assert_eq!(portion(65_536, 0), 65_536);
        assert_eq!(portion(65_536, limits::AHEAD_BYTES - 1), 65_536);
        assert_eq!(portion(65_536, limits::AHEAD_BYTES), limits::AHEAD_CHUNK_BYTES);
    }

    #[test]
    fn who_is_gone_holds_nothing() {
        let before = held();
        let mut ahead = Ahead::default();
        // More than other tests hold meanwhile.
        ahead.hold(1 << 40);
        assert!(held() >= before + (1 << 39));
        ahead.hold(7);
        ahead.hold(1 << 40);
        drop(ahead);
        assert!(held() < 1 << 39);
    }
}
