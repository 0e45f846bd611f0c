//! Equality as the reference defines it to find out whether something changed: an absent list equals an empty one, and
//! quantities are compared by value.

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value::{Map, Value};

/// Fields that hold a quantity, or a map of them.
const QUANTITIES: [&str; 12] = [
    "limits",
    "requests",
    "overhead",
    "capacity",
    "allocatedResources",
    "podFixed",
    "sizeLimit",
    "divisor",
    "averageValue",
    "value",
    "targetAverageValue",
    "tolerance",
];

/// Returns whether two values are semantically equal.
pub fn equal(a: &Value, b: &Value) -> bool {
    a == b || differing_equal(a, b, false)
}

/// Returns whether the members at a path are semantically equal.
pub fn equal_at(a: &Value, b: &Value, path: &[&str]) -> bool {
    equal(a.at(path), b.at(path))
}

fn is_empty_list(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(<[Value]>::is_empty)
}

fn differing_equal(a: &Value, b: &Value, quantities: bool) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => maps_equal(a, b, quantities),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || differing_equal(a, b, quantities))
        }
        (Value::Str(a), Value::Str(b)) if quantities => {
            matches!((Quantity::parse(a), Quantity::parse(b)), (Ok(a), Ok(b)) if a == b)
        }
        _ => is_empty_list(a) && is_empty_list(b),
    }
}

fn maps_equal(a: &Map, b: &Map, quantities: bool) -> bool {
    let null = &Value::Null;
    let same =
        |key: &str, a: &Value, b: &Value| a == b || differing_equal(a, b, quantities || QUANTITIES.contains(&key));
    a.iter().all(|(key, value)| same(key, value, b.get(key).unwrap_or(null)))
        && b.iter().all(|(key, value)| a.contains_key(key) || same(key, null, value))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn amounts_and_empty_lists_are_compared_by_meaning() {
        let one = value!({"resources": {"limits": {"memory": "1Gi"}}, "list": []});
        let other = value!({"resources": {"limits": {"memory": "1073741824"}}});
        assert!(equal(&one, &other) && equal(&other, &one));
        assert!(!equal(&value!({"name": "1Gi"}), &value!({"name": "1073741824"})));
        assert!(!equal(&value!({"emptyDir": {}}), &value!({})));
        assert!(!equal(&value!({"a": 1}), &value!({"a": 1, "b": 2})));
    }
}
