//! The limits of this crate's own work, with the unit as the last word of each name. Those of the server are in its
//! module `limits`, which names the limits that stand elsewhere.

/// Bytes of a request body, as in the reference: 3 MiB. A larger body gets 413.
pub const BODY_BYTES: usize = 3_145_728;

/// Bytes of memory for the errors of one object, with their paths and values. The message and the causes of the answer
/// have about this size each. The reference has no such bound.
pub const ERROR_BYTES: usize = 1 << 20;

/// Operations of one JSON patch; more get 413.
pub const JSON_PATCH_OPERATIONS: usize = 10_000;

/// Bytes of JSON that all `copy` operations of a JSON patch may copy, so that a small patch cannot make a huge object.
pub const JSON_PATCH_COPIED_BYTES: usize = 3 << 20;

/// Values that the operations of a JSON patch may move within lists, or visit one by one. Bounds the time of a patch,
/// as each operation could otherwise move a list of a million items.
pub const JSON_PATCH_MOVED_VALUES: usize = 32 << 20;

/// Characters of all warnings of an answer, as in the reference. If there are more, each warning is shortened to
/// [`WARNING_CHARACTERS`], and those that still do not fit are dropped.
pub const WARNINGS_CHARACTERS: usize = 4_096;

/// Different warnings about pairs of items in a pod. Further ones would not fit into an answer.
pub const WARNINGS: usize = WARNINGS_CHARACTERS;

/// Characters to which a warning is shortened if all together have more than [`WARNINGS_CHARACTERS`].
pub const WARNING_CHARACTERS: usize = 256;

/// Most values that a step of a JSONPath may lead to: paths with a wildcard at every step would otherwise multiply them
/// without bound.
pub const JSONPATH_VALUES_MAX: usize = 100_000;

/// How deep filters and unions of a JSONPath may nest.
pub const JSONPATH_DEPTH_MAX: usize = 16;

/// How deep the type of a variable of a policy may nest. Variables can build on each other, and types are walked by
/// recursion.
pub const VARIABLE_TYPE_LEVELS: usize = 64;

/// How many levels the variables of a policy may depend on each other.
pub const VARIABLE_LEVELS: u32 = 100;
