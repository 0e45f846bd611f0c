//! Rules that ResourceClaims, DeviceClasses and ResourceSlices share.

use std::collections::HashSet;

use flotilla_cel::device::{self as selectors, Refused};
use flotilla_cel::with_room;
use flotilla_proto::json;
use flotilla_proto::value::Value;

use crate::field::{ErrorKind, Errors, Path};
use crate::kinds::core::volume_source;
use crate::rules::{labels, names};

/// Most bytes in the name of a pool.
pub const POOL_BYTES_MAX: usize = 253;
/// Most bytes in the last part of a qualified name.
const ID_BYTES_MAX: usize = 32;
/// Most bytes in a driver's parameters.
const PARAMETERS_BYTES_MAX: usize = 10 << 10;
/// Most bytes in an expression that selects devices.
const EXPRESSION_BYTES_MAX: usize = 10 << 10;
/// Most selectors in a list.
const SELECTORS_MAX: usize = 32;
/// Most conditions that a binding waits for.
const BINDING_CONDITIONS_MAX: usize = 4;
const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// A check of one item of a list.
pub type ItemCheck<'a> = &'a mut dyn FnMut(&Value, &Path<'_>, &mut Errors);

/// Checks the items of a list of at most `max` items. If the list is longer, checks no item and returns false.
pub fn each(items: &[Value], max: usize, path: &Path<'_>, errors: &mut Errors, item: ItemCheck<'_>) -> bool {
    if items.len() > max {
        errors.too_many(path, items.len(), max);
        return false;
    }
    for (index, value) in items.iter().enumerate() {
        item(value, &path.index(index), errors);
    }
    true
}

/// Checks a list whose items must have different keys; `key` computes the key of an item.
pub fn each_once(
    items: &[Value],
    max: usize,
    key: fn(&Value) -> Value,
    path: &Path<'_>,
    errors: &mut Errors,
    item: ItemCheck<'_>,
) {
    if !each(items, max, path, errors, item) {
        return;
    }
    let mut seen = HashSet::new();
    for (index, value) in items.iter().enumerate() {
        let key = key(value);
        if !seen.insert(json::to_vec(&key)) {
            errors.duplicate(&path.index(index), &key);
        }
    }
}

/// Returns the name of an item, as the key of [`each_once`].
pub fn name_of(item: &Value) -> Value {
    item.str_at(&["name"]).into()
}

/// Checks the name of a pool: subdomains separated by slashes.
pub fn validate_pool(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    if name.len() > POOL_BYTES_MAX {
        errors.too_long(path, POOL_BYTES_MAX);
    }
    for part in name.split('/') {
        names::check(path, part, names::dns1123_subdomain, errors);
    }
}

/// Checks a unique ID.
pub fn validate_uid(uid: &str, path: &Path<'_>, errors: &mut Errors) {
    let dashes = [8, 13, 18, 23];
    let digits =
        uid.bytes().enumerate().all(|(n, b)| if dashes.contains(&n) { b == b'-' } else { b.is_ascii_hexdigit() });
    if ![32, 36, 38, 45].contains(&uid.len()) {
        let why = format!("error validating uid: invalid UUID length: {}", uid.len());
        errors.invalid_str(path, uid, why);
    } else if uid.len() == 36 && !digits {
        errors.invalid_str(path, uid, "error validating uid: invalid UUID format");
    } else if uid.len() != 36 || uid.bytes().any(|b| b.is_ascii_uppercase()) {
        let why = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
            hexadecimal characters";
        errors.invalid_str(path, uid, why);
    }
}

/// Checks the name of an attribute or a capacity, with or without a domain.
pub fn validate_qualified_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let mut parts = name.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(id), None, None) => validate_id(id, path, errors),
        (Some(domain), Some(id), None) => {
            match domain {
                "" => errors.invalid_str(path, "", "the domain must not be empty"),
                domain => volume_source::validate_driver(domain, path, errors),
            }
            match id {
                "" => errors.invalid_str(path, "", "the name must not be empty"),
                id => validate_id(id, path, errors),
            }
        }
        _ => {}
    }
}

/// Checks the name of an attribute that must state its domain.
pub fn validate_full_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    validate_qualified_name(name, path, errors);
    if !name.contains('/') {
        errors.invalid_str(path, name, "a fully qualified name must be a domain and a name separated by a slash");
    }
}

fn validate_id(id: &str, path: &Path<'_>, errors: &mut Errors) {
    if id.len() > ID_BYTES_MAX {
        errors.too_long(path, ID_BYTES_MAX);
    }
    names::check(path, id, names::c_identifier, errors);
}

/// Checks the selectors of devices; `stored` says that they were accepted before.
pub fn validate_selectors(selectors: &[Value], stored: bool, path: &Path<'_>, errors: &mut Errors) {
    each(selectors, SELECTORS_MAX, path, errors, &mut |selector, path, errors| {
        let path = path.child("cel");
        if selector.at(&["cel"]).is_null() {
            return errors.required(&path, "");
        }
        validate_expression(selector.str_at(&["cel", "expression"]), stored, &path.child("expression"), errors);
    });
}

fn validate_expression(text: &str, stored: bool, path: &Path<'_>, errors: &mut Errors) {
    if text.len() > EXPRESSION_BYTES_MAX {
        return errors.too_long(path, EXPRESSION_BYTES_MAX);
    }
    match with_room(|| selectors::compile(text, stored)) {
        Ok(_) => {}
        Err(Refused::Invalid(why)) => errors.invalid_str(path, text, why),
        Err(Refused::Internal(why)) => errors.push(ErrorKind::Internal, path, "", why),
        Err(Refused::CostExceeded) => errors.forbidden(path, "too complex, exceeds cost limit"),
    }
}

/// Checks a configuration for a driver; `stored` says that its parameters were accepted before.
pub fn validate_configuration(config: &Value, stored: bool, path: &Path<'_>, errors: &mut Errors) {
    let (opaque, path) = (config.at(&["opaque"]), path.child("opaque"));
    if opaque.is_null() {
        return errors.required(&path, "");
    }
    volume_source::validate_driver(opaque.str_at(&["driver"]), &path.child("driver"), errors);
    validate_parameters(opaque.at(&["parameters"]), stored, &path.child("parameters"), errors);
}

/// Checks an object whose content only a driver understands.
pub fn validate_parameters(parameters: &Value, stored: bool, path: &Path<'_>, errors: &mut Errors) {
    if parameters.is_null() {
        errors.required(path, "");
    } else if !stored && json::to_vec(parameters).len() > PARAMETERS_BYTES_MAX {
        errors.too_long(path, PARAMETERS_BYTES_MAX);
    } else if let Some(why) = parameters.hole().map(json::Error::from) {
        errors.invalid_str(path, "<value omitted>", format!("error parsing data as JSON: {why}"));
    } else if parameters.as_object().is_none() {
        errors.invalid_str(path, "<value omitted>", "must be a valid JSON object");
    }
}

/// Checks a taint.
pub fn validate_taint(taint: &Value, path: &Path<'_>, errors: &mut Errors) {
    validate_key_and_value(taint, path, errors);
    names::check_choice(&path.child("effect"), taint.str_at(&["effect"]), &EFFECTS, errors);
}

/// Checks a taint whose effect was accepted before.
pub fn validate_key_and_value(taint: &Value, path: &Path<'_>, errors: &mut Errors) {
    labels::validate_label_key(taint.str_at(&["key"]), &path.child("key"), errors);
    names::check(&path.child("value"), taint.str_at(&["value"]), names::label_value, errors);
}

/// Checks a toleration of taints.
pub fn validate_toleration(toleration: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (key, value) = (toleration.str_at(&["key"]), toleration.str_at(&["value"]));
    if !key.is_empty() {
        labels::validate_label_key(key, &path.child("key"), errors);
    }
    match toleration.str_at(&["operator"]) {
        "Exists" if value.is_empty() => {}
        "Exists" => errors.invalid_str(&path.child("value"), value, "must be empty for operator `Exists`"),
        "Equal" => names::check(&path.child("value"), value, names::label_value, errors),
        operator => names::check_choice(&path.child("operator"), operator, &["Equal", "Exists"], errors),
    }
    let effect = toleration.str_at(&["effect"]);
    if !effect.is_empty() {
        names::check_choice(&path.child("effect"), effect, &EFFECTS, errors);
    }
}

/// Checks the conditions that bindings to a device wait for.
pub fn validate_binding(owner: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (waited, failures) = ("bindingConditions", "bindingFailureConditions");
    let conditions = owner.list_at(&[waited]);
    let failed = owner.list_at(&[failures]);
    for (field, list) in [(waited, conditions), (failures, failed)] {
        each(list, BINDING_CONDITIONS_MAX, &path.child(field), errors, &mut |name, path, errors| {
            labels::validate_label_key(name.as_str().unwrap_or(""), path, errors);
        });
    }
    for (field, list) in [(waited, conditions), (failures, failed)] {
        let path = path.child(field);
        for (index, name) in list.iter().enumerate() {
            if list[..index].contains(name) {
                errors.duplicate(&path.index(index), name);
            }
            if field == failures && conditions.contains(name) {
                let why = "bindingFailureConditions must not overlap with bindingConditions";
                errors.invalid(&path.index(index), name, why);
            }
        }
    }
    if conditions.is_empty() && !failed.is_empty() {
        let why = "bindingConditions are required to use bindingFailureConditions";
        errors.invalid(&path.child(waited), owner.at(&[waited]), why);
    }
    if failed.is_empty() && !conditions.is_empty() {
        let why = "bindingFailureConditions are required to use bindingConditions";
        errors.invalid(&path.child(failures), owner.at(&[failures]), why);
    }
}
