//! Room on the stack for what nests deep: threads that serve requests have little.

/// Bytes that expressions at the bounds of [`crate::limits`] take. Builds without optimization take several times as
/// much.
const FREE_BYTES: usize = if cfg!(debug_assertions) { 4 << 20 } else { 1 << 20 };
/// Bytes of the stack that is made where less is free.
const MADE_BYTES: usize = 8 << 20;

/// Does work that may nest as deep as expressions do: compiling them, evaluating them, walking what they made. Where
/// the stack has room it costs a look at that.
pub fn with_room<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(FREE_BYTES, MADE_BYTES, work)
}
