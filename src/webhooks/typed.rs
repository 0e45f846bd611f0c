//! What Go says of JSON whose members have other types than a structure of its own.

use flotilla_proto::value::Value;

/// Where a member stands in a structure of Go, and what type it has there.
pub struct Member {
    /// Names from the document down to it.
    pub path: &'static [&'static str],
    /// The structure.
    pub of: &'static str,
    /// The type, as Go calls it.
    pub called: &'static str,
    /// Whether a value may stand there; null always may.
    pub takes: fn(&Value) -> bool,
}

/// What Go calls a value of JSON.
pub const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Str(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        _ => "number",
    }
}

/// Whether the members of a document have their types; `[]` at the end of a path means each item, `{}` each value.
///
/// # Errors
/// What Go says of the first that has not.
pub fn check(document: &Value, members: &[Member]) -> Result<(), String> {
    for member in members {
        let (last, above) = member.path.split_last().map_or(("", &[][..]), |(last, above)| (*last, above));
        let names = if matches!(last, "[]" | "{}") { above } else { member.path };
        let found = document.at(names);
        let is_wrong = |value: &&Value| !value.is_null() && !(member.takes)(value);
        let wrong = match last {
            "[]" => found.as_array().unwrap_or_default().iter().find(is_wrong),
            "{}" => found.as_object().and_then(|map| map.iter().map(|(_, value)| value).find(is_wrong)),
            _ => Some(found).filter(is_wrong),
        };
        if let Some(wrong) = wrong {
            let (kind, of, called) = (kind(wrong), member.of, member.called);
            let path = names.join(".");
            return Err(format!("json: cannot unmarshal {kind} into Go struct field {of}.{path} of type {called}"));
        }
    }
    Ok(())
}
