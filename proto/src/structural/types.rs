//! The type that server-side apply uses for a schema.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use super::{Additional, ListType, META, Structural, ValueType, is_meta};
use crate::catalogue;
use crate::json;
use crate::schema::{AnyKind, Field, List, Map, Patch, Presence, Ref, Shape, Text, Topology, Type};
use crate::value::Str;

/// Returns the type of the objects of a kind for server-side apply: which values are atomic, which have parts with
/// owners of their own, and which scalars are accepted. It is not used for decoding; [`Structural`] determines the
/// members that objects may have.
pub fn object_type(schema: &Structural, name: &str, version: &str) -> Type {
    let mut of = structure(schema, schema.preserves_unknown, true);
    of.name = Text::from(name.to_owned());
    of.package = Text::from(version.to_owned());
    of
}

/// Returns the type of an object with members of its own. Where an object preserves unknown members, all objects below
/// it do.
fn structure(schema: &Structural, open: bool, is_object: bool) -> Type {
    let skipped = |name: &str| is_object && is_meta(name);
    let mut fields: Vec<Field> = if is_object { standard_fields() } else { Vec::new() };
    let required: HashSet<&str> = schema.rules().required().iter().map(Str::as_str).collect();
    let properties = schema.properties.iter().filter(|(name, _)| !skipped(name));
    fields.extend(properties.map(|(name, property)| field(name, property, open, required.contains(name.as_str()))));
    Type {
        name: Text::default(),
        package: Text::default(),
        openapi: Text::default(),
        message: Text::default(),
        description: Text::default(),
        fields: Cow::Owned(fields),
        atomic: schema.atomic,
        open: open && !matches!(schema.additional, Additional::Any(false)),
        unions: Cow::Borrowed(&[]),
        wire: &[],
    }
}

/// Returns the fields of every object, as built-in kinds have them.
fn standard_fields() -> Vec<Field> {
    let kind = catalogue::kind("", "v1", "ConfigMap");
    let fields = kind.into_iter().flat_map(|kind| kind.of.fields.iter());
    fields.filter(|field| META.contains(&&*field.name)).map(|field| Field { number: 0, ..field.clone() }).collect()
}

fn field(name: &str, schema: &Structural, open: bool, required: bool) -> Field {
    let default = schema.default_value().map(json::to_vec).and_then(|text| String::from_utf8(text).ok());
    Field {
        name: Text::from(name.to_owned()),
        number: 0,
        shape: shape(schema, open),
        presence: Presence::Pointer,
        required,
        default: default.map(Text::from),
        enumeration: Cow::Borrowed(&[]),
        patch: Patch::default(),
        granular: false,
        description: Text::default(),
    }
}

fn shape(schema: &Structural, open: bool) -> Shape {
    let open = open || schema.preserves_unknown;
    match schema.of {
        Some(ValueType::Boolean) => Shape::Bool,
        Some(ValueType::Integer) => Shape::Int64,
        Some(ValueType::Number) => Shape::Double,
        Some(ValueType::String) => match schema.rules().format() {
            "" | "byte" => Shape::String { named: Text::default() },
            // The reference does not type a string with another format: like quantities, such values are any scalar.
            _ => Shape::Quantity,
        },
        Some(ValueType::Array) => Shape::List(Ref::Shared(Arc::new(list(schema, open)))),
        None if schema.properties.is_empty() => Shape::Any(AnyKind::Json),
        Some(ValueType::Object) | None => object(schema, open),
    }
}

fn object(schema: &Structural, open: bool) -> Shape {
    let value = match &schema.additional {
        _ if schema.embedded || !schema.properties.is_empty() => None,
        Additional::Of(schema) => Some(shape(schema, open)),
        Additional::Any(true) | Additional::Absent => Some(Shape::Any(AnyKind::Json)),
        Additional::Any(false) => None,
    };
    match value {
        Some(value) => Shape::Map(Ref::Shared(Arc::new(Map { value, named: Text::default(), atomic: schema.atomic }))),
        None => Shape::Struct(Ref::Shared(Arc::new(structure(schema, open, schema.embedded)))),
    }
}

fn list(schema: &Structural, open: bool) -> List {
    let keys = || schema.list_map_keys().iter().map(|key| Text::from(key.to_string())).collect();
    List {
        item: schema.items.as_deref().map_or(Shape::Any(AnyKind::RawExtension), |items| shape(items, open)),
        pointer_items: true,
        named: Text::default(),
        boxed: false,
        topology: match schema.list_type {
            Some(ListType::Set) => Topology::Set,
            Some(ListType::Map) => Topology::Map(keys()),
            Some(ListType::Atomic) | None => Topology::Atomic,
        },
        stated: schema.list_type.is_some(),
    }
}
