//! The order of values.

use std::cmp::Ordering;

use super::Value;
use crate::error::{Error, Outcome};

/// Compares two values, numbers of different types by value. `Err` for values that have no order: of different types,
/// and NaN.
pub fn compare(a: &Value<'_>, b: &Value<'_>) -> Outcome<Ordering> {
    Ok(match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => (**a).cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        (Value::Int(a), Value::Uint(b)) => int_uint(*a, *b),
        (Value::Uint(a), Value::Int(b)) => int_uint(*b, *a).reverse(),
        (Value::Double(a), Value::Double(b)) => doubles(*a, *b)?,
        (Value::Double(a), Value::Int(b)) => doubles(*a, *b as f64)?,
        (Value::Double(a), Value::Uint(b)) => doubles(*a, *b as f64)?,
        (Value::Int(a), Value::Double(b)) => doubles(*a as f64, *b)?,
        (Value::Uint(a), Value::Double(b)) => doubles(*a as f64, *b)?,
        _ => return Err(Error::no_such_overload()),
    })
}

fn int_uint(a: i64, b: u64) -> Ordering {
    u64::try_from(a).map_or(Ordering::Less, |a| a.cmp(&b))
}

fn doubles(a: f64, b: f64) -> Outcome<Ordering> {
    a.partial_cmp(&b).ok_or_else(|| Error::new("NaN values cannot be ordered"))
}
