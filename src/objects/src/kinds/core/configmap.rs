//! ConfigMaps: the size of the data, keys that are valid file names, and `immutable`.

use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::printing::{Printer, config};
use crate::rules::{Generation, NameRule, Strategy, metadata, names};

/// Most bytes in the values of a ConfigMap or Secret together.
pub const DATA_BYTES_MAX: usize = 1 << 20;
/// The message about a changed field of an object with `immutable` set.
pub const FROZEN: &str = "field is immutable when `immutable` is set";

/// Rules of ConfigMaps.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    validate,
    validate_update,
    printer: Some(Printer::of(config::config_map)),
    ..Strategy::DEFAULT
};

fn validate(object: &Value, errors: &mut Errors) {
    let (data, binary) = (object.map_at(&["data"]), object.map_at(&["binaryData"]));
    let mut total = 0;
    let path = Path::root("data");
    for (key, value) in data.iter().flat_map(|map| map.iter()) {
        names::check(&path.key(key), key, names::config_map_key, errors);
        if binary.is_some_and(|binary| binary.contains_key(key)) {
            errors.invalid_str(&path.key(key), key, "duplicate of key present in binaryData");
        }
        total += value.as_str().map_or(0, str::len);
    }
    let path = Path::root("binaryData");
    for (key, value) in binary.iter().flat_map(|map| map.iter()) {
        names::check(&path.key(key), key, names::config_map_key, errors);
        total += decoded_len(value);
    }
    if total > DATA_BYTES_MAX {
        errors.too_long(&Path::root("[]"), DATA_BYTES_MAX);
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut Errors) {
    validate_frozen(object, old, &["data", "binaryData"], errors);
    metadata::validate_again(STRATEGY.name, true, object, errors);
    validate(object, errors);
}

/// Checks that an object with `immutable` set keeps that flag and the given fields.
pub fn validate_frozen(object: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if !old.is_true_at(&["immutable"]) {
        return;
    }
    if !object.is_true_at(&["immutable"]) {
        errors.forbidden(&Path::root("immutable"), FROZEN);
    }
    let empty = Map::new();
    for field in fields {
        let (new, old) = (object.map_at(&[field]).unwrap_or(&empty), old.map_at(&[field]).unwrap_or(&empty));
        if new != old {
            errors.forbidden(&Path::root(field), FROZEN);
        }
    }
}

/// Returns the number of bytes that a base64 text decodes to.
pub fn decoded_len(value: &Value) -> usize {
    let text = value.as_str().unwrap_or("").trim_end_matches('=');
    text.len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn data_has_a_size_limit_and_keys_have_a_form() {
        let mut errors = Errors::default();
        validate(&value!({"data": {"a": "x"}, "binaryData": {"b": "eA=="}}), &mut errors);
        assert!(errors.is_empty());
        validate(&value!({"data": {"same": "x", "a b": ""}, "binaryData": {"same": "eA=="}}), &mut errors);
        validate(&value!({"data": {"a": ("x".repeat(DATA_BYTES_MAX))}, "binaryData": {"b": "eA=="}}), &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["data[same]", "data[a b]", "[]"]);
        assert_eq!(decoded_len(&"eHk=".into()), 2);
        assert_eq!(decoded_len(&"eHl6".into()), 3);
    }

    #[test]
    fn frozen_data_stays() {
        let old = value!({"immutable": true, "data": {"a": "x"}});
        let mut errors = Errors::default();
        validate_frozen(&old, &old, &["data"], &mut errors);
        assert!(errors.is_empty());
        validate_frozen(&value!({"data": {"a": "y"}}), &old, &["data"], &mut errors);
        assert_eq!(errors.0.len(), 2);
    }
}
