//! The custom type that clients use: its definition, and the content of its objects.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Client;
use crate::support::PATIENCE;

const GROUP: &str = "faults.example.com";
const PLURAL: &str = "widgets";
const KIND: &str = "Widget";
/// The prefix of the paths under which its objects are listed and watched.
pub const PREFIX: &str = "/apis/faults.example.com/v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Creates the definition, and waits until every member serves the type.
pub fn define(client: &mut Client, members: usize) {
    let (deadline, definition) = (Instant::now() + PATIENCE, definition().to_string());
    for member in 0..members {
        while client.call_member(member, "GET", PREFIX).1.is_none_or(|answer| answer.status != 200) {
            assert!(Instant::now() < deadline, "member {member} does not serve {PLURAL}.{GROUP}");
            client.call("POST", DEFINITIONS, definition.as_bytes());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn definition() -> Value {
    let spec = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "default": "blue"},
    }});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": PLURAL, "kind": KIND},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

/// Makes a new object.
pub fn new_object(metadata: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": KIND, "metadata": metadata, "spec": written()})
}

/// Returns the spec that clients write. It lacks a field that has a default, and has a field that the schema does not
/// define.
fn written() -> Value {
    json!({"size": 3, "unknown": "x"})
}

/// If the object is of the custom type, sets its spec to the one that clients write.
pub fn write(object: &mut Value) {
    if object["kind"] == KIND {
        object["spec"] = written();
    }
}

/// Returns whether the spec differs from the result of defaulting and pruning the spec that clients write.
pub fn is_unlike_its_schema(object: &Value) -> bool {
    // Items of lists of custom objects have a `kind`, unlike those of built-in resources.
    object["kind"] == KIND && object["spec"] != json!({"size": 3, "color": "blue"})
}
