//! Restricts the changes that a conversion makes to metadata: only labels and annotations may change.

use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, FieldError, Path};
use crate::rules::labels;

/// Refuses a converted object whose name, namespace or UID differs from the original's.
pub fn check(original: &Value, converted: &Value) -> Result<(), String> {
    for (what, field) in [("name", "name"), ("namespace", "namespace"), ("UID", "uid")] {
        let (own, other) = (original.str_at(&["metadata", field]), converted.str_at(&["metadata", field]));
        if own != other {
            return Err(format!("must have the same {what}: {own} != {other}"));
        }
    }
    Ok(())
}

/// Gives a converted object its original metadata, with the labels and annotations of the conversion.
pub fn restore(original: &Value, converted: &mut Value) -> Result<(), String> {
    let stated = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".into()),
        Some(stated) if stated.as_object().is_none() => {
            return Err(format!("invalid metadata of type {} in converted object", go_type(stated)));
        }
        Some(stated) => stated.clone(),
    };
    let mut metadata = original.get("metadata").cloned().unwrap_or_else(Value::object);
    for field in ["labels", "annotations"] {
        let texts = stated.at(&[field]);
        if texts.is_null() {
            metadata.remove_at(&[field]);
            continue;
        }
        let Some(map) = texts.as_object() else {
            return Err(format!("invalid metadata.{field} of type {} in converted object", go_type(texts)));
        };
        if let Some((key, value)) = map.iter().find(|(_, value)| value.as_str().is_none()) {
            let of = go_type(value);
            return Err(format!("metadata.{field}[{key}] must be a string, but is {of} in converted object"));
        }
        if !is_same(map, metadata.map_at(&[field])) {
            check_texts(field, texts)?;
        }
        metadata.set_at(&[field], texts.clone());
    }
    converted.set_at(&["metadata"], metadata);
    Ok(())
}

fn is_same(map: &Map, before: Option<&Map>) -> bool {
    let length = |map: &Map| map.iter().count();
    let before_length = before.map_or(0, length);
    length(map) == before_length
        && map.iter().all(|(key, value)| before.and_then(|before| before.get(key)) == Some(value))
}

fn check_texts(field: &str, texts: &Value) -> Result<(), String> {
    let mut errors = Errors::default();
    let metadata = Path::root("metadata");
    match field {
        "labels" => labels::validate_labels(texts, &metadata.child("labels"), &mut errors),
        // The reference uses this singular path.
        _ => labels::validate_annotations(texts, &metadata.child("annotation"), &mut errors),
    }
    let texts: Vec<String> = errors.0.iter().map(FieldError::to_string).collect();
    match texts.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// Returns Go's name for the type of a decoded value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Str(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        _ => "float64",
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn only_labels_and_annotations_change() {
        let original = value!({"metadata": {"name": "a", "uid": "u", "finalizers": ["x/y"], "labels": {"a": "b"}}});
        let mut converted = value!({"metadata": {"name": "a", "uid": "u", "annotations": {"c": "d"}, "generation": 9}});
        assert_eq!(check(&original, &converted), Ok(()));
        restore(&original, &mut converted).unwrap();
        let kept = value!({"name": "a", "uid": "u", "finalizers": ["x/y"], "annotations": {"c": "d"}});
        assert_eq!(converted.at(&["metadata"]), &kept);
        let renamed = value!({"metadata": {"name": "b", "uid": "u"}});
        assert_eq!(check(&original, &renamed).unwrap_err(), "must have the same name: a != b");
    }

    #[test]
    fn invalid_metadata_is_refused() {
        let restored = |metadata: Value| restore(&value!({"metadata": {}}), &mut value!({"metadata": metadata}));
        let number = restored(value!({"labels": {"a": 1}})).unwrap_err();
        assert_eq!(number, "metadata.labels[a] must be a string, but is int64 in converted object");
        let list = restored(value!({"annotations": []})).unwrap_err();
        assert_eq!(list, "invalid metadata.annotations of type []interface {} in converted object");
        assert_eq!(restored(value!(7)).unwrap_err(), "invalid metadata of type int64 in converted object");
        assert_eq!(restore(&Value::Null, &mut value!({})).unwrap_err(), "missing metadata in converted object");
    }
}
