//! Putting back what a write may not change.

use flotilla_proto::value::Value;

/// What a write through a subresource leaves alone in metadata, where the kind asks for that.
const METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// Sets the member at a path, or takes it out where the value is null.
pub fn put(object: &mut Value, path: &[&str], value: &Value) {
    match value {
        Value::Null => _ = object.remove_at(path),
        value => object.set_at(path, value.clone()),
    }
}

/// Makes the member at a path what it was.
pub fn keep(object: &mut Value, old: &Value, path: &[&str]) {
    put(object, path, old.at(path));
}

/// Makes labels, annotations, finalizers and owners what they were.
pub fn keep_metadata(object: &mut Value, old: &Value) {
    for key in METADATA {
        keep(object, old, &["metadata", key]);
    }
}
