//! Strategic merge and apply convert the numbers of a merged object before it is decoded. If it cannot be decoded,
//! their errors describe the value that does not fit its type.

use std::ops::Range;

use flotilla_proto::conform::conform_scalar;
use flotilla_proto::schema::{Shape, Type};
use flotilla_proto::value::Value;

use super::go_text::kind_of;

/// The floats that fit 64 bits with a sign: from -2^63 to below 2^63.
const SIGNED_64: Range<f64> = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;

/// Describes the first value that does not fit, in the order of the type's fields. If there is none, the description
/// is `why`, the decoder's complaint.
pub fn complaint(of: &Type, object: &Value, why: &str) -> String {
    check_struct(of, object).err().unwrap_or_else(|| why.to_owned())
}

/// Converts numbers as the reference's converter does: whole floats become integers where the type has integers,
/// floats beyond 64 bits become the smallest integer, and integers too large for 32 bits keep their low bits. Skips
/// parts that are shared with `before`: they were converted earlier.
pub fn numbers(of: &Type, object: &mut Value, before: &Value) {
    if object.is_same(before) {
        return;
    }
    if let Value::Object(map) = object {
        for (key, value) in map.iter_mut() {
            if let Some((_, field)) = of.field(key) {
                number(&field.shape, value, before.at(&[key]));
            }
        }
    }
}

fn number(shape: &Shape, value: &mut Value, before: &Value) {
    let item_before = |index: usize| before.list_at(&[]).get(index).unwrap_or(&Value::Null);
    match (shape, value) {
        (Shape::Int32 | Shape::Int64 | Shape::Uint(_), value @ (Value::Float(_) | Value::Int(_))) => {
            let becomes_smallest = !matches!(shape, Shape::Uint(_)) && is_too_large(value);
            if let Some(whole) = whole_number(value).or(becomes_smallest.then_some(i64::MIN)) {
                #[expect(clippy::cast_possible_truncation, reason = "the reference drops the high bits")]
                let whole = if matches!(shape, Shape::Int32) { i64::from(whole as i32) } else { whole };
                *value = Value::Int(whole);
            }
        }
        // The type of these values in Go reads the float as JSON, where a whole one has no fraction.
        (Shape::IntOrString, value @ Value::Float(_)) => {
            if let Some(whole) = whole_number(value) {
                *value = Value::Int(whole);
            }
        }
        (Shape::Struct(of), value) => numbers(of, value, before),
        (Shape::List(list), Value::Array(items)) => {
            items.iter_mut().enumerate().for_each(|(n, item)| number(&list.item, item, item_before(n)));
        }
        (Shape::Map(map), Value::Object(entries)) if !holds_text(&map.value) => {
            entries.iter_mut().for_each(|(key, value)| number(&map.value, value, before.at(&[key])));
        }
        _ => {}
    }
}

/// Returns whether values of a shape are never numbers.
fn holds_text(shape: &Shape) -> bool {
    matches!(shape, Shape::String { .. } | Shape::Bytes | Shape::Quantity)
}

/// Returns a number as an integer. Returns `None` unless it is whole and fits 64 bits.
pub fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        #[expect(clippy::cast_possible_truncation, reason = "the number is whole and fits")]
        Value::Float(number) if number.get().fract() == 0.0 && SIGNED_64.contains(&number.get()) => {
            Some(number.get() as i64)
        }
        _ => None,
    }
}

/// Returns whether a number does not fit 64 bits. Such a number is whole.
fn is_too_large(value: &Value) -> bool {
    matches!(value, Value::Float(number) if !SIGNED_64.contains(&number.get()))
}

fn check_struct(of: &Type, value: &Value) -> Result<(), String> {
    match value {
        Value::Null => Ok(()),
        Value::Object(map) => of
            .fields
            .iter()
            .filter_map(|field| Some((field, map.get(&field.name)?)))
            .try_for_each(|(field, value)| check(&field.shape, value)),
        other => Err(format!("cannot restore struct from: {}", kind_of(other))),
    }
}

fn check(shape: &Shape, value: &Value) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    match shape {
        Shape::Bool => scalar(value, "bool", matches!(value, Value::Bool(_)), false),
        Shape::Int32 => whole(value, "int32"),
        Shape::Int64 => whole(value, "int64"),
        Shape::Uint(8) => whole(value, "uint8"),
        Shape::Uint(16) => whole(value, "uint16"),
        Shape::Uint(32) => whole(value, "uint32"),
        Shape::Uint(_) => whole(value, "uint64"),
        Shape::Double => scalar(value, "float64", matches!(value, Value::Int(_) | Value::Float(_)), false),
        Shape::String { named } => {
            let fits = matches!(value, Value::Str(_));
            if let (Value::Int(_), false) = (value, named.is_empty()) {
                return Err(format!("cannot convert int64 to {named}"));
            }
            scalar(value, "string", fits, matches!(value, Value::Int(_)))
        }
        Shape::Struct(of) => check_struct(of, value),
        Shape::List(list) => match value {
            Value::Array(items) => items.iter().try_for_each(|item| check(&list.item, item)),
            other => Err(format!("cannot restore slice from {}", kind_of(other))),
        },
        Shape::Map(map) => match value {
            Value::Object(entries) => entries.values().try_for_each(|value| check(&map.value, value)),
            other => Err(format!("cannot restore map from {}", kind_of(other))),
        },
        Shape::Bytes if !matches!(value, Value::Str(_)) => Err(format!("cannot restore slice from {}", kind_of(value))),
        Shape::Bytes => decoded(shape, value).map_err(|why| format!("error decoding from json: {why}")),
        Shape::Quantity | Shape::IntOrString | Shape::Time | Shape::MicroTime | Shape::Duration | Shape::Any(_) => {
            decoded(shape, value)
        }
    }
}

/// Checks a value whose type in Go decodes JSON by itself.
fn decoded(shape: &Shape, value: &Value) -> Result<(), String> {
    conform_scalar(shape, &mut value.clone()).map_err(|error| error.to_string())
}

fn whole(value: &Value, kind: &str) -> Result<(), String> {
    match value {
        Value::Float(number) => scalar(value, kind, number.get().trunc() == number.get(), true),
        _ => scalar(value, kind, matches!(value, Value::Int(_)), false),
    }
}

fn scalar(value: &Value, kind: &str, fits: bool, convertible: bool) -> Result<(), String> {
    match (fits, convertible) {
        (true, _) => Ok(()),
        (false, true) => Err(format!("cannot convert {} to {kind}", kind_of(value))),
        (false, false) => Err(format!("unrecognized type: {kind}")),
    }
}
