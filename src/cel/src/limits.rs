//! The bounds of expressions.

/// What bounds the parser.
#[derive(Clone, Copy, Debug)]
pub struct ParserBounds {
    /// How deep rules of the grammar may nest.
    pub depth: u16,
    /// How often the parser goes on behind a syntax error.
    pub recoveries: u32,
    /// How many tokens the parser passes over to go on.
    pub recovery_tokens: u32,
}

/// The bounds that upstream has unless told otherwise.
pub const PARSER: ParserBounds = ParserBounds { depth: 250, recoveries: 30, recovery_tokens: 256 };

/// How many characters an expression may have.
pub const CHARACTERS_MAX: usize = 100_000;
/// How many syntax errors are told.
pub const SYNTAX_ERRORS_MAX: u32 = 100;
/// How deep values may nest that one expression makes of what others made: as deep as a body. Where it ends, values are
/// walked and dropped by recursion.
pub const NESTING_MAX: u32 = 512;
