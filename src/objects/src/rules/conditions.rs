//! Conditions in the form that kinds share (`metav1.Condition`; API conventions, "Typical status properties").

use std::collections::HashSet;

use flotilla_proto::value::Value;

use super::labels;
use crate::field::{Errors, Path};

/// Most bytes in a reason.
const REASON_BYTES_MAX: usize = 1 << 10;
/// Most bytes in a message.
const MESSAGE_BYTES_MAX: usize = 32 << 10;
const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
    alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or \
    'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
    '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// Returns whether an object has a condition of a type with the status `True`.
pub fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object.list_at(&["status", "conditions"]);
    conditions.iter().any(|it| it.str_at(&["type"]) == condition && it.str_at(&["status"]) == "True")
}

/// Checks a list of conditions.
pub fn validate(conditions: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (n, condition) in conditions.iter().enumerate() {
        let path = path.index(n);
        let kind = condition.str_at(&["type"]);
        if !seen.insert(kind) {
            errors.duplicate(&path.child("type"), &kind.into());
        }
        labels::validate_label_key(kind, &path.child("type"), errors);
        let status = condition.str_at(&["status"]);
        if !matches!(status, "True" | "False" | "Unknown") {
            errors.not_supported(&path.child("status"), status, &["False", "True", "Unknown"]);
        }
        let generation = condition.at(&["observedGeneration"]);
        if generation.as_int().is_some_and(|generation| generation < 0) {
            errors.invalid(&path.child("observedGeneration"), generation, "must be greater than or equal to zero");
        }
        if condition.str_at(&["lastTransitionTime"]).is_empty() {
            errors.required(&path.child("lastTransitionTime"), "");
        }
        reason(condition.str_at(&["reason"]), &path.child("reason"), errors);
        if condition.str_at(&["message"]).len() > MESSAGE_BYTES_MAX {
            errors.too_long(&path.child("message"), MESSAGE_BYTES_MAX);
        }
    }
}

/// Adds a condition or replaces the one of its type. Keeps the transition time if the status stays the same.
pub fn set(object: &mut Value, mut condition: Value) {
    let path = ["status", "conditions"];
    if object.at(&path).as_array().is_none() {
        object.set_at(&path, Vec::new());
    }
    let list = object.get_mut("status").and_then(|status| status.get_mut("conditions")).and_then(Value::as_array_mut);
    let Some(list) = list else { return };
    let kind = condition.str_at(&["type"]).to_owned();
    match list.iter_mut().find(|known| known.str_at(&["type"]) == kind) {
        Some(known) => {
            if known.at(&["status"]) == condition.at(&["status"]) {
                condition.set_at(&["lastTransitionTime"], known.at(&["lastTransitionTime"]).clone());
            }
            *known = condition;
        }
        None => list.push(condition),
    }
}

fn is_reason(reason: &str) -> bool {
    let bytes = reason.as_bytes();
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    bytes[0].is_ascii_alphabetic()
        && word(bytes[bytes.len() - 1])
        && bytes.iter().all(|b| word(*b) || matches!(b, b',' | b':'))
}

fn reason(reason: &str, path: &Path<'_>, errors: &mut Errors) {
    if reason.is_empty() {
        return errors.required(path, "");
    }
    if !is_reason(reason) {
        errors.invalid_str(path, reason, REASON);
    }
    if reason.len() > REASON_BYTES_MAX {
        errors.too_long(path, REASON_BYTES_MAX);
    }
}
