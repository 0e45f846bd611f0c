//! Every limit of this crate, in one place.

/// Most copies of a part that nested repetition counts of a pattern may demand together, as in Go.
pub const REPEAT_MAX: u32 = 1_000;
/// Most levels of a pattern's tree, as in Go.
pub const HEIGHT_MAX: u32 = 1_000;
/// Most instructions of a compiled pattern, as in Go.
pub const INSTRUCTIONS_MAX: u64 = 3_355_443;
/// Most bytes that a compiled pattern may take.
pub const COMPILED_BYTES_MAX: usize = 32 << 20;
/// Levels of a pattern's tree above which it is compiled on a thread of its own with a stack of [`DEEP_STACK_BYTES`].
pub const SHALLOW_HEIGHT_MAX: u32 = 100;
/// Stack of a thread that compiles a deep pattern.
pub const DEEP_STACK_BYTES: usize = 64 << 20;
/// Most parameters of a URL's query, as in Go.
pub const QUERY_PARAMETERS_MAX: usize = 10_000;
