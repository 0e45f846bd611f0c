//! The facts about a part of an expression that an estimate uses.

use super::SizeRange;
use crate::types::Type;
use crate::value::Value;

/// A part of an expression.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// The path from a variable to it, the variable first. `None` if it is not part of a variable.
    pub path: Option<Vec<VariableStep>>,
    /// Its type.
    pub of: Type,
    /// Its value, if it is a literal.
    pub literal: Option<&'a Value<'static>>,
    /// Its size, if the expression itself determines it.
    pub size: Option<SizeRange>,
}

/// A step of the path from a variable to a part of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableStep {
    /// The variable, or a field.
    Name(std::sync::Arc<str>),
    /// Any item of a list.
    Items,
    /// Any index of a list.
    Indices,
    /// Any key of a map.
    Keys,
    /// Any value of a map.
    Values,
}

/// A source of the possible sizes of values: the schema of an object.
pub trait SizeSource: std::fmt::Debug {
    /// Returns the possible sizes of `node`, by its path or its type. Returns `None` if they are unknown.
    fn size(&self, node: &Node<'_>) -> Option<SizeRange>;
}

/// A source that knows no sizes.
#[derive(Debug)]
pub struct NoSizes;

impl SizeSource for NoSizes {
    fn size(&self, _: &Node<'_>) -> Option<SizeRange> {
        None
    }
}

impl Node<'_> {
    /// Returns the node of a list's items, whose sizes a schema may bound. Returns `None` if the type has no
    /// parameters.
    pub fn items(&self) -> Option<Node<'static>> {
        let of = self.of.parameters().first().copied()?.clone();
        let path = self.path.clone().map(|mut path| {
            path.push(VariableStep::Items);
            path
        });
        Some(Node { path, of, literal: None, size: None })
    }
}
