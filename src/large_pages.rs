//! Keeps the system from giving the process memory in pages of 2 MiB.
//!
//! The allocator asks for such pages wherever it can. The unused part of each stays allocated, and clearing, compacting
//! and moving them makes the start of a large store take up to twice as long (`docs/decisions/opening.md`).

/// Disables large pages for the process (prctl(2), `PR_SET_THP_DISABLE`). A process calls this first.
pub fn disable() {
    let _ = rustix::thread::disable_transparent_huge_pages(true); // fails only where there are none
}
