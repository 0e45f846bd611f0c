//! Shapes: how the nodes of a tree read as values, by a schema. A definition's shapes are built once; values borrow
//! them.

use super::Value;
use crate::error::Outcome;

/// How one node reads.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Whether `null` is a value rather than an error.
    pub nullable: bool,
    /// How all other nodes read.
    pub kind: ShapeKind,
}

/// The kind of a shape.
#[derive(Clone, Debug, Default)]
pub enum ShapeKind {
    /// Any value, read as JSON: numbers without a fraction are ints.
    #[default]
    Plain,
    /// A boolean.
    Boolean,
    /// An integer.
    Integer,
    /// A number, always a double.
    Number,
    /// A string.
    Text,
    /// A string whose format makes it another value: a timestamp, a duration, bytes.
    Formatted(fn(&str) -> Outcome<Value<'static>>),
    /// An integer or a string.
    IntOrString,
    /// A list.
    List(Box<ListShape>),
    /// An object whose properties are declared.
    Object(Fields),
    /// An object of any keys with values of one shape.
    Map(Box<Shape>),
    /// An object in which nothing is declared.
    Empty,
    /// A schema by which no value can be read; using such a value is this error.
    Invalid(String),
}

/// A list and how it compares and merges.
#[derive(Clone, Debug)]
pub struct ListShape {
    /// The items.
    pub items: Shape,
    /// As `x-kubernetes-list-type` says.
    pub list_type: ListType,
}

/// The identity of a list's items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Their positions.
    Atomic,
    /// Their values.
    Set,
    /// The values of these keys, as CEL escapes their names.
    Map(Vec<String>),
}

/// Declared properties.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// Sorted by [`Field::name`].
    fields: Vec<Field>,
}

/// A declared property.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in expressions, escaped.
    pub name: Box<str>,
    /// Its name in objects.
    pub property: Box<str>,
    /// How its value reads.
    pub shape: Shape,
}

impl Fields {
    /// Returns the fields in order of their names, from any order.
    pub fn new(mut fields: Vec<Field>) -> Self {
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Self { fields }
    }

    /// Returns the field of this name in expressions. Fields that are called like words of the language (`__if__`) may
    /// be named by these words.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.find(name).or_else(|| self.find(&format!("__{name}__")))
    }

    fn find(&self, name: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        self.fields.get(at)
    }

    /// Returns the field of this name in objects.
    pub fn of_property(&self, property: &str) -> Option<&Field> {
        // Nearly every name is the same in both forms.
        self.find(property)
            .filter(|field| &*field.property == property)
            .or_else(|| self.fields.iter().find(|field| &*field.property == property))
    }

    /// Returns all of them, by name.
    pub fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.fields.iter()
    }
}
