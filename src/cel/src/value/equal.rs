//! Equality of values.

use super::shape::{ListType, Shape, ShapeKind};
use super::{List, Map, Value, compare};
use crate::error::{Error, Outcome};

/// Whether two values are equal, as `==` asks. Values of different types are not, but for numbers. An error where a
/// list or an object of a schema is compared with what is none.
pub fn equal(a: &Value<'_>, b: &Value<'_>) -> Outcome<bool> {
    Ok(match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a.runtime_name() == b.runtime_name(),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), Value::Int(_) | Value::Uint(_) | Value::Double(_)) => {
            compare(a, b).is_ok_and(|order| order.is_eq())
        }
        (Value::List(a), Value::List(b)) => lists(a, b)?,
        (Value::Map(a), Value::Map(b)) => maps(a, b)?,
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => equal(a, b)?,
            (None, None) => true,
            _ => false,
        },
        (Value::Opaque(a), Value::Opaque(b)) => a.equals(&**b).ok_or_else(Error::no_such_overload)?,
        (Value::Opaque(_), other) if !matches!(other, Value::Null) => return Err(Error::no_such_overload()),
        (Value::Map(Map::Tree(_, Some(_))), other) if !matches!(other, Value::Null) => {
            return Err(Error::no_such_overload());
        }
        (Value::List(list), other) if list.is_shaped() && !matches!(other, Value::Null) => {
            return Err(Error::no_such_overload());
        }
        _ => false,
    })
}

fn lists(a: &List<'_>, b: &List<'_>) -> Outcome<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    match a.shape().map(|shape| &shape.list_type) {
        Some(ListType::Set) => super::sets::same_set(a, b),
        Some(ListType::Map(keys)) => super::sets::same_keys(a, b, keys),
        Some(ListType::Atomic) | None => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal(&a?, &b?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn maps(a: &Map<'_>, b: &Map<'_>) -> Outcome<bool> {
    if a.len() != b.len() || a.object() != b.object() {
        return Ok(false);
    }
    if let (Map::Tree(a_map, Some(Shape { kind: ShapeKind::Object(_) | ShapeKind::Empty, .. })), b) = (a, b) {
        return objects(a, a_map, b);
    }
    for (key, value) in a.iter() {
        match b.find(&key)? {
            Some(other) if equal(&value?, &other)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Objects with declared fields: what is not declared is compared as it lies in the trees.
fn objects(a: &Map<'_>, a_map: &flotilla_proto::value::Map, b: &Map<'_>) -> Outcome<bool> {
    let declared = |map: &Map<'_>, property: &str| match map {
        Map::Tree(_, Some(Shape { kind: ShapeKind::Object(fields), .. })) => {
            fields.of_property(property).map(|field| field.name.clone())
        }
        _ => None,
    };
    for (property, value) in a_map.iter() {
        if let Some(name) = declared(a, property) {
            match (a.find_field(&name)?, b.find_field(&name)?) {
                (None, None) => {}
                (Some(a), Some(b)) if equal(&a, &b)? => {}
                _ => return Ok(false),
            }
        } else {
            let Map::Tree(b_map, Some(_)) = b else { return Err(Error::no_such_overload()) };
            if b_map.get(property).is_some_and(|other| other != value) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
