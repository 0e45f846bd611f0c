//! Validates changed objects. Errors in unchanged parts are tolerated (KEP-4008).

use flotilla_proto::structural::Structural;
use flotilla_proto::value::Value;

use super::check::{CheckedValue, check};
use super::{embedded, lists};
use crate::field::Errors;

/// Checks a whole object except its `metadata`, given the stored object.
pub fn validate_update(schema: &Structural, object: &Value, old: &Value, errors: &mut Errors) {
    values(schema, object, old, errors);
    embedded::validate(schema, object, errors);
    lists_unless_broken(schema, object, old, errors);
}

/// Checks the parts that a write of `/status` may change; the rest equals the stored object.
pub fn validate_status_update(schema: &Structural, object: &Value, old: &Value, errors: &mut Errors) {
    if let (Some(status), Some(of)) = (object.get("status"), schema.property("status")) {
        let old = old.get("status");
        check(of, CheckedValue { value: status, old, at: "status" }, errors);
    }
    lists_unless_broken(schema, object, old, errors);
}

/// Checks values against the schema, without embedded objects and lists: the first part of [`validate_update`].
pub fn values(schema: &Structural, object: &Value, old: &Value, errors: &mut Errors) {
    check(schema, CheckedValue { value: object, old: Some(old), at: "" }, errors);
}

/// Checks lists for repeated items, unless the stored object already had some.
fn lists_unless_broken(schema: &Structural, object: &Value, old: &Value, errors: &mut Errors) {
    let mut found = Errors::default();
    lists::validate(schema, object, &mut found);
    if found.is_empty() {
        return;
    }
    let mut before = Errors::default();
    lists::validate(schema, old, &mut before);
    if before.is_empty() {
        errors.append(found.0);
    }
}
