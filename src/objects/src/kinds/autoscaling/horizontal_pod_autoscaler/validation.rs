//! Validation of HorizontalPodAutoscalers.

use flotilla_proto::value::Value;

use super::metrics;
use crate::api_version;
use crate::field::{Errors, Path};
use crate::rules::{names, numbers, resources};

/// Longest period that a scaling policy looks back, in seconds.
const PERIOD_SECONDS_MAX: i64 = 1800;
/// Longest stabilization window, in seconds.
const WINDOW_SECONDS_MAX: i64 = 3600;

/// The tolerated errors in a reference to an object.
#[derive(Clone, Copy, Default)]
pub(super) struct Reference {
    /// The version may be anything.
    pub any_version: bool,
    /// The group may be empty, which means the core group.
    pub core_group: bool,
}

pub(super) fn validate(scaler: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = scaler.at(&["spec"]);
    let path = Path::root("spec");
    let number = |object: &Value, key: &str| object.int_at(&["spec", key]);
    let (min, max) = (number(scaler, "minReplicas"), number(scaler, "maxReplicas").unwrap_or(0));
    let lowest = i64::from(old.and_then(|old| number(old, "minReplicas")) != Some(0));
    let max_path = path.child("maxReplicas");
    if let Some(min) = min.filter(|min| *min < lowest) {
        let why = format!("must be greater than or equal to {lowest}");
        errors.invalid(&path.child("minReplicas"), &min.into(), why);
    }
    if max == 0 {
        errors.required(&max_path, "must be set and greater than 0");
    } else if max < 0 {
        errors.invalid(&max_path, &max.into(), "must be greater than or equal to 1");
    }
    if min.is_some_and(|min| max < min) {
        errors.invalid(&max_path, &max.into(), "must be greater than or equal to `minReplicas`");
    }
    let target = spec.at(&["scaleTargetRef"]);
    let same = |old: &Value| {
        let was = old.at(&["spec", "scaleTargetRef"]);
        ["apiVersion", "kind"].iter().all(|key| was.str_at(&[key]) == target.str_at(&[key]))
    };
    let any_version = old.is_some_and(same);
    let core_group = !any_version && target.str_at(&["kind"]) == "ReplicationController";
    reference(target, Reference { any_version, core_group }, &path.child("scaleTargetRef"), errors);
    metrics::validate(spec, old, &path.child("metrics"), errors);
    let behavior = path.child("behavior");
    for key in ["scaleUp", "scaleDown"] {
        let rules = spec.at(&["behavior", key]);
        if !rules.is_null() {
            scaling_rules(rules, &behavior.child(key), errors);
        }
    }
}

/// Returns the fault of the version of a reference. Returns `None` if the version is valid.
pub(super) fn version_error(reference: &Value, options: Reference) -> Option<String> {
    let version = reference.str_at(&["apiVersion"]);
    if options.any_version {
        None
    } else if version.matches('/').count() > 1 {
        Some(format!("unexpected GroupVersion string: {version}"))
    } else {
        let group = api_version::group(version);
        (group.is_empty() && !options.core_group).then(|| "apiVersion must specify API group".into())
    }
}

/// Checks a reference to an object of any kind.
pub(super) fn reference(reference: &Value, options: Reference, path: &Path<'_>, errors: &mut Errors) {
    for key in ["kind", "name"] {
        match reference.str_at(&[key]) {
            "" => errors.required(&path.child(key), ""),
            text => names::check(&path.child(key), text, names::path_segment, errors),
        }
    }
    if let Some(why) = version_error(reference, options) {
        errors.invalid_str(&path.child("apiVersion"), reference.str_at(&["apiVersion"]), why);
    }
}

fn scaling_rules(rules: &Value, path: &Path<'_>, errors: &mut Errors) {
    let window = rules.at(&["stabilizationWindowSeconds"]);
    let window_path = path.child("stabilizationWindowSeconds");
    if window.as_int().is_some_and(|seconds| seconds < 0) {
        errors.invalid(&window_path, window, "must be greater than or equal to zero");
    }
    if window.as_int().is_some_and(|seconds| seconds > WINDOW_SECONDS_MAX) {
        errors.invalid(&window_path, window, format!("must be less than or equal to {WINDOW_SECONDS_MAX}"));
    }
    let choices = ["Disabled", "Max", "Min"];
    if let Some(choice) = rules.at(&["selectPolicy"]).as_str().filter(|choice| !choices.contains(choice)) {
        errors.not_supported(&path.child("selectPolicy"), choice, &choices);
    }
    let policies = rules.list_at(&["policies"]);
    let policies_path = path.child("policies");
    if policies.is_empty() {
        errors.required(&policies_path, "must specify at least one Policy");
    }
    for (n, policy) in policies.iter().enumerate() {
        scaling_policy(policy, &policies_path.index(n), errors);
    }
    let tolerance = rules.at(&["tolerance"]);
    if !tolerance.is_null() {
        resources::check_not_negative(&path.child("tolerance"), tolerance, errors);
    }
}

fn scaling_policy(policy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = policy.str_at(&["type"]);
    if !matches!(kind, "Pods" | "Percent") {
        errors.not_supported(&path.child("type"), kind, &["Percent", "Pods"]);
    }
    for key in ["value", "periodSeconds"] {
        numbers::positive(&path.child(key), policy.at(&[key]), errors);
    }
    let period = policy.at(&["periodSeconds"]);
    if period.as_int().is_some_and(|seconds| seconds > PERIOD_SECONDS_MAX) {
        let why = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
        errors.invalid(&path.child("periodSeconds"), period, why);
    }
}

pub(super) fn validate_status(scaler: &Value, _: &Value, errors: &mut Errors) {
    let counts = ["currentReplicas", "desiredReplicas"];
    numbers::all_not_negative(&Path::root("status"), scaler.at(&["status"]), &counts, errors);
}
