//! Validation of selectors in kinds that own pods, and of the labels in their templates.

use flotilla_proto::value::{Map, Value};

use super::labels::{self, SelectorOptions};
use super::names;
use crate::field::{Errors, Path};

const MISMATCH: &str = "`selector` does not match template `labels`";

/// Returns whether a selector is valid. An absent one is valid, and selects nothing.
pub fn is_understood(selector: &Value) -> bool {
    let value = |value: &Value| names::label_value(value.as_str().unwrap_or("")).is_empty();
    let key = |key: &str| names::qualified_name(key).is_empty();
    let exact = selector.map_at(&["matchLabels"]).into_iter().flat_map(Map::iter).all(|(k, v)| key(k) && value(v));
    exact
        && selector.list_at(&["matchExpressions"]).iter().all(|expression| {
            let values = expression.list_at(&["values"]);
            let fits = match expression.str_at(&["operator"]) {
                "In" | "NotIn" => !values.is_empty(),
                "Exists" | "DoesNotExist" => values.is_empty(),
                _ => false,
            };
            fits && key(expression.str_at(&["key"])) && values.iter().all(value)
        })
}

/// Checks a selector that is required and must not select everything; `kind` is the name of the kind in errors.
pub fn required(selector: &Value, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    if selector.is_null() {
        return errors.required(path, "");
    }
    labels::validate_selector(selector, SelectorOptions::default(), path, errors);
    if labels::selects_everything(selector) {
        errors.invalid(path, selector, format!("empty selector is invalid for {kind}"));
    }
}

/// Checks that a valid selector selects the labels of a template. `path` is that of the template.
pub fn matches_template(selector: &Value, template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let own = template.at(&["metadata", "labels"]);
    if !labels::selects_everything(selector) && !labels::selector_matches(selector, own.as_object()) {
        let metadata = path.child("metadata");
        errors.invalid(&metadata.child("labels"), own, MISMATCH);
    }
}

/// As [`matches_template`], for the plain map that a ReplicationController has.
pub fn map_matches_template(selector: Option<&Map>, template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let own = template.at(&["metadata", "labels"]);
    if selector.is_some_and(|selector| !labels::map_matches(selector, own.as_object())) {
        let metadata = path.child("metadata");
        errors.invalid(&metadata.child("labels"), own, MISMATCH);
    }
}
