//! The JSONPath of kubectl and of custom resources' columns (kubernetes.io "JSONPath Support"), for one expression:
//! `.spec.list[?(@.name=="a")].value`.
//!
//! It differs from RFC 9535 in its syntax, and in that type errors make the whole expression fail.

mod eval;
mod parse;

use flotilla_proto::value::Float;

/// The reason why a text is not a valid path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A bracket, quote or filter is not closed.
    #[error("unterminated {0}")]
    Unterminated(&'static str),
    /// A line ends before the expression.
    #[error("unclosed action")]
    Unclosed,
    /// A character has no meaning at its position.
    #[error("unrecognized character in action: {}", code_point(*.0))]
    Character(char),
    /// The text in brackets is not an index, slice or key.
    #[error("invalid array index {0}")]
    Index(String),
    /// A number cannot be read.
    #[error("cannot parse number {0}")]
    Number(String),
    /// Two `..` follow each other.
    #[error("invalid multiple recursive descent")]
    Recursion,
    /// Filters and unions are nested too deeply.
    #[error("nested too deeply")]
    Depth,
}

/// Writes a character with its code point, as `%#U` does in Go.
fn code_point(character: char) -> String {
    format!("U+{:04X} '{character}'", u32::from(character))
}

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    nodes: Vec<PathNode>,
}

/// One step of a path: from the values so far to the next ones.
#[derive(Debug, Clone, PartialEq)]
enum PathNode {
    /// The member of this name.
    Field(String),
    /// All members or items.
    Wildcard,
    /// The values and all values inside them.
    Recursive,
    /// The items from one index to another, by a step.
    Slice(Slice),
    /// The results of all parts.
    Union(Vec<Path>),
    /// Items for which a comparison holds.
    Filter(Box<Filter>),
    /// A literal.
    Text(String),
    /// A literal.
    Int(i64),
    /// A literal.
    Float(Float),
    /// A literal.
    Bool(bool),
    /// An unknown word, which fails when it is evaluated.
    Word,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Slice {
    from: Option<i64>,
    to: Option<i64>,
    step: Option<i64>,
    /// Whether the path states a single index. `to` is then the index after it.
    is_index: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Path,
    /// The operator and the right side. `None` if the left side only has to exist.
    test: Option<(String, Path)>,
}
