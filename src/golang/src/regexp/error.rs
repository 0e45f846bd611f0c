//! Errors of patterns.

/// The reason why a pattern is invalid: the fault, and the part of the pattern that has it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {fault}: `{part}`")]
pub struct Error {
    fault: Fault,
    part: String,
}

impl Error {
    pub(super) fn new(fault: Fault, part: &str) -> Self {
        Self { fault, part: part.to_owned() }
    }

    /// Returns the fault.
    pub fn fault(&self) -> Fault {
        self.fault
    }
}

/// An error in a pattern, in Go's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A range that ends before it begins, or a class of an unknown name.
    #[error("invalid character class range")]
    ClassRange,
    /// A `\` before a character that it does not escape.
    #[error("invalid escape sequence")]
    Escape,
    /// An invalid name of a group.
    #[error("invalid named capture")]
    NamedCapture,
    /// A `(?` with a syntax that Go does not have.
    #[error("invalid or unsupported Perl syntax")]
    PerlSyntax,
    /// A repetition right after a repetition.
    #[error("invalid nested repetition operator")]
    NestedRepeat,
    /// A count that is too large or ends before it begins.
    #[error("invalid repeat count")]
    RepeatCount,
    /// A `[` without its `]`.
    #[error("missing closing ]")]
    OpenClass,
    /// A `(` without its `)`.
    #[error("missing closing )")]
    OpenGroup,
    /// A repetition of nothing.
    #[error("missing argument to repetition operator")]
    RepeatOfNothing,
    /// A `\` at the end.
    #[error("trailing backslash at end of expression")]
    TrailingBackslash,
    /// A `)` without its `(`.
    #[error("unexpected )")]
    UnexpectedClose,
    /// More levels than allowed.
    #[error("expression nests too deeply")]
    Depth,
    /// More instructions than allowed.
    #[error("expression too large")]
    Large,
}
