//! Validates new objects.

use flotilla_proto::structural::Structural;
use flotilla_proto::value::Value;

use super::check::{Subject, check};
use super::{embedded, lists};
use crate::field::Errors;

/// Checks a whole object except its `metadata`, which is checked before as that of any object.
pub fn validate(schema: &Structural, object: &Value, errors: &mut Errors) {
    values(schema, object, errors);
    embedded::validate(schema, object, errors);
    lists::validate(schema, object, errors);
}

/// Checks what the schema says of values alone; that is the first part of [`validate`].
pub fn values(schema: &Structural, object: &Value, errors: &mut Errors) {
    check(schema, Subject { value: object, old: None, at: "" }, errors);
}

/// Checks a value that stands in the field `at` of something else, as the default of a schema. Messages name places
/// below `at` only.
pub fn value_at(schema: &Structural, value: &Value, at: &str, errors: &mut Errors) {
    check(schema, Subject { value, old: None, at }, errors);
}
