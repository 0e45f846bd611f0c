//! Reports JSON values of the wrong type in Go's words.

use flotilla_proto::value::Value;

/// A member of a Go struct, with its type.
pub struct TypedMember {
    /// The member names on the way from the document to the member.
    pub path: &'static [&'static str],
    /// The name of the struct.
    pub of: &'static str,
    /// Go's name for the type.
    pub called: &'static str,
    /// Whether a value has the type. `null` is always accepted.
    pub takes: fn(&Value) -> bool,
}

/// Checks that the members of a document have their types. A path that ends with `[]` means each item, one that ends
/// with `{}` each value.
///
/// # Errors
/// Go's message for the first member of another type.
pub fn check(document: &Value, members: &[TypedMember]) -> Result<(), String> {
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
            let (kind, of, called) = (wrong.type_name(), member.of, member.called);
            let path = names.join(".");
            return Err(format!("json: cannot unmarshal {kind} into Go struct field {of}.{path} of type {called}"));
        }
    }
    Ok(())
}
