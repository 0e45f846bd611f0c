//! Fields of an audit policy, with their types.

use std::collections::BTreeSet;

use compact_str::CompactString;
use flotilla_proto::value::Value;

/// Warns of unknown fields, which are ignored as in the reference.
pub(super) fn warn_of_unknown(value: &Value, place: &str, known: &[&str]) {
    let members = value.as_object().into_iter().flat_map(|members| members.keys());
    let unknown: BTreeSet<&str> = members.filter(|name| !known.contains(name)).collect();
    for name in unknown {
        tracing::warn!(field = %format_args!("{place}{name}"), "an unknown field of the audit policy is ignored");
    }
}

fn wrong_type(name: &str, wanted: &str, found: &Value) -> String {
    format!("failed decoding: {name} must be {wanted}, not of type {}", found.type_name())
}

/// Returns the string in a field; empty if there is none.
///
/// # Errors
/// The field has a value of another type.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str, String> {
    let found = value.at(&[name]);
    if found.is_null() { Ok("") } else { found.as_str().ok_or_else(|| wrong_type(name, "a string", found)) }
}

/// Returns the boolean in a field. Returns `None` if there is none.
///
/// # Errors
/// The field has a value of another type.
pub(super) fn truth(value: &Value, name: &str) -> Result<Option<bool>, String> {
    let found = value.at(&[name]);
    if found.is_null() {
        Ok(None)
    } else {
        found.as_bool().map(Some).ok_or_else(|| wrong_type(name, "a boolean", found))
    }
}

/// Returns the items of the list in a field; none if there is no list.
///
/// # Errors
/// The field has a value of another type.
pub(super) fn list<'v>(value: &'v Value, name: &str) -> Result<&'v [Value], String> {
    let found = value.at(&[name]);
    if found.is_null() { Ok(&[]) } else { found.as_array().ok_or_else(|| wrong_type(name, "a list", found)) }
}

/// Returns the strings of the list in a field; none if there is no list.
///
/// # Errors
/// The field has a value of another type.
pub(super) fn texts(value: &Value, name: &str) -> Result<Vec<CompactString>, String> {
    let all = list(value, name)?.iter();
    all.map(|item| item.as_str().map(Into::into).ok_or_else(|| wrong_type(name, "a list of strings", item))).collect()
}
