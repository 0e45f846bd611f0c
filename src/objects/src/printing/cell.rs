//! Cells that many kinds share.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Str, Value};

use super::age;

/// Returns the object's name.
pub fn name(object: &Value) -> Value {
    text(object, &["metadata", "name"])
}

/// Returns how long ago the object was created.
pub fn age(object: &Value, now: Timestamp) -> Value {
    age::since(object.at(&["metadata", "creationTimestamp"]), now).into()
}

/// Returns the string at a path, or the empty string.
pub fn text(object: &Value, path: &[&str]) -> Value {
    text_or(object, path, "")
}

/// Returns the string at a path; `absent` when there is none or it is empty.
pub fn text_or(object: &Value, path: &[&str], absent: &'static str) -> Value {
    match object.at(path) {
        Value::Str(text) if !text.is_empty() => Value::Str(text.clone()),
        _ => Value::Str(Str::const_new(absent)),
    }
}

/// Returns the string at the path of a field that can be absent or empty; `absent` only if it is absent.
pub fn pointer_or(object: &Value, path: &[&str], absent: &'static str) -> Value {
    match object.at(path) {
        Value::Str(text) => Value::Str(text.clone()),
        _ => Value::Str(Str::const_new(absent)),
    }
}

/// Returns the integer at a path, or 0.
pub fn int(object: &Value, path: &[&str]) -> Value {
    Value::Int(number(object, path))
}

/// Returns the integer at a path, or 0, for use in texts.
pub fn number(object: &Value, path: &[&str]) -> i64 {
    object.int_at(path).unwrap_or(0)
}

/// Returns the boolean at a path, or `absent`.
pub fn bool_or(object: &Value, path: &[&str], absent: bool) -> Value {
    Value::Bool(object.at(path).as_bool().unwrap_or(absent))
}

/// Returns how many items or members stand at a path.
pub fn count(object: &Value, path: &[&str]) -> Value {
    let count = match object.at(path) {
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Returns whether the object is being deleted.
pub fn is_deleted(object: &Value) -> bool {
    object.at(&["metadata", "deletionTimestamp"]).as_str().is_some()
}

/// Returns the value of an annotation.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.at(&["metadata", "annotations", key]).as_str()
}

/// Returns the first condition of a type in `status.conditions`.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object.list_at(&["status", "conditions"]).iter().find(|condition| condition.str_at(&["type"]) == kind)
}

/// Returns whether the first condition of a type is `True`.
pub fn is_condition_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition.str_at(&["status"]) == "True")
}

/// Joins texts with a separator.
pub fn join<'a>(texts: impl IntoIterator<Item = &'a str>, separator: &str) -> Str {
    let mut joined = Str::default();
    for (n, text) in texts.into_iter().enumerate() {
        if n > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
    }
    joined
}

/// Returns a list of strings, joined by commas.
pub fn strings(items: &[Value]) -> Str {
    join(items.iter().map(|item| item.as_str().unwrap_or("")), ",")
}

/// Returns the names and the images of a list of containers, each joined by commas.
pub fn containers(containers: &[Value]) -> [Value; 2] {
    ["name", "image"].map(|field| join(containers.iter().map(|container| container.str_at(&[field])), ",").into())
}

/// Returns the first `few` texts, joined by commas, and how many more there are.
pub fn first_few<'a>(texts: impl IntoIterator<Item = &'a str>, few: usize) -> (Str, usize) {
    let mut texts = texts.into_iter();
    let shown = join(texts.by_ref().take(few), ",");
    (shown, texts.count())
}
