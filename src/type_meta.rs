//! Reads kind and version of bodies, patches and other documents, and makes the errors about them.

use flotilla_proto::json;
use flotilla_proto::schema::Kind;
use flotilla_proto::value::Value;
use flotilla_proto::yaml;

/// Parses a document whose media type does not count: a text that does not begin with `{` is YAML. Returns an object or
/// null.
///
/// # Errors
/// The text cannot be parsed, is not an object, or has a kind or version that is not a string.
pub fn parse(text: &[u8]) -> Result<Value, String> {
    let unreadable = |why: &dyn std::fmt::Display| format!("couldn't get version/kind; json parse error: {why}");
    let document = match text.trim_ascii_start().starts_with(b"{") {
        true => json::parse(text).map_err(|error| unreadable(&error))?,
        false => yaml::parse(text).map_err(|error| error.to_string())?.value,
    };
    type_meta(&document).map_err(|why| unreadable(&why))?;
    Ok(document)
}

/// Refuses a kind or version that is not a string. The reference reads these first, by a decoder for them alone.
pub fn type_meta(value: &Value) -> Result<(), String> {
    if !matches!(value, Value::Null | Value::Object(_)) {
        let target =
            r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        return Err(format!("json: cannot unmarshal {} into Go value of type {target}", value.type_name()));
    }
    for field in ["kind", "apiVersion"] {
        let found = value.at(&[field]);
        if !matches!(found, Value::Null | Value::Str(_)) {
            let name = found.type_name();
            return Err(format!("json: cannot unmarshal {name} into Go struct field .{field} of type string"));
        }
    }
    Ok(())
}

/// Returns the error about an object without a kind; `text` is its JSON.
pub fn missing_kind(text: &[u8]) -> String {
    format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(text))
}

/// Returns the error about a kind that cannot be converted to the expected one; `version` is without its group.
pub fn unknown_conversion(version: &str, kind: &str, expected: &Kind) -> String {
    let package = internal_package(&expected.group);
    format!("converting ({version}.{kind}) to ({package}.{}): unknown conversion", expected.name)
}

/// Returns the name of the package of a group's internal types, as the reference's errors state it.
pub fn internal_package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        other => other.split('.').next().unwrap_or(other),
    }
}
