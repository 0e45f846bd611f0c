//! Validation of the spec of a Job, alone or in a CronJob.

use flotilla_proto::value::Value;

use super::policies;
use crate::field::{Errors, Path};
use crate::kinds::core::pod::spec::Options;
use crate::kinds::core::pod::template;
use crate::rules::labels::{self, SelectorOptions};
use crate::rules::{names, numbers, selector};

const PARALLEL_INDEXED_MAX: i64 = 100_000;
const FAILED_INDEXES_MAX: i64 = 100_000;
const MANY_COMPLETIONS: i64 = 100_000;
const HIGH_COMPLETIONS_MAX: i64 = 10_000;
/// Most bytes in the name of another controller.
const MANAGED_BY_BYTES_MAX: usize = 63;
const INDEXED_ONLY: &str = "requires indexed completion mode";

/// Checks the spec of a Job.
pub fn validate_job(spec: &Value, path: &Path<'_>, options: &Options, any_value: bool, errors: &mut Errors) {
    validate(spec, path, options, errors);
    let own = spec.at(&["selector"]);
    let any_value = any_value || options.any_selector_value;
    if own.is_null() {
        errors.required(&path.child("selector"), "");
    } else {
        let options = SelectorOptions { any_value, ..Default::default() };
        labels::validate_selector(own, options, &path.child("selector"), errors);
    }
    if selector::is_understood(own) {
        selector::matches_template(own, spec.at(&["template"]), &path.child("template"), errors);
    }
}

/// Checks everything but the selector.
pub fn validate(spec: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    numbers::all_not_negative(path, spec, &counts, errors);
    if !spec.at(&["maxFailedIndexes"]).is_null() && spec.at(&["backoffLimitPerIndex"]).is_null() {
        errors.required(&path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    if let Some(manager) = spec.at(&["managedBy"]).as_str() {
        managed_by(manager, &path.child("managedBy"), errors);
    }
    let mode = spec.at(&["completionMode"]).as_str();
    if let Some(mode) = mode.filter(|mode| !matches!(*mode, "NonIndexed" | "Indexed")) {
        errors.not_supported(&path.child("completionMode"), mode, &["NonIndexed", "Indexed"]);
    }
    match mode {
        Some("Indexed") => indexed(spec, path, errors),
        None | Some("NonIndexed") => {
            for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                let value = spec.at(&[key]);
                if !value.is_null() {
                    errors.invalid(&path.child(key), value, INDEXED_ONLY);
                }
            }
        }
        Some(_) => {}
    }
    policies::validate(spec, path, errors);
    let template = spec.at(&["template"]);
    let template_path = path.child("template");
    template::validate(template, &template_path, options, errors);
    restart_policy(spec, &template_path.child("spec"), errors);
}

fn restart_policy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("restartPolicy");
    match spec.str_at(&["template", "spec", "restartPolicy"]) {
        "Always" | "" => errors.required(&path, "valid values: \"OnFailure\", \"Never\""),
        "Never" => {}
        "OnFailure" if spec.at(&["podFailurePolicy"]).is_null() => {}
        policy @ "OnFailure" => {
            errors.invalid_str(&path, policy, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        other => errors.not_supported(&path, other, &["OnFailure", "Never"]),
    }
}

fn managed_by(manager: &str, path: &Path<'_>, errors: &mut Errors) {
    names::check_domain_path(path, manager, errors);
    if manager.len() > MANAGED_BY_BYTES_MAX {
        errors.too_long(path, MANAGED_BY_BYTES_MAX);
    }
}

fn indexed(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let number = |key: &str| spec.int_at(&[key]);
    let (completions, parallelism, failed) = (number("completions"), number("parallelism"), number("maxFailedIndexes"));
    let (parallelism_path, failed_path) = (path.child("parallelism"), path.child("maxFailedIndexes"));
    if completions.is_none() {
        errors.required(&path.child("completions"), "when completion mode is Indexed");
    }
    let mut at_most = |path: &Path<'_>, value: Option<i64>, max: i64, what: String| {
        if let Some(value) = value.filter(|value| *value > max) {
            errors.invalid(path, &value.into(), format!("must be less than or equal to {what}"));
        }
    };
    let indexed = format!("{PARALLEL_INDEXED_MAX} when completion mode is Indexed");
    at_most(&parallelism_path, parallelism, PARALLEL_INDEXED_MAX, indexed);
    if let Some(completions) = completions {
        at_most(&failed_path, failed, completions, "completions".into());
    }
    at_most(&failed_path, failed, FAILED_INDEXES_MAX, FAILED_INDEXES_MAX.to_string());
    let high = completions.is_some_and(|completions| completions > MANY_COMPLETIONS);
    if !high || number("backoffLimitPerIndex").is_none() {
        return;
    }
    let what = format!(
        "{HIGH_COMPLETIONS_MAX} when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
    );
    if failed.is_none() {
        errors.required(&failed_path, format!("must be specified when completions is above {MANY_COMPLETIONS}"));
    }
    let mut at_most = |path: &Path<'_>, value: Option<i64>| {
        if let Some(value) = value.filter(|value| *value > HIGH_COMPLETIONS_MAX) {
            errors.invalid(path, &value.into(), format!("must be less than or equal to {what}"));
        }
    };
    at_most(&parallelism_path, parallelism);
    at_most(&failed_path, failed);
}
