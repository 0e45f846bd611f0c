//! Shapes: how the nodes of an object read as values, by its schema.

use super::escape::escape;
use super::formats;
use super::structural::Schema;
use crate::value::{Field, Fields, ListShape, ListType, Shape, ShapeKind};

/// Returns the shape of a schema; of a resource, with the members that every resource has.
pub fn shape(schema: &Schema, is_resource: bool) -> Shape {
    if is_resource {
        return shape(&schema.with_meta(), false);
    }
    Shape { nullable: schema.nullable, kind: kind(schema) }
}

fn kind(schema: &Schema) -> ShapeKind {
    if schema.int_or_string {
        return ShapeKind::IntOrString;
    }
    match &*schema.kind {
        "object" => object(schema),
        "array" => list(schema),
        "string" => match &*schema.format {
            "duration" => ShapeKind::Formatted(formats::duration),
            "date" => ShapeKind::Formatted(formats::date),
            "date-time" => ShapeKind::Formatted(formats::date_time),
            "byte" => ShapeKind::Formatted(formats::bytes),
            _ => ShapeKind::Text,
        },
        "number" => ShapeKind::Number,
        "integer" => ShapeKind::Integer,
        "boolean" => ShapeKind::Boolean,
        // A schema without a type has no declared type, so no expression uses its values. They only matter when
        // enclosing values are compared.
        _ => ShapeKind::Plain,
    }
}

fn object(schema: &Schema) -> ShapeKind {
    if schema.embedded {
        return fields(&schema.with_meta());
    }
    if !schema.properties.is_empty() {
        return fields(schema);
    }
    match &schema.additional {
        Some(values) => ShapeKind::Map(Box::new(shape(values, false))),
        None => ShapeKind::Empty,
    }
}

fn fields(schema: &Schema) -> ShapeKind {
    let field = |(property, of): &(Box<str>, Schema)| Field {
        name: escape(property).map_or_else(|| property.clone(), |name| name.into()),
        property: property.clone(),
        shape: shape(of, false),
    };
    ShapeKind::Object(Fields::new(schema.properties.iter().map(field).collect()))
}

fn list(schema: &Schema) -> ShapeKind {
    let Some(items) = &schema.items else {
        return ShapeKind::Invalid("invalid array type, expected Items with a non-empty Schema".to_owned());
    };
    let list_type = match &*schema.list_type {
        "" | "atomic" => ListType::Atomic,
        "set" => ListType::Set,
        "map" => {
            let keys = schema.list_map_keys.iter();
            let names = keys.map(|key| escape(key).map_or_else(|| key.to_string(), |name| name.into_owned()));
            ListType::Map(names.collect())
        }
        other => {
            let expected = "invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic'";
            return ShapeKind::Invalid(format!("{expected} but got {other}"));
        }
    };
    ShapeKind::List(Box::new(ListShape { items: shape(items, false), list_type }))
}
