//! Validation of Deployments.

use flotilla_proto::value::Value;

use crate::field::{ErrorKind, Errors, Path};
use crate::kinds::templates;
use crate::rules::{metadata, numbers, selector, shown};

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
const MORE: &str = "cannot be greater than status.replicas";

pub(super) fn validate(deployment: &Value, errors: &mut Errors) {
    check(deployment, None, errors);
}

pub(super) fn validate_update(deployment: &Value, old: &Value, errors: &mut Errors) {
    check(deployment, Some(old), errors);
    let (new, was) = (deployment.at(&["spec", "selector"]), old.at(&["spec", "selector"]));
    let spec = Path::root("spec");
    metadata::immutable(&spec.child("selector"), new, was, errors);
}

fn check(deployment: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = deployment.at(&["spec"]);
    let path = Path::root("spec");
    numbers::not_negative(&path.child("replicas"), spec.at(&["replicas"]), errors);
    replica_template(spec, "deployment", &templates::options(old), errors);
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

/// Checks selector and template of a Deployment or ReplicaSet.
pub fn replica_template(
    spec: &Value,
    kind: &str,
    options: &crate::kinds::core::pod::spec::Options,
    errors: &mut Errors,
) {
    let path = Path::root("spec");
    let own = spec.at(&["selector"]);
    selector::required(own, kind, &path.child("selector"), errors);
    if !selector::is_understood(own) {
        return errors.invalid(&path.child("selector"), own, "invalid label selector");
    }
    let template = spec.at(&["template"]);
    let path = path.child("template");
    selector::matches_template(own, template, &path, errors);
    templates::validate_endless(template, "ReplicaSet", &path, options, errors);
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
        _ => unsupported(path, "DeploymentStrategy", strategy, &["Recreate", "RollingUpdate"], errors),
    }
}

/// Adds the error that the type of a strategy is not allowed; the message shows the whole strategy.
pub fn unsupported(path: &Path<'_>, structure: &str, strategy: &Value, allowed: &[&str], errors: &mut Errors) {
    let allowed: Vec<String> = allowed.iter().map(|word| crate::field::quote(word)).collect();
    let detail = format!("supported values: {}", allowed.join(", "));
    errors.push(ErrorKind::NotSupported, path, shown::text(structure, strategy), detail);
}

pub(super) fn validate_status(deployment: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::root("status");
    let status = deployment.at(&["status"]);
    numbers::all_not_negative(&path, status, &COUNTS, errors);
    let pairs = [
        ("updatedReplicas", "replicas", MORE),
        ("readyReplicas", "replicas", MORE),
        ("availableReplicas", "replicas", MORE),
        ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
    ];
    numbers::ordered(&path, status, &pairs, errors);
    numbers::collision_count(deployment, old, errors);
}
