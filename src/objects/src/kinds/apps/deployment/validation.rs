//! Validation of Deployments.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::{replicas, templates};
use crate::rules::numbers;

const COUNTS: [&str; 8] = [
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
];
const PARTS: [&str; 3] = ["updatedReplicas", "readyReplicas", "availableReplicas"];

pub(super) fn validate(deployment: &Value, errors: &mut Errors) {
    check(deployment, None, errors);
}

pub(super) fn validate_update(deployment: &Value, old: &Value, errors: &mut Errors) {
    check(deployment, Some(old), errors);
    replicas::validate_same_selector(deployment, old, errors);
}

fn check(deployment: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = deployment.at(&["spec"]);
    let path = Path::root("spec");
    numbers::not_negative(&path.child("replicas"), spec.at(&["replicas"]), errors);
    replicas::validate_selector_and_template(spec, &templates::options(old), errors);
    strategy(spec.at(&["strategy"]), &path.child("strategy"), errors);
    numbers::all_not_negative(&path, spec, &["minReadySeconds", "revisionHistoryLimit"], errors);
    rollback(deployment, &path, errors);
    let deadline = spec.at(&["progressDeadlineSeconds"]);
    let deadline_path = path.child("progressDeadlineSeconds");
    numbers::not_negative(&deadline_path, deadline, errors);
    if deadline.as_int().is_some_and(|seconds| seconds <= spec.int_at(&["minReadySeconds"]).unwrap_or(0)) {
        errors.invalid(&deadline_path, deadline, "must be greater than minReadySeconds");
    }
}

fn rollback(deployment: &Value, path: &Path<'_>, errors: &mut Errors) {
    let revision = deployment.str_at(&["metadata", "annotations", "deprecated.deployment.rollback.to"]);
    if let Some(revision) = revision.parse::<i64>().ok().filter(|revision| *revision < 0) {
        let why = "must be greater than or equal to 0";
        errors.invalid(&path.child("rollback").child("version"), &revision.into(), why);
    }
}

fn strategy(strategy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rolling = strategy.at(&["rollingUpdate"]);
    let rolling_path = path.child("rollingUpdate");
    match strategy.str_at(&["type"]) {
        "Recreate" if !rolling.is_null() => {
            errors.forbidden(&rolling_path, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" if rolling.is_null() => {
            errors.required(&rolling_path, "this should be defaulted and never be nil");
        }
        "RollingUpdate" => {
            let (gone, extra) = (rolling.at(&["maxUnavailable"]), rolling.at(&["maxSurge"]));
            let gone_path = rolling_path.child("maxUnavailable");
            numbers::int_or_percent(&gone_path, gone, errors);
            numbers::int_or_percent(&rolling_path.child("maxSurge"), extra, errors);
            if numbers::amount(gone) == 0 && numbers::amount(extra) == 0 {
                errors.invalid(&gone_path, gone, "may not be 0 when `maxSurge` is 0");
            }
            numbers::at_most_whole(&gone_path, gone, errors);
        }
        _ => {
            let allowed = ["Recreate", "RollingUpdate"];
            replicas::strategy_not_supported(path, "DeploymentStrategy", strategy, &allowed, errors);
        }
    }
}

pub(super) fn validate_status(deployment: &Value, old: &Value, errors: &mut Errors) {
    let more_than_ready = "cannot be greater than readyReplicas";
    replicas::validate_counts(deployment.at(&["status"]), &COUNTS, &PARTS, more_than_ready, errors);
    numbers::collision_count(deployment, old, errors);
}
