//! Shapes: how the nodes of a tree are read as values, by a schema. Values borrow the schema by which objects are
//! pruned and validated, so that a server keeps no second form of it.

use std::borrow::Cow;
use std::sync::LazyLock;

use flotilla_proto::structural::{Structural, ValueType};
use flotilla_proto::value;

use super::{Value, escape, formats};
use crate::error::Outcome;

/// How one node is read.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    schema: &'a Structural,
    /// Whether it describes whole objects of the API, which have `apiVersion`, `kind` and `metadata`.
    is_resource: bool,
}

/// The kind of a shape.
#[derive(Clone, Copy)]
pub(super) enum ShapeKind<'a> {
    /// Any value, read as JSON: numbers without a fraction are ints. No expression uses such a value by itself. It only
    /// matters when values that contain it are compared.
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
    List,
    /// A list whose items have no schema, so that it cannot be read.
    Untyped,
    /// An object whose properties are declared.
    Object,
    /// An object of any keys with values of one schema.
    Map(&'a Structural),
    /// An object in which nothing is declared.
    Empty,
}

impl<'a> Shape<'a> {
    /// Returns how values of a schema are read.
    pub const fn of(schema: &'a Structural) -> Self {
        Self { schema, is_resource: schema.embedded }
    }

    /// Returns how values of a schema are read. With `is_resource`, the values are whole objects of the API.
    pub const fn at(schema: &'a Structural, is_resource: bool) -> Self {
        Self { schema, is_resource: is_resource || schema.embedded }
    }

    /// Returns whether `null` is a value rather than an error.
    pub(super) const fn is_nullable(self) -> bool {
        self.schema.nullable
    }

    /// Returns the schema.
    pub(super) const fn schema(self) -> &'a Structural {
        self.schema
    }

    pub(super) fn kind(self) -> ShapeKind<'a> {
        if self.schema.int_or_string {
            return ShapeKind::IntOrString;
        }
        match self.schema.of {
            Some(ValueType::Object) if self.has_fields() => ShapeKind::Object,
            Some(ValueType::Object) => self.schema.additional.schema().map_or(ShapeKind::Empty, ShapeKind::Map),
            Some(ValueType::Array) if self.schema.items.is_some() => ShapeKind::List,
            Some(ValueType::Array) => ShapeKind::Untyped,
            Some(ValueType::String) => match self.schema.rules().format() {
                "duration" => ShapeKind::Formatted(formats::duration),
                "date" => ShapeKind::Formatted(formats::date),
                "date-time" => ShapeKind::Formatted(formats::date_time),
                "byte" => ShapeKind::Formatted(formats::bytes),
                _ => ShapeKind::Text,
            },
            Some(ValueType::Number) => ShapeKind::Number,
            Some(ValueType::Integer) => ShapeKind::Integer,
            Some(ValueType::Boolean) => ShapeKind::Boolean,
            None => ShapeKind::Plain,
        }
    }

    /// Returns whether objects have declared properties.
    pub(super) const fn has_fields(self) -> bool {
        self.is_resource || !self.schema.properties.is_empty()
    }

    /// Returns a declared property. `None` if there is none of this name.
    pub(super) fn property(self, property: &str) -> Option<Self> {
        let stated = || self.schema.property(property);
        let schema = match property {
            "apiVersion" | "kind" | "metadata" if self.is_resource && !states_meta(self.schema) => meta(property),
            _ => stated()?,
        };
        Some(Self::of(schema))
    }

    /// Returns a declared property and its name, by the name that expressions have for it. Properties whose name begins
    /// and ends with `__` in expressions, such as words of the language, may also be named without that.
    pub(super) fn field<'n>(self, name: &'n str) -> Option<(Cow<'n, str>, Self)> {
        let declared = |property: Cow<'n, str>| self.property(&property).map(|shape| (property, shape));
        escape::property(name).and_then(declared).or_else(|| {
            let property = escape::property(&format!("__{name}__"))?.into_owned();
            declared(property.into())
        })
    }
}

/// Returns whether a schema of resources itself declares the fields that rules may read of every resource.
fn states_meta(schema: &Structural) -> bool {
    let is_text = |schema: Option<&Structural>| schema.is_some_and(|schema| schema.of == Some(ValueType::String));
    let metadata = schema.property("metadata").filter(|metadata| metadata.of == Some(ValueType::Object));
    let has_names =
        metadata.is_some_and(|meta| is_text(meta.property("name")) && is_text(meta.property("generateName")));
    is_text(schema.property("kind")) && is_text(schema.property("apiVersion")) && has_names
}

/// Returns the schema of a member that every resource has: `apiVersion`, `kind` or `metadata`.
fn meta(member: &str) -> &'static Structural {
    static TEXT: LazyLock<Structural> = LazyLock::new(|| Structural::of(&value!({"type": "string"})));
    static METADATA: LazyLock<Structural> = LazyLock::new(|| {
        let names = value!({"generateName": {"type": "string"}, "name": {"type": "string"}});
        Structural::of(&value!({"type": "object", "properties": (names)}))
    });
    if member == "metadata" { &METADATA } else { &TEXT }
}

#[cfg(test)]
mod tests {
    use super::super::equal;
    use super::*;

    #[test]
    fn properties_are_read_by_their_names_in_expressions_and_compared_by_their_own() {
        let names = ["a-b", "if", "-", "1__dash__2"];
        let properties: value::Map = names.iter().map(|name| (*name, value!({"type": "integer"}))).collect();
        let schema = Structural::of(&value!({"type": "object", "properties": (properties)}));
        let object = |last: i64| value!({"a-b": 1, "if": 2, "-": 3, "1__dash__2": last});
        let (one, same, other) = (object(4), object(4), object(5));
        let read = |tree| Value::of_shaped_tree(tree, Shape::of(&schema)).unwrap();
        let Value::Map(map) = read(&one) else { panic!("an object reads as a map") };
        for (name, number) in [("a__dash__b", 1), ("if", 2), ("__if__", 2), ("dash", 3)] {
            assert_eq!(equal(&map.find_field(name).unwrap().unwrap(), &Value::Int(number)), Ok(true), "{name}");
        }
        assert!(map.find_field("a-b").unwrap().is_none());
        assert_eq!(equal(&read(&one), &read(&same)), Ok(true));
        assert_eq!(equal(&read(&one), &read(&other)), Ok(false));
    }
}
