//! Equality of values.

use flotilla_proto::structural::ListType;

use super::shape::ShapeKind;
use super::{List, Map, Value, compare};
use crate::error::{Error, Outcome};
use crate::limits::COMPARED_PAIRS_MAX;

/// Returns whether two values are equal, as `==` defines it: of different types, only numbers can be equal.
/// `Err` if a list or an object of a schema is compared with a value of another kind, or there is too much to compare.
pub fn equal(a: &Value<'_>, b: &Value<'_>) -> Outcome<bool> {
    Comparison { left: COMPARED_PAIRS_MAX }.values(a, b)
}

/// A comparison of two values.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Number of pairs that may still be visited.
    left: u32,
}

impl Comparison {
    pub(super) fn values(&mut self, a: &Value<'_>, b: &Value<'_>) -> Outcome<bool> {
        self.left = self.left.checked_sub(1).ok_or_else(|| Error::new("values are too large to be compared"))?;
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
            (Value::List(a), Value::List(b)) => self.lists(a, b)?,
            (Value::Map(a), Value::Map(b)) => self.maps(a, b)?,
            (Value::Optional(a), Value::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => self.values(a, b)?,
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

    fn lists(&mut self, a: &List<'_>, b: &List<'_>) -> Outcome<bool> {
        if a.len() != b.len() {
            return Ok(false);
        }
        match a.schema().and_then(|schema| Some((schema, schema.list_type?))) {
            Some((_, ListType::Set)) => super::sets::same_set(a, b),
            Some((schema, ListType::Map)) => super::sets::same_keys(a, b, schema.list_map_keys(), self),
            Some((_, ListType::Atomic)) | None => {
                for (a, b) in a.iter().zip(b.iter()) {
                    if !self.values(&a?, &b?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    fn maps(&mut self, a: &Map<'_>, b: &Map<'_>) -> Outcome<bool> {
        if a.len() != b.len() || a.object() != b.object() {
            return Ok(false);
        }
        if let Map::Tree(a_map, Some(shape)) = a
            && !matches!(shape.kind(), ShapeKind::Map(_))
        {
            return self.objects(a, a_map, b);
        }
        for (key, value) in a.iter() {
            match b.find(&key)? {
                Some(other) if self.values(&value?, &other)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Compares objects with declared fields; undeclared members are compared as trees.
    fn objects(&mut self, a: &Map<'_>, a_map: &flotilla_proto::value::Map, b: &Map<'_>) -> Outcome<bool> {
        let is_declared = |map: &Map<'_>, property: &str| match map {
            Map::Tree(_, Some(shape)) if shape.has_fields() => shape.property(property).is_some(),
            _ => false,
        };
        for (property, value) in a_map.iter() {
            if is_declared(a, property) {
                match (a.find_property(property)?, b.find_property(property)?) {
                    (None, None) => {}
                    (Some(a), Some(b)) if self.values(&a, &b)? => {}
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparing_values_with_very_many_shared_parts_is_refused() {
        let doubled = || (0..60).fold(Value::Int(1), |value, _| Value::list(vec![value.clone(), value]));
        let why = equal(&doubled(), &doubled()).unwrap_err();
        assert_eq!(why.to_string(), "values are too large to be compared");
        let list = || Value::list((0..1_000).map(Value::Int).collect());
        assert_eq!(equal(&list(), &list()), Ok(true));
    }
}
