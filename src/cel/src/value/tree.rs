//! Reads values from a tree.

use super::shape::{Shape, ShapeKind};
use super::{List, Map, Text, Tree, Value};
use crate::error::{Error, Outcome};

impl<'a> Value<'a> {
    /// Reads a node without a schema: numbers without a fraction are ints.
    pub fn of_tree(node: &'a Tree) -> Self {
        plain(node)
    }

    /// Reads a node by its schema. `Err` if it does not fit the schema.
    pub fn of_shaped_tree(node: &'a Tree, shape: Shape<'a>) -> Outcome<Self> {
        shaped(node, shape)
    }
}

pub(super) fn plain(node: &Tree) -> Value<'_> {
    match node {
        Tree::Null | Tree::Hole(_) => Value::Null,
        Tree::Bool(truth) => Value::Bool(*truth),
        Tree::Int(number) => Value::Int(*number),
        Tree::Float(number) => Value::Double(number.get()),
        Tree::Str(text) => Value::String(Text::Borrowed(text)),
        Tree::Array(items) => Value::List(List::Tree(items, None)),
        Tree::Object(map) => Value::Map(Map::Tree(map, None)),
    }
}

pub(super) fn shaped<'a>(node: &'a Tree, shape: Shape<'a>) -> Outcome<Value<'a>> {
    Ok(match (shape.kind(), node) {
        (ShapeKind::Plain, node) => plain(node),
        (_, Tree::Null) if shape.is_nullable() => Value::Null,
        (_, Tree::Null) => return Err(Error::new("invalid data, got null for schema with nullable=false")),
        (ShapeKind::Text | ShapeKind::IntOrString, Tree::Str(text)) => Value::String(Text::Borrowed(text)),
        (ShapeKind::Integer | ShapeKind::IntOrString, Tree::Int(number)) => Value::Int(*number),
        (ShapeKind::Boolean, Tree::Bool(truth)) => Value::Bool(*truth),
        (ShapeKind::Number, Tree::Int(number)) => Value::Double(*number as f64),
        (ShapeKind::Number, Tree::Float(number)) => Value::Double(number.get()),
        (ShapeKind::List, Tree::Array(items)) => Value::List(List::Tree(items, Some(shape.schema()))),
        (ShapeKind::Object | ShapeKind::Map(_) | ShapeKind::Empty, Tree::Object(map)) => {
            Value::Map(Map::Tree(map, Some(shape)))
        }
        (ShapeKind::Formatted(read), Tree::Str(text)) => read(text)?,
        (kind, node) => return Err(unfit(kind, node)),
    })
}

fn unfit(kind: ShapeKind<'_>, node: &Tree) -> Error {
    let got = match node {
        Tree::Bool(_) => "bool",
        Tree::Int(_) => "int64",
        Tree::Float(_) => "float64",
        Tree::Str(_) => "string",
        Tree::Array(_) => "[]interface {}",
        Tree::Object(_) => "map[string]interface {}",
        Tree::Null | Tree::Hole(_) => "nil",
    };
    Error::new(match kind {
        ShapeKind::IntOrString => {
            "invalid data, expected XIntOrString value to be either a string or integer".to_owned()
        }
        ShapeKind::List => "invalid data, expected an array for the provided schema with type=array".to_owned(),
        ShapeKind::Object | ShapeKind::Map(_) | ShapeKind::Empty => {
            "invalid data, expected a map for the provided schema with type=object".to_owned()
        }
        ShapeKind::Number => format!("invalid data, expected float, got {got}"),
        ShapeKind::Integer => format!("invalid data, expected int, got {got}"),
        ShapeKind::Boolean => format!("invalid data, expected bool, got {got}"),
        ShapeKind::Untyped => "invalid array type, expected Items with a non-empty Schema".to_owned(),
        _ => format!("invalid data, expected string, got {got}"),
    })
}
