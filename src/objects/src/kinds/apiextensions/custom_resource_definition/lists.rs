//! Keywords for server-side apply: how lists and objects are merged, and which keys identify the items of a list
//! ("Merge strategy").

use flotilla_proto::value::Value;

use super::internal;
use super::parts::{self, LIST_MAP_KEYS, LIST_TYPE, MAP_TYPE};
use super::schema::SchemaChecks;
use crate::field::{ErrorKind, Errors, Path, shown};

const LIST_TYPES: [&str; 3] = ["atomic", "set", "map"];
const MAP_TYPES: [&str; 2] = ["atomic", "granular"];

/// Checks the merge keywords of a schema.
pub fn validate(schema: &Value, rules: SchemaChecks, path: &Path<'_>, errors: &mut Errors) {
    validate_type(schema, MAP_TYPE, "object", path, errors);
    validate_choice(schema, MAP_TYPE, &MAP_TYPES, path, errors);
    validate_type(schema, LIST_TYPE, "array", path, errors);
    if let Some(keyword) = loose_item(schema).filter(|_| rules.atomic_sets) {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        errors.invalid(&path.child("items").child(keyword), schema.at(&["items", LIST_TYPE]), why);
    }
    validate_choice(schema, LIST_TYPE, &LIST_TYPES, path, errors);
    let list_type = schema.at(&[LIST_TYPE]).as_str();
    if parts::is_filled(schema, LIST_MAP_KEYS) && list_type != Some("map") {
        let (path, why) = (path.child(LIST_TYPE), "must be map if x-kubernetes-list-map-keys is non-empty");
        match list_type {
            None => errors.required(&path, why),
            Some(other) => errors.invalid_str(&path, other, why),
        }
    }
    if list_type == Some("map") {
        validate_map_list(schema, path, errors);
    }
    if rules.certain_keys {
        validate_keys(schema, path, errors);
    }
}

fn validate_type(schema: &Value, keyword: &str, wanted: &str, path: &Path<'_>, errors: &mut Errors) {
    let kind = parts::kind(schema);
    if parts::has(schema, keyword) && kind != wanted {
        let (path, why) = (path.child("type"), format!("must be {wanted} if {keyword} is specified"));
        if kind.is_empty() { errors.required(&path, why) } else { errors.invalid_str(&path, kind, why) }
    }
}

fn validate_choice(schema: &Value, keyword: &str, allowed: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if let Some(choice) = schema.at(&[keyword]).as_str().filter(|choice| !allowed.contains(choice)) {
        errors.not_supported(&path.child(keyword), choice, allowed);
    }
}

/// Returns the keyword that must be `atomic` in the items of a set and is not; `None` for all other schemas.
pub fn loose_item(schema: &Value) -> Option<&'static str> {
    if parts::kind(schema) != "array" || schema.str_at(&[LIST_TYPE]) != "set" {
        return None;
    }
    let items = parts::items(schema)?;
    match parts::kind(items) {
        "array" if !matches!(items.at(&[LIST_TYPE]).as_str(), None | Some("atomic")) => Some(LIST_TYPE),
        "object" if items.str_at(&[MAP_TYPE]) != "atomic" => Some(MAP_TYPE),
        _ => None,
    }
}

/// Checks a list of type `map`, whose items are identified by keys.
fn validate_map_list(schema: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !parts::is_filled(schema, LIST_MAP_KEYS) {
        errors.required(&path.child(LIST_MAP_KEYS), "must not be empty if x-kubernetes-list-type is map");
    }
    let place = path.child("items");
    let Some(items) = parts::items(schema) else {
        // Something that is no schema counts as present.
        if schema.get("items").is_some() {
            let shown = internal::items_shown(schema.at(&["items"]));
            let why = "must only have a single schema if x-kubernetes-list-type is map";
            errors.push(ErrorKind::Invalid, &place, shown, why);
        } else {
            errors.required(&place, "must have a schema if x-kubernetes-list-type is map");
        }
        return;
    };
    let kind = parts::kind(items);
    if kind != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        errors.invalid_str(&place.child("type"), kind, why);
        return;
    }
    let keys = schema.list_at(&[LIST_MAP_KEYS]);
    let (keys_path, all) = (path.child(LIST_MAP_KEYS), schema.at(&[LIST_MAP_KEYS]));
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or("");
        match parts::property(items, name).map(parts::kind) {
            None => {
                errors.push(ErrorKind::Invalid, &keys_path, shown(all), "entries must all be names of item properties")
            }
            Some("array" | "object") => {
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.invalid_str(&place.child("properties").key(name).child("type"), kind, why);
            }
            Some(_) => {}
        }
        if keys[..index].contains(key) {
            errors.push(ErrorKind::Invalid, &keys_path, shown(all), "must not contain duplicate entries");
        }
    }
}

/// Checks that the items of sets and maps are not nullable, and that every key of a map is required in its items or has
/// a default.
pub fn validate_keys(schema: &Value, path: &Path<'_>, errors: &mut Errors) {
    let list_type = schema.str_at(&[LIST_TYPE]);
    let Some(items) = parts::items(schema).filter(|_| matches!(list_type, "set" | "map")) else { return };
    let place = path.child("items");
    if parts::is_on(items, "nullable") {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.forbidden(&place.child("nullable"), why);
    }
    if list_type != "map" {
        return;
    }
    let (place, required) = (place.child("properties"), items.list_at(&["required"]));
    for key in schema.list_at(&[LIST_MAP_KEYS]) {
        let name = key.as_str().unwrap_or("");
        let Some(property) = parts::property(items, name) else { continue };
        let place = place.key(name);
        if !required.contains(key) && !parts::has(property, "default") {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                       property";
            errors.required(&place.child("default"), why);
        }
        if parts::is_on(property, "nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.forbidden(&place.child("nullable"), why);
        }
    }
}
