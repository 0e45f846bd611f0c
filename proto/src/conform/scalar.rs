//! Scalars: checks of their types, and their canonical form.

use std::borrow::Cow;

use super::Error;
use super::value_path::ValuePath;
use crate::base64;
use crate::quantity;
use crate::schema::{AnyKind, Shape};
use crate::time::Timestamp;
use crate::value::{Hole, Value};

/// Conforms a scalar.
pub(super) fn scalar(shape: &Shape, value: &mut Value, path: &ValuePath<'_>) -> Result<(), Error> {
    match shape {
        Shape::Bool => match value {
            Value::Bool(_) => Ok(()),
            _ => Err(mismatch(value, path, || "bool".into())),
        },
        Shape::Int32 => integer(value, i32::MIN.into(), i32::MAX.into(), path, "int32"),
        Shape::Int64 => integer(value, i64::MIN, i64::MAX, path, "int64"),
        Shape::Uint(8) => integer(value, 0, u8::MAX.into(), path, "uint8"),
        Shape::Uint(16) => integer(value, 0, u16::MAX.into(), path, "uint16"),
        Shape::Uint(32) => integer(value, 0, u32::MAX.into(), path, "uint32"),
        Shape::Uint(_) => integer(value, 0, i64::MAX, path, "uint64"),
        Shape::Double => match value {
            Value::Int(_) | Value::Float(_) => Ok(()),
            Value::Hole(Hole::Literal(_)) => {
                value.resolve_literals();
                Ok(())
            }
            Value::Hole(Hole::Number(text)) => Err(out_of_range(text, path, "float64")),
            _ => Err(mismatch(value, path, || "float64".into())),
        },
        Shape::String { .. } => match value {
            Value::Str(_) => Ok(()),
            _ => Err(mismatch(value, path, || go_type(shape))),
        },
        Shape::Bytes => bytes(value, path),
        Shape::Quantity => amount(value),
        Shape::IntOrString => match value {
            Value::Str(_) => Ok(()),
            _ => integer(value, i32::MIN.into(), i32::MAX.into(), path, "int32"),
        },
        Shape::Time | Shape::MicroTime => moment(value, matches!(shape, Shape::MicroTime), path),
        Shape::Duration => duration(value, path),
        Shape::Any(kind) => free_form(*kind, value),
        Shape::Struct(_) | Shape::List(_) | Shape::Map(_) => Ok(()),
    }
}

/// Returns the name of a shape's Go type, as decoding errors state it.
pub fn go_type(shape: &Shape) -> String {
    match shape {
        Shape::Bool => "bool".into(),
        Shape::Int32 | Shape::IntOrString => "int32".into(),
        Shape::Int64 => "int64".into(),
        Shape::Uint(bits) => format!("uint{bits}"),
        Shape::Double => "float64".into(),
        Shape::String { named } if named.is_empty() => "string".into(),
        Shape::String { named } => named.to_string(),
        Shape::Bytes => "[]uint8".into(),
        Shape::Quantity => "resource.Quantity".into(),
        Shape::Time => "v1.Time".into(),
        Shape::MicroTime => "v1.MicroTime".into(),
        Shape::Duration => "v1.Duration".into(),
        Shape::Any(AnyKind::RawExtension) => "runtime.RawExtension".into(),
        Shape::Any(AnyKind::FieldsV1) => "v1.FieldsV1".into(),
        Shape::Any(AnyKind::Json) => "v1.JSON".into(),
        Shape::Any(_) => "v1.JSONSchemaProps".into(),
        Shape::Struct(of) => format!("{}.{}", of.package, of.name),
        Shape::List(list) if list.named.is_empty() => {
            format!("[]{}{}", if list.pointer_items { "*" } else { "" }, go_type(&list.item))
        }
        Shape::List(list) => list.named.to_string(),
        Shape::Map(map) if map.named.is_empty() => format!("map[string]{}", go_type(&map.value)),
        Shape::Map(map) => map.named.to_string(),
    }
}
/// Returns the error of a value with a wrong type.
pub(super) fn mismatch(value: &Value, path: &ValuePath<'_>, wanted: impl FnOnce() -> String) -> Error {
    Error::Type { found: value.type_name().into(), path: path.describe(), wanted: wanted() }
}

fn integer(value: &mut Value, low: i64, high: i64, path: &ValuePath<'_>, wanted: &str) -> Result<(), Error> {
    match value {
        Value::Int(number) if (low..=high).contains(number) => Ok(()),
        Value::Int(_) | Value::Float(_) => {
            let text = crate::json::to_vec(value);
            Err(out_of_range(&String::from_utf8_lossy(&text), path, wanted))
        }
        Value::Hole(Hole::Number(text) | Hole::Literal(text)) => Err(out_of_range(text, path, wanted)),
        _ => Err(mismatch(value, path, || wanted.into())),
    }
}

/// Returns the error of a number that the type cannot hold.
fn out_of_range(text: &str, path: &ValuePath<'_>, wanted: &str) -> Error {
    Error::Type { found: format!("number {text}"), path: path.describe(), wanted: wanted.into() }
}

fn bytes(value: &mut Value, path: &ValuePath<'_>) -> Result<(), Error> {
    if let Value::Array(numbers) = value {
        *value = base64::encode(&octets(numbers, path)?).into();
        return Ok(());
    }
    let Value::Str(text) = value else {
        return Err(mismatch(value, path, || "[]uint8".into()));
    };
    let canonical = base64::canonical(text).map_err(Error::Base64)?;
    if canonical != text.as_str() {
        *text = canonical.into();
    }
    Ok(())
}

/// Reads bytes from the array of their numbers, a form that is also accepted.
fn octets(numbers: &mut [Value], path: &ValuePath<'_>) -> Result<Vec<u8>, Error> {
    let octet = |number: &mut Value| match number {
        Value::Null => Ok(0),
        number => {
            integer(number, 0, u8::MAX.into(), path, "uint8")?;
            Ok(number.as_int().and_then(|number| u8::try_from(number).ok()).unwrap_or(0))
        }
    };
    numbers.iter_mut().map(octet).collect()
}

fn amount(value: &mut Value) -> Result<(), Error> {
    let stated = match &*value {
        Value::Str(text) => Cow::from(text.trim()),
        Value::Int(_) | Value::Float(_) => String::from_utf8_lossy(&crate::json::to_vec(value)).into_owned().into(),
        Value::Hole(Hole::Number(text) | Hole::Literal(text)) => Cow::from(text.as_str()),
        _ => return Err(quantity::Error::Form.into()),
    };
    let written = quantity::written(&stated)?;
    if value.as_str() != Some(&written) {
        *value = written.into_owned().into();
    }
    Ok(())
}

fn moment(value: &mut Value, micro: bool, path: &ValuePath<'_>) -> Result<(), Error> {
    let Value::Str(text) = value else {
        return Err(mismatch(value, path, || "string".into()));
    };
    let parsed = if micro { Timestamp::parse_micro(text)? } else { Timestamp::parse(text)? };
    if parsed == Timestamp::ZERO {
        *value = Value::Null; // as Go writes an unset time
        return Ok(());
    }
    let canonical = if micro { parsed.micro() } else { parsed.to_string() };
    if canonical != text.as_str() {
        *text = canonical.into();
    }
    Ok(())
}

fn duration(value: &mut Value, path: &ValuePath<'_>) -> Result<(), Error> {
    let Value::Str(text) = value else {
        return Err(mismatch(value, path, || "string".into()));
    };
    let nanos = crate::duration::parse(text).ok_or_else(|| Error::Duration(text.to_string()))?;
    let canonical = crate::duration::format(nanos);
    if canonical != text.as_str() {
        *text = canonical.into();
    }
    Ok(())
}

/// Conforms a free-form value: it keeps its content, but numbers do not keep the form in which they were written.
fn free_form(kind: AnyKind, value: &mut Value) -> Result<(), Error> {
    value.resolve_literals();
    match kind {
        // This kind is converted from JSON by a decoder of its own. Other free-form values stay text until they are
        // read.
        AnyKind::Json => match value.hole() {
            Some(Hole::Number(text)) => {
                let (found, path) = (format!("number {text}"), "value".into());
                Err(Error::Type { found, path, wanted: "float64".into() })
            }
            _ => Ok(()),
        },
        AnyKind::RawExtension | AnyKind::FieldsV1 => Ok(()),
        AnyKind::SchemaOrBool | AnyKind::SchemaOrArray | AnyKind::SchemaOrStrings => schema_place(kind, value),
    }
}

/// Checks the value in the place of a schema.
pub(super) fn schema_place(kind: AnyKind, value: &mut Value) -> Result<(), Error> {
    match (kind, &*value) {
        // The caller refuses values that nest too deep.
        (_, Value::Object(_) | Value::Hole(Hole::Deep)) | (AnyKind::SchemaOrBool, Value::Bool(_)) => Ok(()),
        (AnyKind::SchemaOrBool, _) => Err(Error::SchemaOrBool),
        (_, Value::Array(_)) => Ok(()),
        _ => {
            // Go's decoder reads any other value as neither of the two.
            *value = Value::Null;
            Ok(())
        }
    }
}
