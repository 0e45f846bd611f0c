//! Objects inside error messages. The reference prints its internal structures there: Go's field names, every field
//! present, in order of declaration. `internal.txt` lists those structures, a line each: `Type GoName:jsonName:shape
//! ...`. The shape is `s` for text, `i` for a number, `b` for a flag, `n` for a number or text, `q` for a quantity,
//! `map` for a map, `e` for a struct that is printed as clients know it, `x` for anything else, or the name of another
//! structure. `*` before a shape makes it a pointer, `[]` a list. `&Type` embeds a structure, `+name` embeds a member
//! as clients know it, and `^` before a JSON name means that the member stands in the parent.

mod diff;

use std::collections::HashMap;
use std::sync::LazyLock;

use flotilla_proto::json;
use flotilla_proto::value::{Map, Value};

pub use diff::unified;

static STRUCTURES: LazyLock<HashMap<&'static str, &'static str>> =
    LazyLock::new(|| include_str!("internal.txt").lines().filter_map(|line| line.split_once(' ')).collect());

/// Deepest nesting of structures; no structure contains itself.
const DEPTH_MAX: usize = 32;

/// Converts a value to the internal form of `structure`.
pub fn internal(structure: &str, value: &Value) -> Value {
    if value.is_null() {
        return Value::Null;
    }
    let mut map = Map::new();
    add_fields(structure, value, value, &mut map, 0);
    Value::Object(map)
}

/// Formats a value in its internal form for messages.
pub fn text(structure: &str, value: &Value) -> String {
    String::from_utf8_lossy(&json::to_vec(&internal(structure, value))).into_owned()
}

/// Returns the diff of two values in their internal forms.
pub fn difference(structure: &str, old: &Value, new: &Value) -> String {
    unified(&pretty(&internal(structure, old)), &pretty(&internal(structure, new)))
}

/// Formats a value as JSON, indented by one space.
fn pretty(value: &Value) -> String {
    let mut bytes = Vec::new();
    json::write_pretty(value, &mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(|line| {
            let indent = line.len() - line.trim_start_matches(' ').len();
            &line[indent / 2..]
        })
        .collect();
    lines.join("\n")
}

fn add_fields(structure: &str, value: &Value, parent: &Value, into: &mut Map, depth: usize) {
    let fields = STRUCTURES.get(structure).copied().unwrap_or("");
    for field in fields.split(' ').filter(|_| depth < DEPTH_MAX) {
        if let Some(embedded) = field.strip_prefix('&') {
            add_fields(embedded, value, parent, into, depth + 1);
            continue;
        }
        if let Some(member) = field.strip_prefix('+') {
            for (key, member) in value.at(&[member]).as_object().into_iter().flat_map(Map::iter) {
                into.insert(key, member.clone());
            }
            continue;
        }
        let mut parts = field.splitn(3, ':');
        let (Some(name), Some(json), Some(shape)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let member = match json.strip_prefix('^') {
            Some(json) => parent.at(&[json]),
            None => value.at(&[json]),
        };
        into.insert(name, shaped(shape, member, value, depth));
    }
}

fn shaped(shape: &str, value: &Value, parent: &Value, depth: usize) -> Value {
    if let Some(pointed) = shape.strip_prefix('*') {
        return if value.is_null() { Value::Null } else { shaped(pointed, value, parent, depth) };
    }
    if let Some(item) = shape.strip_prefix("[]") {
        return match value.as_array() {
            Some(items) => Value::Array(items.iter().map(|value| shaped(item, value, parent, depth)).collect()),
            None => Value::Null,
        };
    }
    match shape {
        "s" if value.is_null() => "".into(),
        "i" | "n" if value.is_null() => 0.into(),
        "b" if value.is_null() => false.into(),
        "q" if value.is_null() => "0".into(),
        "e" if value.is_null() => Value::object(),
        "map" => sorted(value),
        "s" | "i" | "n" | "b" | "q" | "e" | "x" => value.clone(),
        structure => {
            let mut map = Map::new();
            add_fields(structure, value, parent, &mut map, depth + 1);
            Value::Object(map)
        }
    }
}

fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(map) = value.as_object_mut() {
        map.sort();
    }
    value
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn structures_are_shown_with_their_internal_names() {
        assert_eq!(text("DeploymentStrategy", &value!({"type": "Blue"})), r#"{"Type":"Blue","RollingUpdate":null}"#);
        let volume = value!({"name": "v", "emptyDir": {}});
        let shown = text("Volume", &volume);
        assert!(
            shown.starts_with(r#"{"Name":"v","HostPath":null,"EmptyDir":{"Medium":"","SizeLimit":null},"#),
            "{shown}"
        );
    }

    #[test]
    fn moved_fields_are_shown_in_the_security_context() {
        let spec = value!({"hostPID": true, "securityContext": {}, "containers": []});
        let context = internal("PodSpec", &spec);
        assert_eq!(context.at(&["SecurityContext", "HostPID"]), &Value::Bool(true));
        assert_eq!(context.at(&["SecurityContext", "HostUsers"]), &Value::Null);
    }
}
