//! JSON Merge Patch (RFC 7386): objects merge, `null` removes, everything else replaces.

use flotilla_proto::value::{Map, Value};

use super::{decoding, unmarshal};
use crate::status::{ApiError, ApiResult};

/// What a body that is no merge patch is told.
pub const INVALID: &str = "Invalid JSON Patch";

/// Takes a body as a merge patch.
pub fn read(body: Value, checked: bool) -> ApiResult<Value> {
    match body {
        Value::Object(_) => Ok(body),
        Value::Null => Err(ApiError::bad_request(INVALID)),
        other if checked => Err(decoding(&unmarshal(&other, "map[string]interface {}"))),
        // A list replaces the object, which then fails to decode.
        Value::Array(_) => Ok(body),
        _ => Err(ApiError::bad_request(INVALID)),
    }
}

/// What the patch makes of `current`.
pub fn apply(mut current: Value, patch: &Value) -> Value {
    match (&mut current, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            merge(target, patch);
            current
        }
        _ => pruned(patch),
    }
}

fn merge(target: &mut Map, patch: &Map) {
    for (key, value) in patch.iter() {
        match value {
            Value::Null => {
                target.remove(key);
            }
            Value::Object(inner) => match target.get_mut(key) {
                Some(Value::Object(place)) => merge(place, inner),
                _ => {
                    target.insert(key, pruned(value));
                }
            },
            Value::Array(_) => {
                // A list that takes an object's place is kept as it is, nulls in its items too.
                let keep = matches!(target.get(key), Some(Value::Object(_)));
                target.insert(key, if keep { value.clone() } else { pruned(value) });
            }
            scalar => {
                target.insert(key, scalar.clone());
            }
        }
    }
}

/// A copy without members that are `null`; `null` items of lists stay.
fn pruned(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, pruned(value)))
            .collect::<Map>()
            .into(),
        Value::Array(items) => Value::Array(items.iter().map(pruned).collect()),
        scalar => scalar.clone(),
    }
}

/// Sorts the objects that a patch went through, as the reference shows them in errors.
pub fn sort_touched(shown: &mut Value, patch: &Value) {
    match (shown, patch) {
        (Value::Object(shown), Value::Object(patch)) => {
            shown.sort();
            for (key, inner) in patch.iter() {
                if let Some(place) = shown.get_mut(key) {
                    sort_touched(place, inner);
                }
            }
        }
        // Lists are those of the patch, through and through.
        (Value::Array(shown), Value::Array(patch)) => {
            shown.iter_mut().zip(patch).for_each(|(shown, patch)| sort_touched(shown, patch));
        }
        _ => {}
    }
}
