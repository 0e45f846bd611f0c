//! Validation of ReplicaSets.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::apps::deployment::validation::replica_template;
use crate::kinds::templates;
use crate::rules::{metadata, numbers};

const COUNTS: [&str; 6] = [
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
];
const MORE: &str = "cannot be greater than status.replicas";

pub(super) fn validate(set: &Value, errors: &mut Errors) {
    check(set, None, errors);
}

pub(super) fn validate_update(set: &Value, old: &Value, errors: &mut Errors) {
    check(set, Some(old), errors);
    let spec = Path::root("spec");
    let (new, was) = (set.at(&["spec", "selector"]), old.at(&["spec", "selector"]));
    metadata::immutable(&spec.child("selector"), new, was, errors);
}

fn check(set: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = set.at(&["spec"]);
    numbers::all_not_negative(&Path::root("spec"), spec, &["replicas", "minReadySeconds"], errors);
    replica_template(spec, "deployment", &templates::options(old), errors);
}

/// Checks the counts of a ReplicaSet or ReplicationController.
pub fn counts(status: &Value, errors: &mut Errors) {
    let path = Path::root("status");
    numbers::all_not_negative(&path, status, &COUNTS, errors);
    let pairs = [
        ("fullyLabeledReplicas", "replicas", MORE),
        ("readyReplicas", "replicas", MORE),
        ("availableReplicas", "replicas", MORE),
        ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
    ];
    numbers::ordered(&path, status, &pairs, errors);
}

pub(super) fn validate_status(set: &Value, _: &Value, errors: &mut Errors) {
    counts(set.at(&["status"]), errors);
}
