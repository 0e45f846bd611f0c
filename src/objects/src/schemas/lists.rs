//! Checks lists whose items must be unique (`x-kubernetes-list-type: set`) or have unique keys (`map`).

use std::collections::HashMap;

use flotilla_proto::json;
use flotilla_proto::structural::{ListType, Structural};
use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};

/// Checks all lists of an object.
pub fn validate(schema: &Structural, object: &Value, errors: &mut Errors) {
    if let Value::Object(map) = object {
        members(schema, map, &Path::root(""), errors);
    }
}

fn members(schema: &Structural, map: &Map, path: &Path<'_>, errors: &mut Errors) {
    if let Some(of) = schema.additional.schema() {
        map.iter().for_each(|(key, value)| walk(of, value, &path.key(key), errors));
    }
    for (name, of, value) in schema.stated(map) {
        walk(of, value, &path.child(name), errors);
    }
}

fn walk(schema: &Structural, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::Object(map) => members(schema, map, path, errors),
        Value::Array(items) => {
            match schema.list_type {
                Some(ListType::Set) => {
                    for index in repeated(items.iter().map(identity)) {
                        errors.duplicate(&path.index(index), &sorted(&items[index]));
                    }
                }
                Some(ListType::Map) => keyed(schema, items, path, errors),
                Some(ListType::Atomic) | None => {}
            }
            let Some(of) = schema.items.as_deref() else { return };
            items.iter().enumerate().for_each(|(index, item)| walk(of, item, &path.index(index), errors));
        }
        _ => {}
    }
}

/// Checks that no two items have the same keys. A key that both items lack counts as the same.
fn keyed(schema: &Structural, items: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if let Some(index) = items.iter().position(|item| !matches!(item, Value::Object(_) | Value::Null)) {
        let why = "must be an object for an array of list-type map";
        return errors.invalid(&path.index(index), &sorted(&items[index]), why);
    }
    let keys_of = |item: &Value| {
        let stated = schema.list_map_keys().iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        stated.collect::<Map>()
    };
    let keys: Vec<Map> = items.iter().map(keys_of).collect();
    let identities = keys.iter().map(|keys| match (schema.list_map_keys(), keys.values().next()) {
        ([_], Some(value)) => identity(value),
        _ => identity(&Value::Object(keys.clone())),
    });
    for index in repeated(identities) {
        errors.duplicate(&path.index(index), &sorted(&Value::Object(keys[index].clone())));
    }
}

/// Returns the positions of items that occur for the second time.
fn repeated(identities: impl Iterator<Item = Vec<u8>>) -> Vec<usize> {
    let mut times: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut second = Vec::new();
    for (index, identity) in identities.enumerate() {
        let times = times.entry(identity).or_default();
        *times += 1;
        if *times == 2 {
            second.push(index);
        }
    }
    second
}

/// Returns bytes that equal items share. A float differs from an equal integer, except inside an object or array.
pub(super) fn identity(item: &Value) -> Vec<u8> {
    match item {
        Value::Float(number) => format!("float {}", number.get()).into_bytes(),
        other => json::to_vec(&sorted(other)),
    }
}

fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    if matches!(value, Value::Object(_) | Value::Array(_)) {
        value.sort_members();
    }
    value
}
