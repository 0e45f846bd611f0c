//! What an estimate knows of a part of an expression.

use super::SizeRange;
use crate::types::Type;
use crate::value::Value;

/// A part of an expression.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// The way from a variable to it, if it lies on one: the variable first.
    pub path: Option<Vec<Step>>,
    /// Its type.
    pub of: Type,
    /// Its value, if it is written down.
    pub literal: Option<&'a Value<'static>>,
    /// Its size, where the expression itself tells.
    pub size: Option<SizeRange>,
}

/// A step on the way from a variable to a part of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The variable, or a field.
    Name(std::sync::Arc<str>),
    /// Any item of a list.
    Items,
    /// Any place of a list.
    Indices,
    /// Any key of a map.
    Keys,
    /// Any value of a map.
    Values,
}

/// Who knows how large values may be: the schema of an object.
pub trait SizeSource: std::fmt::Debug {
    /// The size of what `node` may be, by its path or its type. None if nothing is known.
    fn size(&self, node: &Node<'_>) -> Option<SizeRange>;
}

/// Nothing is known of any variable.
#[derive(Debug)]
pub struct NoSizes;

impl SizeSource for NoSizes {
    fn size(&self, _: &Node<'_>) -> Option<SizeRange> {
        None
    }
}

impl Node<'_> {
    /// The items of a list, whose sizes its schema may know.
    pub fn items(&self) -> Option<Node<'static>> {
        let of = self.of.parameters().first().copied()?.clone();
        let path = self.path.clone().map(|mut path| {
            path.push(Step::Items);
            path
        });
        Some(Node { path, of, literal: None, size: None })
    }
}
