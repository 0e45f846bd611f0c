//! The custom type among the objects that clients write: what it is defined as, and what its objects are to look like.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Client;

const GROUP: &str = "faults.example.com";
const PLURAL: &str = "widgets";
const KIND: &str = "Widget";
/// Where its objects are listed and watched, without the resource.
pub const PREFIX: &str = "/apis/faults.example.com/v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PREPARE_TIMEOUT: Duration = Duration::from_secs(30);

/// Defines the type, and waits until every member serves it.
pub fn define(client: &mut Client, members: usize) {
    let (deadline, definition) = (Instant::now() + PREPARE_TIMEOUT, definition().to_string());
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

/// A new object.
pub fn new_object(metadata: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": KIND, "metadata": metadata, "spec": written()})
}

/// What clients write: it lacks what has a default, and has what the schema does not know.
fn written() -> Value {
    json!({"size": 3, "unknown": "x"})
}

/// Writes into an object what clients write, if it is one of the type.
pub fn write(object: &mut Value) {
    if object["kind"] == KIND {
        object["spec"] = written();
    }
}

/// Whether an object is not what the schema makes of what clients write.
pub fn is_unlike_its_schema(object: &Value) -> bool {
    // Items of lists tell their kind too, which those of built-in resources do not.
    object["kind"] == KIND && object["spec"] != json!({"size": 3, "color": "blue"})
}
