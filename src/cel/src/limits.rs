//! The bounds of expressions. The numbers of Kubernetes' cost model stand with the functions that have the cost.

/// The bounds of the parser.
#[derive(Clone, Copy, Debug)]
pub struct ParserBounds {
    /// How deep rules of the grammar may nest.
    pub depth: u16,
    /// How often the parser continues after a syntax error.
    pub recoveries: u32,
    /// How many tokens the parser skips to continue.
    pub recovery_tokens: u32,
}

/// The default bounds of upstream.
pub const PARSER: ParserBounds = ParserBounds { depth: 250, recoveries: 30, recovery_tokens: 256 };

/// How many characters an expression may have.
pub const CHARACTERS_MAX: usize = 100_000;
/// How many syntax errors are reported.
pub const SYNTAX_ERRORS_MAX: u32 = 100;
/// The deepest nesting of a value that an expression creates from the results of other expressions: that of a body.
/// After the evaluation, these values are walked and dropped recursively.
pub const NESTING_MAX: u32 = 512;
/// The cost limit of one evaluation of a match condition of an authorization webhook, or of an expression of claims.
pub const ACCESS_COST_MAX: u64 = 1_000_000;
/// Largest estimated cost of a selector of devices.
pub const DEVICE_COST_MAX: u64 = 1_000_000;
/// Bytes of a value after which errors show no more of it.
pub const SHOWN_VALUE_BYTES_MAX: usize = 64 << 10;
/// Most items of a range, which costs one for each.
pub const RANGE_ITEMS_MAX: i64 = 1_000_000;
/// Most bytes of a text that a function creates. Costs count the bytes that a function reads, so they do not bound its
/// result.
pub const MADE_TEXT_BYTES_MAX: usize = 64 << 20;
/// Widest column of a formatted number, in characters.
pub const COLUMN_WIDTH_MAX: usize = 1_000_000;
/// Most levels of a schema that are read.
pub const SCHEMA_DEPTH_MAX: usize = 256;
/// Most issues of an expression that are stored; further ones are only counted.
pub const ISSUES_MAX: usize = 100;
/// Longest line of an expression that an issue shows, in bytes.
pub const ISSUE_LINE_BYTES_MAX: usize = 16_384;
/// Bytes of stack that expressions at these bounds need. Builds without optimization need several times as much.
pub const STACK_FREE_BYTES: usize = if cfg!(debug_assertions) { 4 << 20 } else { 1 << 20 };
/// Bytes of the new stack that they get if less is free.
pub const STACK_MADE_BYTES: usize = 8 << 20;
/// Most pairs of values that one comparison visits. Very many places of one value may share its parts, so that a walk
/// can take exponentially many steps; trees of objects have fewer nodes than this.
pub const COMPARED_PAIRS_MAX: u32 = 4_000_000;
/// Above this many entries a created map has an index of its keys.
pub const SCANNED_ENTRIES_MAX: usize = 8;
/// Most bytes of a message that an expression of a rule computes.
pub const RULE_MESSAGE_BYTES_MAX: usize = 5 * 1024;
/// Most bytes of memory for the errors of rules about one object, and likewise for its warnings. Only the last one may
/// go beyond this.
pub const VIOLATIONS_BYTES_MAX: usize = 1 << 20;
