//! Converts text to a syntax tree.

mod ast;
mod build;
mod debug;
mod grammar;
mod lexer;
mod literal;
mod machine;
mod macros;
mod predict;
mod recover;
mod rule;
mod token;
mod tree;

pub use ast::{Ast, Call, Entry, Expr, ExprId, ExprKind, Item, Loop, Select, TextPositions};
pub use debug::debug_text;
pub use macros::ACCUMULATOR;

use crate::limits::{CHARACTERS_MAX, ParserBounds};
use crate::source::{Issues, Source, TextPosition};
use build::Builder;
use machine::{Halt, Machine};

/// The supported parts of CEL's syntax.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub struct Dialect {
    /// Macros are expanded at all.
    pub macros: bool,
    /// `a.?b`, `a[?b]`, `[?a]`, `{?a: b}`, and the macros of optional values.
    pub optional_syntax: bool,
    /// Macros with two variables, and those that transform.
    pub two_variables: bool,
    /// `cel.bind`.
    pub bind: bool,
    /// `existsOne` with one variable; upstream's later name of `exists_one`.
    pub exists_one: bool,
    /// `sortBy` of lists.
    pub sort_by: bool,
    /// Names of fields in backquotes.
    pub quoted_names: bool,
    /// The bounds of the parser.
    pub bounds: ParserBounds,
}

/// Parses an expression. `None` if it is invalid, which the issues report.
pub fn parse(source: &Source<'_>, dialect: &Dialect, issues: &mut Issues) -> Option<Ast> {
    let text = source.text();
    let size = text.chars().count();
    if size > CHARACTERS_MAX {
        let text = format!("expression code point size exceeds limit: size: {size}, limit {CHARACTERS_MAX}");
        issues.report(TextPosition::NONE, text);
        return None;
    }
    let positions = TextPositions::of(text);
    let tokens = lexer::read(text, issues);
    let find = |offset| positions.at(offset);
    let parsed = Machine::new(&tokens, &find, issues, dialect.bounds).run();
    let built =
        parsed.and_then(|(tree, root)| Builder::new(&tree, &tokens, issues, dialect, positions.clone()).run(root));
    match built {
        Ok(ast) if issues.is_empty() => Some(ast),
        Ok(_) | Err(Halt::Reported) => None,
        Err(Halt::Because(text)) => {
            issues.report(TextPosition::NONE, text);
            None
        }
    }
}
