//! Room on the stack for deep recursion, since threads that serve requests have small stacks.

/// Bytes of stack that expressions at the bounds of [`crate::limits`] need. Builds without optimization need several
/// times as much.
const FREE_BYTES: usize = if cfg!(debug_assertions) { 4 << 20 } else { 1 << 20 };
/// Bytes of the new stack if less is free.
const MADE_BYTES: usize = 8 << 20;

/// Runs work that recurses as deep as expressions nest: compiling them, evaluating them, walking their results.
/// Allocates a new stack only if the present one has too little room.
pub fn with_room<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(FREE_BYTES, MADE_BYTES, work)
}
