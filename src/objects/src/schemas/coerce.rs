//! Decodes the metadata of embedded objects (`x-kubernetes-embedded-resource`) as that of any object.

use flotilla_proto::catalogue;
use flotilla_proto::conform::conform;
use flotilla_proto::schema::Type;
use flotilla_proto::structural::Structural;
use flotilla_proto::value::{Map, Value};

use crate::field::{ErrorKind, FieldError, Path, shown_sorted};

/// Brings the metadata of embedded objects into the form in which it is stored. Drops fields that metadata does not
/// have and returns their paths, sorted. An object without embedded objects is left as it is.
///
/// # Errors
/// The first field that cannot be decoded. The server answers as for a body that cannot be decoded.
pub fn coerce(schema: &Structural, object: &mut Value) -> Result<Vec<String>, FieldError> {
    coerce_at(schema, object, &Path::root(""))
}

/// As [`coerce`], for a value at any path.
///
/// # Errors
/// As for [`coerce`].
pub fn coerce_at(schema: &Structural, value: &mut Value, path: &Path<'_>) -> Result<Vec<String>, FieldError> {
    let mut unknown = Vec::new();
    if has_embedded(schema, value) {
        walk(schema, value, path, &mut unknown)?;
        unknown.sort_unstable();
    }
    Ok(unknown)
}

fn has_embedded(schema: &Structural, value: &Value) -> bool {
    match value {
        Value::Object(_) if schema.embedded => true,
        Value::Object(map) => {
            map.iter().any(|(name, value)| schema.member(name).is_some_and(|of| has_embedded(of, value)))
        }
        Value::Array(items) => {
            schema.items.as_deref().is_some_and(|of| items.iter().any(|item| has_embedded(of, item)))
        }
        _ => false,
    }
}

fn walk(schema: &Structural, value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<(), FieldError> {
    match value {
        Value::Object(map) => {
            if schema.embedded {
                resource(map, path, unknown)?;
            }
            for (name, value) in map.iter_mut() {
                if let Some(of) = schema.property(name) {
                    walk(of, value, &path.child(name), unknown)?;
                } else if let Some(of) = schema.additional.schema() {
                    walk(of, value, &path.key(name), unknown)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(of) = schema.items.as_deref() else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                walk(of, item, &path.index(index), unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn resource(object: &mut Map, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<(), FieldError> {
    let refused = |name: &str, value: &Value, detail: String| FieldError {
        kind: ErrorKind::Invalid,
        field: path.child(name).to_string(),
        shown: shown_sorted(value),
        detail,
    };
    for name in ["apiVersion", "kind"] {
        if let Some(value) = object.get(name).filter(|value| value.as_str().is_none()) {
            return Err(refused(name, value, "must be a string".into()));
        }
    }
    let (Some(stated), Some(of)) = (object.get("metadata"), metadata_type()) else { return Ok(()) };
    let mut metadata = if stated.is_null() { Value::object() } else { stated.clone() };
    let dropped = conform(of, &mut metadata).map_err(|error| refused("metadata", stated, error.to_string()))?;
    let place = path.child("metadata");
    unknown.extend(dropped.into_iter().map(|field| format!("{place}.{field}")));
    if metadata.at(&["creationTimestamp"]).is_null() {
        metadata.remove_at(&["creationTimestamp"]);
    }
    if metadata != *stated {
        object.insert("metadata", metadata);
    }
    Ok(())
}

/// Returns the type of the metadata that every object has.
pub fn metadata_type() -> Option<&'static Type> {
    catalogue::type_by_openapi("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
}
