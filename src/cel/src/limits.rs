//! The bounds of expressions.

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
/// How deep a value may nest that an expression creates from the results of other expressions: as deep as a body. After
/// the evaluation, such values are walked and dropped recursively.
pub const NESTING_MAX: u32 = 512;
