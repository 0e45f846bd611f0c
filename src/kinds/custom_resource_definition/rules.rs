//! The rules of a schema as far as they can be judged without compiling them ("Validation rules").

use flotilla_proto::value::Value;

use super::field_path;
use super::parts::{self, RULES};
use crate::field::{Errors, Path};

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
const LINE_BREAKS: &str = "must not contain line breaks";
const NOT_EMPTY: &str = "must be non-empty if specified";

/// Checks the texts of the rules of a schema.
pub fn validate(schema: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, rule) in parts::branches(schema, RULES).iter().enumerate() {
        validate_rule(rule, schema, &path.child(RULES).index(index), errors);
    }
}

fn is_broken(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

fn is_blank(text: &str) -> bool {
    !text.is_empty() && text.trim().is_empty()
}

fn validate_rule(rule: &Value, schema: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (text, message) = (rule.str_at(&["rule"]).trim(), rule.str_at(&["message"]));
    if text.is_empty() {
        errors.required(&path.child("rule"), "rule is not specified");
    } else if is_blank(message) {
        errors.invalid_str(&path.child("message"), message, NOT_EMPTY);
    } else if is_broken(message.trim()) {
        errors.invalid_str(&path.child("message"), message, LINE_BREAKS);
    } else if is_broken(text) && message.is_empty() {
        errors.required(&path.child("message"), "message must be specified if rule contains line breaks");
    }
    if is_blank(rule.str_at(&["messageExpression"])) {
        let why = "messageExpression must be non-empty if specified";
        errors.required(&path.child("messageExpression"), why);
    }
    if let Some(reason) = rule.at(&["reason"]).as_str().filter(|reason| !REASONS.contains(reason)) {
        errors.not_supported(&path.child("reason"), reason, &REASONS);
    }
    let (field, place) = (rule.str_at(&["fieldPath"]), path.child("fieldPath"));
    if is_blank(field) {
        errors.invalid_str(&place, field, NOT_EMPTY);
    }
    if is_broken(field) {
        errors.invalid_str(&place, field, LINE_BREAKS);
    }
    if !field.is_empty() && parts::is_expressible(schema) && field_path::find(field, schema, true).is_err() {
        errors.invalid_str(&place, field, "must be a valid path");
    }
}
