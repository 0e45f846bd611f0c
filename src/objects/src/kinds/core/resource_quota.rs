//! ResourceQuotas: the limits and the scopes, which select objects.

use std::collections::BTreeSet;

use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path, shown};
use crate::printing::{Printer, config};
use crate::rules::{Generation, NameRule, Strategy, resources};

const PODS: [&str; 7] = ["pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

/// Rules of ResourceQuotas.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    returns_deleted: true,
    generation: Generation::ClientOwned,
    status: true,
    default,
    validate,
    validate_update,
    validate_status: |object, _, errors| validate_numbers(object, errors),
    warnings,
    printer: Some(Printer::of(config::resource_quota)),
    ..Strategy::DEFAULT
};

fn default(object: &mut Value) {
    for (part, list) in [("spec", "hard"), ("status", "hard"), ("status", "used")] {
        resources::round_up(object.get_mut(part).and_then(|part| part.get_mut(list)));
    }
}

fn validate(object: &Value, errors: &mut Errors) {
    validate_spec(object.at(&["spec"]), errors);
    validate_numbers(object, errors);
}

fn validate_list(list: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    for (name, value) in list.into_iter().flat_map(Map::iter) {
        resources::check_quota_name(&path.key(name), name, errors);
        resources::check_amount(&path.key(name), name, value, errors);
    }
}

fn validate_numbers(object: &Value, errors: &mut Errors) {
    validate_list(object.map_at(&["status", "hard"]), &Path::root("status.hard"), errors);
    validate_list(object.map_at(&["status", "used"]), &Path::root("status.used"), errors);
}

fn validate_spec(spec: &Value, errors: &mut Errors) {
    validate_list(spec.map_at(&["hard"]), &Path::root("spec.hard"), errors);
    let names: BTreeSet<&str> = spec.map_at(&["hard"]).into_iter().flat_map(Map::keys).collect();
    validate_scopes(spec, &names, errors);
    if !spec.at(&["scopeSelector"]).is_null() {
        validate_selector(spec, &names, errors);
    }
}

fn is_scope(scope: &str) -> bool {
    matches!(
        scope,
        "Terminating"
            | "NotTerminating"
            | "BestEffort"
            | "NotBestEffort"
            | "PriorityClass"
            | "VolumeAttributesClass"
            | "CrossNamespacePodAffinity"
    )
}

/// Returns whether a quota with this scope can limit this resource.
fn counts(scope: &str, name: &str) -> bool {
    match scope {
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            PODS.contains(&name)
        }
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

fn conflicts(scopes: &[&str]) -> usize {
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]]
        .iter()
        .filter(|pair| pair.iter().all(|scope| scopes.contains(scope)))
        .count()
}

fn validate_scopes(spec: &Value, names: &BTreeSet<&str>, errors: &mut Errors) {
    let (path, all) = (Path::root("spec.scopes"), spec.at(&["scopes"]));
    let scopes: Vec<&str> = spec.list_at(&["scopes"]).iter().filter_map(Value::as_str).collect();
    for scope in &scopes {
        if !is_scope(scope) {
            errors.invalid(&path, all, "unsupported scope");
        }
        for name in names {
            if resources::is_standard_for_quota(name) && !counts(scope, name) {
                errors.invalid(&path, all, "unsupported scope applied to resource");
            }
        }
    }
    for _ in 0..conflicts(&scopes) {
        errors.invalid(&path, all, "conflicting scopes");
    }
}

fn validate_selector(spec: &Value, names: &BTreeSet<&str>, errors: &mut Errors) {
    let path = Path::root("spec.scopeSelector.matchExpressions");
    let selector = spec.at(&["scopeSelector"]);
    let mut scopes = Vec::new();
    for requirement in selector.list_at(&["matchExpressions"]) {
        let (scope, operator) = (requirement.str_at(&["scopeName"]), requirement.str_at(&["operator"]));
        if !is_scope(scope) {
            errors.invalid_str(&path.child("scopeName"), scope, "unsupported scope");
        }
        for name in names {
            if resources::is_standard_for_quota(name) && !counts(scope, name) {
                let text = selector_shown(selector);
                let why = "unsupported scope applied to resource";
                errors.push(crate::field::ErrorKind::Invalid, &path, text, why);
            }
        }
        validate_operator(requirement, scope, operator, &path, errors);
        scopes.push(scope);
    }
    for _ in 0..conflicts(&scopes) {
        errors.invalid(&Path::root("spec.scopeSelector.matchExpressions"), spec.at(&["scopes"]), "conflicting scopes");
    }
}

fn validate_operator(requirement: &Value, scope: &str, operator: &str, path: &Path<'_>, errors: &mut Errors) {
    let bare = matches!(
        scope,
        "BestEffort" | "NotBestEffort" | "Terminating" | "NotTerminating" | "CrossNamespacePodAffinity"
    );
    if bare && operator != "Exists" {
        let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
            ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
            ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.invalid_str(&path.child("operator"), operator, why);
    }
    let values = requirement.list_at(&["values"]);
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            errors.required(&path.child("values"), why);
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            errors.invalid(&path.child("values"), requirement.at(&["values"]), why);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => errors.invalid_str(&path.child("operator"), operator, "not a valid selector operator"),
    }
}

/// Formats a scope selector for messages, under the reference's internal names.
fn selector_shown(selector: &Value) -> String {
    let expressions = selector.list_at(&["matchExpressions"]).iter().map(|requirement| {
        let (scope, operator) = (requirement.at(&["scopeName"]), requirement.at(&["operator"]));
        let values = requirement.at(&["values"]);
        format!("{{\"ScopeName\":{},\"Operator\":{},\"Values\":{}}}", shown(scope), shown(operator), shown(values))
    });
    format!("{{\"MatchExpressions\":[{}]}}", expressions.collect::<Vec<_>>().join(","))
}

fn validate_update(object: &Value, old: &Value, errors: &mut Errors) {
    validate_spec(object.at(&["spec"]), errors);
    let scopes = |object: &Value| -> BTreeSet<String> {
        object.list_at(&["spec", "scopes"]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if scopes(object) != scopes(old) {
        errors.invalid(&Path::root("spec.scopes"), object.at(&["spec", "scopes"]), crate::rules::metadata::IMMUTABLE);
    }
}

fn warnings(object: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    let Some(hard) = object.map_at(&["spec", "hard"]).filter(|_| old.is_none()) else { return };
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut request = format!("requests.{name}");
        if !hard.contains_key(&request) && matches!(name, "cpu" | "memory") {
            request = name.to_owned();
        }
        let limit = format!("limits.{name}");
        if let (Some(asked), Some(most)) = (hard.get(&request), hard.get(&limit))
            && resources::amount(asked) > resources::amount(most)
        {
            let (asked, most) = (resources::shown(asked), resources::shown(most));
            warnings.push(format!("ResourceQuota {request} ({asked}) should be less than {limit} ({most})"));
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn broken(spec: Value) -> Vec<String> {
        let mut errors = Errors::default();
        validate_spec(&spec, &mut errors);
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn scopes_must_fit_the_counted_resources() {
        assert!(broken(value!({"hard": {"pods": "1", "count/x.y": "5"}, "scopes": ["BestEffort"]})).is_empty());
        assert_eq!(
            broken(value!({"hard": {"services": "1"}, "scopes": ["BestEffort", "NotBestEffort"]}))
                .last()
                .map(String::as_str),
            Some("spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes")
        );
        assert_eq!(broken(value!({"hard": {"bogus": "1"}})).len(), 2);
        assert_eq!(broken(value!({"hard": {"pods": "-1"}})).len(), 1);
    }

    #[test]
    fn warns_of_requests_above_limits() {
        let mut texts = Vec::new();
        warnings(&value!({"spec": {"hard": {"cpu": "2", "limits.cpu": "1"}}}), None, &mut texts);
        assert_eq!(texts, ["ResourceQuota cpu (2) should be less than limits.cpu (1)"]);
    }
}
