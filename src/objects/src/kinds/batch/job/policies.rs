//! Validation of the policies that say when a Job fails, succeeds or replaces its pods.

use std::collections::HashSet;

use flotilla_proto::value::Value;

use super::indexes;
use crate::field::{ErrorKind, Errors, Path};
use crate::rules::{names, numbers, shown};

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const PATTERNS_MAX: usize = 20;
/// Most bytes in a set of indexes.
const INDEXES_BYTES_MAX: usize = 64 << 10;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

/// Checks the policies of a Job's spec.
pub fn validate(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let failure = spec.at(&["podFailurePolicy"]);
    if !failure.is_null() {
        failure_policy(spec, failure, &path.child("podFailurePolicy"), errors);
    }
    let success = spec.at(&["successPolicy"]);
    if !success.is_null() {
        let path = path.child("successPolicy");
        if spec.str_at(&["completionMode"]) == "Indexed" {
            success_policy(spec, success, &path, errors);
        } else {
            let shown = shown::text("SuccessPolicy", success);
            errors.push(ErrorKind::Invalid, &path, shown, "requires indexed completion mode");
        }
    }
    if let Some(policy) = spec.at(&["podReplacementPolicy"]).as_str() {
        let all = ["Failed", "TerminatingOrFailed"];
        let allowed = if failure.is_null() { &all[..] } else { &all[..1] };
        if !allowed.contains(&policy) {
            errors.not_supported(&path.child("podReplacementPolicy"), policy, allowed);
        }
    }
}

/// Adds the error for a missing word, with the allowed ones.
fn missing(path: &Path<'_>, allowed: &[&str], errors: &mut Errors) {
    let allowed: Vec<String> = allowed.iter().map(|word| crate::field::quote(word)).collect();
    errors.required(path, format!("valid values: [{}]", allowed.join(" ")));
}

fn one_of(path: &Path<'_>, word: &str, allowed: &[&str], errors: &mut Errors) {
    if word.is_empty() {
        missing(path, allowed, errors);
    } else if !allowed.contains(&word) {
        errors.not_supported(path, word, allowed);
    }
}

fn failure_policy(spec: &Value, policy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("rules");
    let rules = policy.list_at(&["rules"]);
    if rules.len() > RULES_MAX {
        errors.too_many(&path, rules.len(), RULES_MAX);
    }
    let lists = ["containers", "initContainers"].map(|list| spec.list_at(&["template", "spec", list]));
    let containers: HashSet<&str> = lists.into_iter().flatten().map(|container| container.str_at(&["name"])).collect();
    for (n, rule) in rules.iter().enumerate() {
        failure_rule(spec, rule, &containers, &path.index(n), errors);
    }
}

fn failure_rule(spec: &Value, rule: &Value, containers: &HashSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    let action = rule.str_at(&["action"]);
    let action_path = path.child("action");
    if action != "FailIndex" {
        one_of(&action_path, action, &ACTIONS, errors);
    } else if spec.at(&["backoffLimitPerIndex"]).is_null() {
        errors.invalid_str(&action_path, action, "requires the backoffLimitPerIndex to be set");
    }
    let codes = rule.at(&["onExitCodes"]);
    let patterns = rule.list_at(&["onPodConditions"]);
    if !codes.is_null() {
        exit_codes(codes, containers, &path.child("onExitCodes"), errors);
    }
    if !patterns.is_empty() {
        conditions(patterns, &path.child("onPodConditions"), errors);
    }
    let why = match (codes.is_null(), patterns.is_empty()) {
        (false, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (true, true) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    errors.push(ErrorKind::Invalid, path, "", why);
}

fn conditions(patterns: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if patterns.len() > PATTERNS_MAX {
        errors.too_many(path, patterns.len(), PATTERNS_MAX);
    }
    for (n, pattern) in patterns.iter().enumerate() {
        let path = path.index(n);
        names::check(&path.child("type"), pattern.str_at(&["type"]), names::qualified_name, errors);
        one_of(&path.child("status"), pattern.str_at(&["status"]), &["False", "True", "Unknown"], errors);
    }
}

fn exit_codes(codes: &Value, containers: &HashSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    let operator = codes.str_at(&["operator"]);
    one_of(&path.child("operator"), operator, &["In", "NotIn"], errors);
    if let Some(name) = codes.at(&["containerName"]).as_str().filter(|name| !containers.contains(name)) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.invalid_str(&path.child("containerName"), name, why);
    }
    let none = Value::Array(Vec::new());
    let list = codes.at(&["values"]).as_array().map_or(&none, |_| codes.at(&["values"]));
    let values: Vec<i64> = codes.list_at(&["values"]).iter().filter_map(Value::as_int).collect();
    let path = path.child("values");
    if values.is_empty() {
        errors.invalid(&path, list, "at least one value is required");
    } else if values.len() > EXIT_CODES_MAX {
        errors.too_many(&path, values.len(), EXIT_CODES_MAX);
    }
    let mut seen = HashSet::new();
    for (n, value) in values.iter().enumerate() {
        if operator == "In" && *value == 0 {
            errors.invalid(&path.index(n), &0.into(), "must not be 0 for the In operator");
        }
        if !seen.insert(*value) {
            errors.duplicate(&path.index(n), &(*value).into());
        }
    }
    if !values.is_sorted() {
        errors.invalid(&path, list, "must be ordered");
    }
}

fn success_policy(spec: &Value, policy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("rules");
    let rules = policy.list_at(&["rules"]);
    if rules.is_empty() {
        errors.required(&path, "at least one rules must be specified when the successPolicy is specified");
    }
    if rules.len() > RULES_MAX {
        errors.too_many(&path, rules.len(), RULES_MAX);
    }
    let completions = spec.int_at(&["completions"]).unwrap_or(0);
    for (n, rule) in rules.iter().enumerate() {
        success_rule(rule, completions, &path.index(n), errors);
    }
}

fn success_rule(rule: &Value, completions: i64, path: &Path<'_>, errors: &mut Errors) {
    let (count, set) = (rule.at(&["succeededCount"]), rule.at(&["succeededIndexes"]).as_str());
    if count.is_null() && set.is_none() {
        errors.required(path, "at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut total = 0;
    if let Some(set) = set {
        let path = path.child("succeededIndexes");
        if set.len() > INDEXES_BYTES_MAX {
            errors.too_long(&path, INDEXES_BYTES_MAX);
        }
        match indexes::count(set, completions) {
            Ok(count) => total = count,
            Err(why) => errors.invalid_str(&path, set, format!("error parsing succeededIndexes: {why}")),
        }
    }
    let Some(number) = count.as_int() else { return };
    let path = path.child("succeededCount");
    numbers::not_negative(&path, count, errors);
    if number > completions {
        let why = format!("must be less than or equal to {completions} (the number of specified completions)");
        errors.invalid(&path, count, why);
    }
    if set.is_some() && number > total {
        let what = "the number of indexes in the specified succeededIndexes field";
        errors.invalid(&path, count, format!("must be less than or equal to {total} ({what})"));
    }
}
