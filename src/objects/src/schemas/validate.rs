//! Validates new objects.

use flotilla_proto::structural::Structural;
use flotilla_proto::value::Value;

use super::check::{CheckedValue, check};
use super::{embedded, lists};
use crate::field::Errors;

/// Checks a whole object except its `metadata`, which the general rules have checked before.
pub fn validate(schema: &Structural, object: &Value, errors: &mut Errors) {
    values(schema, object, errors);
    embedded::validate(schema, object, errors);
    lists::validate(schema, object, errors);
}

/// Checks values against the schema, without embedded objects and lists: the first part of [`validate`].
pub fn values(schema: &Structural, object: &Value, errors: &mut Errors) {
    check(schema, CheckedValue { value: object, old: None, at: "" }, errors);
}

/// Checks a value that stands at the path `at` of another object, such as the default of a schema. Paths in messages
/// begin below `at`.
pub fn value_at(schema: &Structural, value: &Value, at: &str, errors: &mut Errors) {
    check(schema, CheckedValue { value, old: None, at }, errors);
}
