//! Room on the stack for deep recursion, since threads that serve requests have small stacks.

use crate::limits::{STACK_FREE_BYTES, STACK_MADE_BYTES};

/// Runs work that recurses as deep as expressions nest: compiling them, evaluating them, walking their results.
/// Allocates a new stack only if the present one has too little room.
pub fn with_room<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_FREE_BYTES, STACK_MADE_BYTES, work)
}
