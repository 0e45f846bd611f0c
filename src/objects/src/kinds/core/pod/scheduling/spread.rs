//! Validation of topology spread constraints, and of the label keys whose values terms copy from the pod.

use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::kinds::core::pod::spec::Options;
use crate::rules::{labels, numbers};

const NO_SELECTOR: &str = "must not be specified when labelSelector is not set";
const IN_BOTH: &str = "exists in both matchLabelKeys and labelSelector";

/// Checks `topologySpreadConstraints`.
pub fn validate(constraints: &[Value], path: &Path<'_>, options: &Options, errors: &mut Errors) {
    for (n, constraint) in constraints.iter().enumerate() {
        let path = path.index(n);
        let text = |key: &str| constraint.str_at(&[key]);
        numbers::positive(&path.child("maxSkew"), constraint.at(&["maxSkew"]), errors);
        let (key, action) = (text("topologyKey"), text("whenUnsatisfiable"));
        if key.is_empty() {
            errors.required(&path.child("topologyKey"), "can not be empty");
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        if !actions.contains(&action) {
            errors.not_supported(&path.child("whenUnsatisfiable"), action, &actions);
        }
        let same =
            |other: &Value| other.str_at(&["topologyKey"]) == key && other.str_at(&["whenUnsatisfiable"]) == action;
        if constraints[n + 1..].iter().any(same) {
            let shown = Value::from(format!("{{{key}, {action}}}"));
            errors.duplicate(&path.child("{topologyKey, whenUnsatisfiable}"), &shown);
        }
        min_domains(constraint.at(&["minDomains"]), action, &path.child("minDomains"), errors);
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let policy = constraint.at(&[key]).as_str().filter(|policy| !matches!(*policy, "Honor" | "Ignore"));
            if let Some(policy) = policy {
                errors.not_supported(&path.child(key), policy, &["Honor", "Ignore"]);
            }
        }
        if options.old_spread_keys {
            match_keys(constraint, &path.child("matchLabelKeys"), errors);
        } else {
            match_and_mismatch_keys(constraint, &path, errors);
        }
        if !options.any_spread_selector {
            let selector = constraint.at(&["labelSelector"]);
            labels::validate_selector(selector, Default::default(), &path.child("labelSelector"), errors);
        }
    }
}

fn min_domains(domains: &Value, action: &str, path: &Path<'_>, errors: &mut Errors) {
    if domains.is_null() {
        return;
    }
    numbers::positive(path, domains, errors);
    if action != "DoNotSchedule" {
        let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.invalid(path, domains, why);
    }
}

/// Returns the keys that a selector names.
fn selector_keys(selector: &Value) -> impl Iterator<Item = &str> {
    let exact = selector.map_at(&["matchLabels"]).into_iter().flat_map(Map::keys);
    exact.chain(selector.list_at(&["matchExpressions"]).iter().map(|expression| expression.str_at(&["key"])))
}

/// Checks label keys by the older rule, for objects from before the server added the keys to selectors.
fn match_keys(constraint: &Value, path: &Path<'_>, errors: &mut Errors) {
    let keys = constraint.list_at(&["matchLabelKeys"]);
    let selector = constraint.at(&["labelSelector"]);
    if keys.is_empty() {
        return;
    }
    if selector.is_null() {
        errors.forbidden(path, NO_SELECTOR);
    }
    for (n, key) in keys.iter().filter_map(Value::as_str).enumerate() {
        labels::validate_label_key(key, &path.index(n), errors);
        if selector_keys(selector).any(|other| other == key) {
            errors.invalid_str(&path.index(n), key, IN_BOTH);
        }
    }
}

/// Checks `matchLabelKeys` and `mismatchLabelKeys`. The server has already added these keys to the selector, so a key
/// that the client also put there occurs twice.
pub fn match_and_mismatch_keys(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let selector = term.at(&["labelSelector"]);
    for list in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = term.list_at(&[list]);
        let path = path.child(list);
        if !keys.is_empty() && selector.is_null() {
            errors.forbidden(&path, NO_SELECTOR);
            continue;
        }
        for (n, key) in keys.iter().enumerate() {
            labels::validate_label_key(key.as_str().unwrap_or(""), &path.index(n), errors);
        }
    }
    let keys: Vec<&str> = term.list_at(&["matchLabelKeys"]).iter().filter_map(Value::as_str).collect();
    if keys.is_empty() {
        return;
    }
    let exact = selector.map_at(&["matchLabels"]);
    let expressions = selector.list_at(&["matchExpressions"]);
    for (n, expression) in expressions.iter().enumerate() {
        let key = expression.str_at(&["key"]);
        let Some(at) = keys.iter().rposition(|other| *other == key) else { continue };
        let earlier = expressions[..n].iter().any(|other| other.str_at(&["key"]) == key);
        if earlier || exact.is_some_and(|exact| exact.contains_key(key)) {
            errors.invalid_str(&path.index(at), key, IN_BOTH);
        }
    }
    let mismatch = term.list_at(&["mismatchLabelKeys"]);
    let list = path.child("matchLabelKeys");
    for (n, key) in keys.iter().enumerate() {
        if mismatch.iter().any(|other| other.as_str() == Some(key)) {
            errors.invalid_str(&list.index(n), key, "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}

/// Returns whether a selector of the stored object is invalid.
pub fn has_invalid_selector(spec: &Value) -> bool {
    breaks(spec, |constraint, path, errors| {
        labels::validate_selector(constraint.at(&["labelSelector"]), Default::default(), path, errors);
    })
}

/// Returns whether label keys of the stored object are invalid.
pub fn has_invalid_keys(spec: &Value) -> bool {
    breaks(spec, match_and_mismatch_keys)
}

fn breaks(spec: &Value, rule: fn(&Value, &Path<'_>, &mut Errors)) -> bool {
    let mut errors = Errors::default();
    let constraints = spec.list_at(&["topologySpreadConstraints"]);
    constraints.iter().for_each(|constraint| rule(constraint, &Path::root(""), &mut errors));
    !errors.is_empty()
}
