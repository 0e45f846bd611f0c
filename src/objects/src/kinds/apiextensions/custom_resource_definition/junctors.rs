//! Schemas under `allOf`, `anyOf`, `oneOf` and `not`: they may restrict values, but must not describe their structure.

use flotilla_proto::structural::Pattern;
use flotilla_proto::value::{Map, Value};

use super::parts::{self, ADDITIONAL, EMBEDDED, INT_OR_STRING, LIST_MAP_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE, RULES};
use super::structural::is_unset;
use crate::field::{Errors, Path};

const JUNCTORS: [&str; 3] = ["anyOf", "allOf", "oneOf"];
const EMPTY: &str = "must be empty to be structural";
const UNDEFINED: &str = "must be undefined to be structural";
const FALSE: &str = "must be false to be structural";

/// Keywords that describe structure, and the error about each of them under a junctor.
const STRUCTURE: [(&str, &str); 13] = [
    ("type", EMPTY),
    (ADDITIONAL, UNDEFINED),
    ("default", UNDEFINED),
    ("title", EMPTY),
    ("description", EMPTY),
    ("nullable", FALSE),
    (PRESERVE, FALSE),
    (EMBEDDED, FALSE),
    (INT_OR_STRING, FALSE),
    (LIST_MAP_KEYS, EMPTY),
    (LIST_TYPE, UNDEFINED),
    (MAP_TYPE, UNDEFINED),
    (RULES, EMPTY),
];

/// Checks the schemas under the junctors of a schema. They may state types only in the forms that mean "an integer or a
/// string".
pub fn validate_junctors(schema: &Value, path: &Path<'_>, errors: &mut Errors) {
    let first = parts::branches(schema, "allOf").first();
    let pair = first.filter(|first| is_int_or_string(first));
    validate_restrictions(schema, is_int_or_string(schema), pair.is_some(), path, errors);
}

/// Returns whether `anyOf` is exactly an integer and a string.
fn is_int_or_string(schema: &Value) -> bool {
    let is_only = |schema: &Value, kind: &str| {
        let mut members = schema.as_object().into_iter().flat_map(Map::iter);
        parts::kind(schema) == kind && members.all(|(keyword, value)| keyword == "type" || is_unset(value))
    };
    match parts::branches(schema, "anyOf") {
        [integer, text] => is_only(integer, "integer") && is_only(text, "string"),
        _ => false,
    }
}

fn validate_restrictions(schema: &Value, skip: bool, skip_in_first: bool, path: &Path<'_>, errors: &mut Errors) {
    for keyword in JUNCTORS.iter().filter(|keyword| !skip || **keyword != "anyOf") {
        for (index, branch) in parts::branches(schema, keyword).iter().enumerate() {
            let skip = skip_in_first && *keyword == "allOf" && index == 0;
            validate_nested(branch, skip, &path.child(keyword).index(index), errors);
        }
    }
    if let Some(not) = schema.get("not").filter(|not| !not.is_null()) {
        validate_nested(not, false, &path.child("not"), errors);
    }
    let pattern = schema.str_at(&["pattern"]);
    if !pattern.is_empty()
        && let Some(fault) = Pattern::new(pattern).fault()
    {
        let why = format!("must be a valid regular expression, but isn't: {fault}");
        errors.invalid_str(&path.child("pattern"), pattern, why);
    }
}

fn validate_nested(schema: &Value, skip: bool, path: &Path<'_>, errors: &mut Errors) {
    validate_restrictions(schema, skip, false, path, errors);
    if let Some(items) = parts::items(schema) {
        validate_nested(items, false, &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, property) in parts::members(schema, "properties") {
        validate_nested(property, false, &properties.key(name), errors);
    }
    for (keyword, why) in STRUCTURE.iter().filter(|(keyword, _)| states(schema, keyword)) {
        errors.forbidden(&path.child(keyword), *why);
    }
    if parts::property(schema, "metadata").is_some() {
        errors.forbidden(&properties.key("metadata"), "must not be specified in a nested context");
    }
}

/// Returns whether a schema sets a structural keyword.
fn states(schema: &Value, keyword: &str) -> bool {
    match keyword {
        "default" | LIST_TYPE | MAP_TYPE => parts::has(schema, keyword),
        LIST_MAP_KEYS | RULES => parts::is_filled(schema, keyword),
        _ => !is_unset(schema.at(&[keyword])),
    }
}

/// Checks that `schema` describes every field that the junctors of `restricting` restrict.
pub fn validate_completeness(
    restricting: &Value,
    schema: &Value,
    path: &Path<'_>,
    from: &Path<'_>,
    errors: &mut Errors,
) {
    if let Some(not) = restricting.get("not").filter(|not| !not.is_null()) {
        validate_places(not, schema, path, &from.child("not"), errors);
    }
    for keyword in JUNCTORS {
        for (index, branch) in parts::branches(restricting, keyword).iter().enumerate() {
            validate_places(branch, schema, path, &from.child(keyword).index(index), errors);
        }
    }
}

fn validate_places(restricting: &Value, schema: &Value, path: &Path<'_>, from: &Path<'_>, errors: &mut Errors) {
    validate_completeness(restricting, schema, path, from, errors);
    let mut validate = |part: &Value, place: Option<&Value>, path: &Path<'_>, from: &Path<'_>| match place {
        Some(place) => validate_places(part, place, path, from, errors),
        None => errors.required(path, format!("because it is defined in {from}")),
    };
    if let Some(items) = parts::items(restricting) {
        validate(items, parts::items(schema), &path.child("items"), &from.child("items"));
    }
    let (path, from) = (path.child("properties"), from.child("properties"));
    for (name, property) in parts::members(restricting, "properties") {
        validate(property, parts::property(schema, name), &path.key(name), &from.key(name));
    }
}
