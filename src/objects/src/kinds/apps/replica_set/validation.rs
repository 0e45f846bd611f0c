//! Validation of ReplicaSets.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::{replicas, templates};
use crate::rules::numbers;

pub(super) fn validate(set: &Value, errors: &mut Errors) {
    check(set, None, errors);
}

pub(super) fn validate_update(set: &Value, old: &Value, errors: &mut Errors) {
    check(set, Some(old), errors);
    replicas::validate_same_selector(set, old, errors);
}

fn check(set: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = set.at(&["spec"]);
    numbers::all_not_negative(&Path::root("spec"), spec, &["replicas", "minReadySeconds"], errors);
    replicas::validate_selector_and_template(spec, &templates::options(old), errors);
}

pub(super) fn validate_status(set: &Value, _: &Value, errors: &mut Errors) {
    replicas::validate_set_counts(set.at(&["status"]), errors);
}
