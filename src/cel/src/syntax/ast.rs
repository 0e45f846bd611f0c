//! The syntax tree of an expression, with macros expanded.

use std::sync::Arc;

use crate::source::TextPosition;
use crate::value::Value;

/// The number of a part of an expression, unique in it.
pub type ExprId = u32;

/// A part of an expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its number.
    pub id: ExprId,
    /// Its kind.
    pub kind: ExprKind,
}

/// The kind of a part of an expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A part that could not be parsed.
    Unspecified,
    /// A literal.
    Literal(Value<'static>),
    /// A variable, perhaps with a dot before it.
    Ident(Arc<str>),
    /// `operand.field`, or `has(operand.field)`.
    Select(Box<Select>),
    /// A call of a function or an operator.
    Call(Box<Call>),
    /// `[a, ?b]`
    List(Vec<Item>),
    /// `{a: b, ?c: d}`
    Map(Vec<Entry<Expr>>),
    /// `name{a: b}`
    Object(Arc<str>, Vec<Entry<Arc<str>>>),
    /// A loop, which macros expand to.
    Loop(Box<Loop>),
}

/// A selection.
#[derive(Clone, Debug)]
pub struct Select {
    /// The expression from whose value it selects.
    pub operand: Expr,
    /// The field.
    pub field: Arc<str>,
    /// Whether it only tests presence.
    pub is_test: bool,
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name of the function; operators have names as `_+_`.
    pub function: Arc<str>,
    /// The receiver.
    pub receiver: Option<Expr>,
    /// The arguments after the receiver.
    pub arguments: Vec<Expr>,
}

/// An item of a list.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its value.
    pub value: Expr,
    /// Whether it is left out where its value is an optional without value.
    pub is_optional: bool,
}

/// An entry of a map or a field of an object.
#[derive(Clone, Debug)]
pub struct Entry<K> {
    /// Its own number.
    pub id: ExprId,
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: Expr,
    /// Whether it is left out where its value is an optional without value.
    pub is_optional: bool,
}

/// A loop over a list or a map.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The list or map that it iterates.
    pub range: Expr,
    /// The variable of an item or a key; with a second variable, of an index or a key.
    pub variable: Arc<str>,
    /// The variable of an item or a value.
    pub second: Option<Arc<str>>,
    /// The variable that it gathers its result in.
    pub accumulator: Arc<str>,
    /// The initial value of the accumulator.
    pub init: Expr,
    /// The condition to continue.
    pub condition: Expr,
    /// The new value of the accumulator after an iteration.
    pub step: Expr,
    /// The result of the loop.
    pub result: Expr,
}

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Ast {
    /// The whole.
    pub root: Expr,
    /// The positions of its parts.
    pub positions: TextPositions,
}

/// The positions of an expression's parts in its text.
#[derive(Clone, Debug, Default)]
pub struct TextPositions {
    /// Offsets in characters, by the numbers of the parts.
    offsets: Vec<i32>,
    /// Offsets of all lines except the first.
    lines: Vec<i32>,
}

impl TextPositions {
    /// Returns the positions of a text without any parts yet.
    pub fn of(text: &str) -> Self {
        let lines = text.chars().zip(1..).filter(|(char, _)| *char == '\n').map(|(_, at)| at).collect();
        // Numbers begin at 1.
        Self { offsets: vec![-1], lines }
    }

    /// Adds a part at an offset. Returns its number.
    pub fn add(&mut self, offset: i32) -> ExprId {
        self.offsets.push(offset);
        (self.offsets.len() - 1) as ExprId
    }

    /// Returns the offset of a part, in characters.
    pub fn offset(&self, id: ExprId) -> i32 {
        self.offsets.get(id as usize).copied().unwrap_or(-1)
    }

    /// Returns the position of a part.
    pub fn position(&self, id: ExprId) -> TextPosition {
        self.at(self.offset(id))
    }

    /// Returns the position of an offset.
    pub fn at(&self, offset: i32) -> TextPosition {
        let before = self.lines.partition_point(|line| *line <= offset);
        let start = if before > 0 { self.lines[before - 1] } else { 0 };
        TextPosition { line: before as i32 + 1, column: offset - start }
    }

    /// Returns the first unused number.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns whether there are no parts.
    pub fn is_empty(&self) -> bool {
        self.offsets.len() <= 1
    }
}

impl Expr {
    /// Returns the name, if it is one.
    pub fn as_ident(&self) -> Option<&Arc<str>> {
        match &self.kind {
            ExprKind::Ident(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the value, if it is a literal.
    pub fn as_literal(&self) -> Option<&Value<'static>> {
        match &self.kind {
            ExprKind::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the qualified name `a.b.c`, if it is a name or a selection on one.
    pub fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Ident(name) => Some(name.to_string()),
            ExprKind::Select(select) if !select.is_test => {
                let mut name = select.operand.qualified_name()?;
                name.push('.');
                name.push_str(&select.field);
                Some(name)
            }
            _ => None,
        }
    }
}
