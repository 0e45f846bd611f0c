//! Restores the fields that a write may not change.

use flotilla_proto::value::Value;

/// Members of metadata that writes through some kinds' subresources do not change.
const METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// Sets the member at a path, or removes it if the value is null.
pub fn put(object: &mut Value, path: &[&str], value: &Value) {
    match value {
        Value::Null => _ = object.remove_at(path),
        value => object.set_at(path, value.clone()),
    }
}

/// Restores the old member at a path.
pub fn keep(object: &mut Value, old: &Value, path: &[&str]) {
    put(object, path, old.at(path));
}

/// Restores the old labels, annotations, finalizers and owners.
pub fn keep_metadata(object: &mut Value, old: &Value) {
    for key in METADATA {
        keep(object, old, &["metadata", key]);
    }
}
