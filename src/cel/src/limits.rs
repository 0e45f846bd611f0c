//! The bounds of expressions.

/// How deep rules of the grammar may nest.
pub const DEPTH_MAX: u16 = 250;
/// How many characters an expression may have.
pub const CHARACTERS_MAX: usize = 100_000;
/// How often the parser goes on behind a syntax error.
pub const RECOVERIES_MAX: u32 = 30;
/// How many tokens the parser passes over to go on.
pub const RECOVERY_TOKENS_MAX: u32 = 256;
/// How many syntax errors are told.
pub const SYNTAX_ERRORS_MAX: u32 = 100;
