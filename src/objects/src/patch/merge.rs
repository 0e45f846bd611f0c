//! JSON Merge Patch (RFC 7386): objects are merged, `null` removes a member, all else replaces.

use flotilla_proto::value::{Map, Value};

use super::{decoding, unmarshal};
use crate::status::{ApiError, ApiResult};

/// The message for a body that is no merge patch.
pub const INVALID: &str = "Invalid JSON Patch";

/// Reads a body as a merge patch.
///
/// # Errors
/// 400 if it is not an object. Without `checked`, a list is allowed as well.
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

/// Returns `current` with the patch applied.
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
                // A list that replaces an object is kept unchanged, with the nulls in its items.
                let keep = matches!(target.get(key), Some(Value::Object(_)));
                target.insert(key, if keep { value.clone() } else { pruned(value) });
            }
            scalar => {
                target.insert(key, scalar.clone());
            }
        }
    }
}

/// Returns a copy without members that are `null`. `null` items of lists stay.
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

/// Sorts the members of objects that a patch passed through, since errors of the reference show them sorted.
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
        // Lists come from the patch as a whole.
        (Value::Array(shown), Value::Array(patch)) => {
            shown.iter_mut().zip(patch).for_each(|(shown, patch)| sort_touched(shown, patch));
        }
        _ => {}
    }
}
