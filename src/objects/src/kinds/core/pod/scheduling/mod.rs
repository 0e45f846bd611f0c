//! Validation of affinity and tolerations. `spread` checks topology spread constraints.

pub(super) mod spread;

use flotilla_proto::value::Value;

use super::spec::Options;
use crate::field::{Errors, Path};
use crate::rules::{labels, names, node_selector};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const POD_KINDS: [&str; 2] = ["podAffinity", "podAntiAffinity"];

/// Checks `affinity`.
pub fn validate_affinity(affinity: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    if affinity.is_null() {
        return;
    }
    let node = affinity.at(&["nodeAffinity"]);
    if !node.is_null() {
        let path = path.child("nodeAffinity");
        let required = node.at(&[REQUIRED]);
        if !required.is_null() {
            node_selector::validate(required, options.any_node_affinity_value, &path.child(REQUIRED), errors);
        }
        let preferred = path.child(PREFERRED);
        for (n, term) in node.list_at(&[PREFERRED]).iter().enumerate() {
            let path = preferred.index(n);
            weight(term, &path, errors);
            node_selector::validate_term(term.at(&["preference"]), true, &path.child("preference"), errors);
        }
    }
    for kind in POD_KINDS {
        let pods = affinity.at(&[kind]);
        let path = path.child(kind);
        let required = path.child(REQUIRED);
        for (n, term) in pods.list_at(&[REQUIRED]).iter().enumerate() {
            pod_term(term, options.any_selector_value, &required.index(n), errors);
        }
        let preferred = path.child(PREFERRED);
        for (n, weighted) in pods.list_at(&[PREFERRED]).iter().enumerate() {
            let path = preferred.index(n);
            weight(weighted, &path, errors);
            let term = weighted.at(&["podAffinityTerm"]);
            pod_term(term, options.any_selector_value, &path.child("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let weight = term.int_at(&["weight"]).unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.invalid(&path.child("weight"), &weight.into(), "must be in the range 1-100");
    }
}

fn term_selectors(term: &Value, any_value: bool, path: &Path<'_>, errors: &mut Errors) {
    let options = labels::SelectorOptions { any_value, ..Default::default() };
    for key in ["labelSelector", "namespaceSelector"] {
        labels::validate_selector(term.at(&[key]), options, &path.child(key), errors);
    }
}

fn pod_term(term: &Value, any_value: bool, path: &Path<'_>, errors: &mut Errors) {
    term_selectors(term, any_value, path, errors);
    for namespace in term.list_at(&["namespaces"]) {
        names::check(&path.child("namespace"), namespace.as_str().unwrap_or(""), names::dns1123_label, errors);
    }
    spread::match_and_mismatch_keys(term, path, errors);
    let key = term.str_at(&["topologyKey"]);
    let key_path = path.child("topologyKey");
    if key.is_empty() {
        errors.required(&key_path, "can not be empty");
    }
    labels::validate_label_key(key, &key_path, errors);
}

/// Returns whether an affinity term of the stored object has an invalid selector.
pub fn has_invalid_selector(spec: &Value) -> bool {
    let mut errors = Errors::default();
    let path = Path::root("");
    for kind in POD_KINDS {
        let pods = spec.at(&["affinity", kind]);
        let preferred = pods.list_at(&[PREFERRED]).iter().map(|weighted| weighted.at(&["podAffinityTerm"]));
        for term in pods.list_at(&[REQUIRED]).iter().chain(preferred) {
            term_selectors(term, false, &path, &mut errors);
        }
    }
    !errors.is_empty()
}

/// Returns whether the required node affinity of the stored object has a value that no label can have.
pub fn has_impossible_node_affinity(spec: &Value) -> bool {
    node_selector::has_impossible_value(spec.at(&["affinity", "nodeAffinity", REQUIRED]))
}

/// Checks `tolerations`.
pub fn validate_tolerations(tolerations: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (n, toleration) in tolerations.iter().enumerate() {
        validate_toleration(toleration, &path.index(n), errors);
    }
}

fn validate_toleration(toleration: &Value, path: &Path<'_>, errors: &mut Errors) {
    let text = |key: &str| toleration.str_at(&[key]);
    let (key, operator, value, effect) = (text("key"), text("operator"), text("value"), text("effect"));
    let operator_path = path.child("operator");
    if !key.is_empty() {
        labels::validate_label_key(key, &path.child("key"), errors);
    } else if operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.invalid_str(&operator_path, operator, why);
    }
    if !toleration.at(&["tolerationSeconds"]).is_null() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.invalid_str(&path.child("effect"), effect, why);
    }
    match operator {
        "Equal" | "" => {
            let messages = names::label_value(value);
            if !messages.is_empty() {
                errors.invalid_str(&operator_path, value, messages.join(";"));
            }
        }
        "Exists" if !value.is_empty() => {
            errors.invalid_str(&operator_path, value, "value must be empty when `operator` is 'Exists'");
        }
        "Exists" => {}
        "Lt" | "Gt" => errors.not_supported(&operator_path, operator, &["Equal", "Exists", "Lt", "Gt"]),
        other => errors.not_supported(&operator_path, other, &["Equal", "Exists"]),
    }
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    if !effect.is_empty() && !effects.contains(&effect) {
        errors.not_supported(&path.child("effect"), effect, &effects);
    }
}
