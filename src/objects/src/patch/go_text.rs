//! Formats values as Go's `%v` does. Errors of strategic merge show them in this form.

use std::fmt::Write;

use flotilla_proto::json;
use flotilla_proto::value::{Map, Value};

use crate::field::float;

/// Formats a map as `map[a:1 b:[x y]]`, with sorted keys.
pub fn map(map: &Map) -> String {
    let mut out = String::new();
    write_map(map, &mut out);
    out
}

/// Formats a list as `[a b]`.
pub fn list(items: &[Value]) -> String {
    let mut out = String::new();
    write_list(items, &mut out);
    out
}

/// Formats any value, without quotes.
pub fn value(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Str(text) => out.push_str(text),
        Value::Array(items) => write_list(items, out),
        Value::Object(map) => write_map(map, out),
        Value::Int(number) => {
            let _ = write!(out, "{number}");
        }
        Value::Float(number) => out.push_str(&float(number.get())),
        Value::Bool(_) | Value::Hole(_) => out.push_str(&String::from_utf8_lossy(&json::to_vec(value))),
    }
}

fn write_list(items: &[Value], out: &mut String) {
    out.push('[');
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push(' ');
        }
        write(item, out);
    }
    out.push(']');
}

fn write_map(map: &Map, out: &mut String) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    out.push_str("map[");
    for (n, (key, value)) in entries.into_iter().enumerate() {
        if n > 0 {
            out.push(' ');
        }
        out.push_str(key);
        out.push(':');
        write(value, out);
    }
    out.push(']');
}

/// Returns the Go type of a JSON value, as `%s` prints its `reflect.Type`.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        other => kind_of(other),
    }
}

/// Returns the Go kind of a JSON value.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) | Value::Hole(_) => "float64",
        Value::Str(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
