//! The rules of webhooks and admission policies that select requests by operation and resource.

use std::collections::HashSet;

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::rules::{labels, names};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];

fn has_wildcard(list: &[Value]) -> bool {
    list.iter().any(|item| item.as_str() == Some("*"))
}

/// Checks an optional text: if it is set, it must be one of those allowed.
pub fn check_optional(path: &Path<'_>, value: &Value, allowed: &[&str], errors: &mut Errors) {
    if let Some(text) = value.as_str()
        && !allowed.contains(&text)
    {
        errors.not_supported(path, text, allowed);
    }
}

/// Checks a text that must be one of `allowed`. An empty text is an unsupported value, not a missing one.
pub fn check_set(path: &Path<'_>, value: &Value, allowed: &[&str], errors: &mut Errors) {
    if value.is_null() {
        errors.required(path, "");
    } else {
        check_optional(path, value, allowed, errors);
    }
}

/// Sets the defaults of rules.
pub fn default_rules(rules: Option<&mut Value>) {
    for rule in rules.and_then(Value::as_array_mut).into_iter().flatten() {
        if rule.at(&["scope"]).is_null() {
            rule.set_at(&["scope"], "*");
        }
    }
}

/// Sets the defaults of `matchConstraints` or `matchResources`.
pub fn default_match(resources: Option<&mut Value>) {
    let Some(resources) = resources.filter(|resources| !resources.is_null()) else { return };
    if resources.at(&["matchPolicy"]).is_null() {
        resources.set_at(&["matchPolicy"], "Equivalent");
    }
    for field in ["namespaceSelector", "objectSelector"] {
        if resources.at(&[field]).is_null() {
            resources.set_at(&[field], Value::object());
        }
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        default_rules(resources.get_mut(field));
    }
}

/// Checks a rule of operations and resources.
pub fn validate_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (place, operations) = (path.child("operations"), rule.list_at(&["operations"]));
    if operations.is_empty() {
        errors.required(&place, "");
    }
    if operations.len() > 1 && has_wildcard(operations) {
        let why = "if '*' is present, must not specify other operations";
        errors.invalid(&place, rule.at(&["operations"]), why);
    }
    for (index, operation) in operations.iter().enumerate() {
        check_optional(&place.index(index), operation, &OPERATIONS, errors);
    }
    for (field, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let (place, list) = (path.child(field), rule.list_at(&[field]));
        if list.is_empty() {
            errors.required(&place, "");
        }
        if list.len() > 1 && has_wildcard(list) {
            let why = format!("if '*' is present, must not specify other {what}");
            errors.invalid(&place, rule.at(&[field]), why);
        }
    }
    for (index, version) in rule.list_at(&["apiVersions"]).iter().enumerate() {
        if version.as_str() == Some("") {
            errors.required(&path.child("apiVersions").index(index), "");
        }
    }
    validate_resources(rule, &path.child("resources"), errors);
    check_optional(&path.child("scope"), rule.at(&["scope"]), &["*", "Cluster", "Namespaced"], errors);
}

fn validate_resources(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let list = rule.list_at(&["resources"]);
    if list.is_empty() {
        errors.required(path, "");
    }
    let (mut whole, mut everywhere) = (HashSet::new(), HashSet::new());
    let mut plain = false;
    for (index, item) in list.iter().enumerate() {
        let (place, text) = (path.index(index), item.as_str().unwrap_or(""));
        if text.is_empty() {
            errors.required(&place, "");
            continue;
        }
        let Some((resource, sub)) = text.split_once('/') else {
            // As in Kubernetes, the last of these items decides.
            plain = text != "*";
            continue;
        };
        if whole.contains(resource) {
            let why = format!("if '{resource}/*' is present, must not specify {text}");
            errors.invalid_str(&place, text, why);
        }
        if everywhere.contains(sub) {
            errors.invalid_str(&place, text, format!("if '*/{sub}' is present, must not specify {text}"));
        }
        if sub == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            everywhere.insert(sub);
        }
    }
    let all = rule.at(&["resources"]);
    if list.len() > 1 && list.iter().any(|item| item.as_str() == Some("*/*")) {
        errors.invalid(path, all, "if '*/*' is present, must not specify other resources");
    }
    if has_wildcard(list) && plain {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(path, all, why);
    }
}

/// Checks `matchConstraints` or `matchResources`; an absent one is valid.
pub fn validate_match(resources: &Value, path: &Path<'_>, errors: &mut Errors) {
    if resources.is_null() {
        return;
    }
    check_set(&path.child("matchPolicy"), resources.at(&["matchPolicy"]), &MATCH_POLICIES, errors);
    for field in ["namespaceSelector", "objectSelector"] {
        let (selector, place) = (resources.at(&[field]), path.child(field));
        if selector.is_null() {
            errors.required(&place, "");
        } else {
            labels::validate_selector(selector, labels::SelectorOptions::default(), &place, errors);
        }
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in resources.list_at(&[field]).iter().enumerate() {
            let place = path.child(field);
            let place = place.index(index);
            let listed = rule.list_at(&["resourceNames"]);
            for (index, name) in listed.iter().enumerate() {
                let place = place.child("resourceNames");
                let place = place.index(index);
                names::check(&place, name.as_str().unwrap_or(""), names::path_segment, errors);
                if listed[..index].contains(name) {
                    errors.duplicate(&place, name);
                }
            }
            validate_rule(rule, &place, errors);
        }
    }
}
