//! Computes the rules of aggregated roles, and the permissions that a set of rules lacks.

use flotilla_proto::value::{Map, Value};

use super::rule::leads_to;

/// Returns the rules of an aggregated ClusterRole, given all ClusterRoles. Returns null if there are none.
///
/// Roles are taken in the order of their names within each selector, and equal rules occur once.
pub fn aggregated(role: &Value, all: &[Value]) -> Value {
    let own = role.str_at(&["metadata", "name"]);
    let mut rules: Vec<Value> = Vec::new();
    for selector in role.list_at(&["aggregationRule", "clusterRoleSelectors"]) {
        let mut chosen: Vec<&Value> = all
            .iter()
            .filter(|other| other.str_at(&["metadata", "name"]) != own && other.str_at(&["kind"]) == "ClusterRole")
            .filter(|other| selects(selector, other.map_at(&["metadata", "labels"])))
            .collect();
        chosen.sort_by_key(|other| other.str_at(&["metadata", "name"]));
        for rule in chosen.into_iter().flat_map(|other| other.list_at(&["rules"])) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    if rules.is_empty() { Value::Null } else { rules.into() }
}

/// Returns whether a label selector matches these labels.
fn selects(selector: &Value, labels: Option<&Map>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key));
    let equal = selector
        .map_at(&["matchLabels"])
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| label(key) == Some(value)));
    equal
        && selector.list_at(&["matchExpressions"]).iter().all(|expression| {
            let found = label(expression.str_at(&["key"]));
            let listed = || found.is_some_and(|value| expression.list_at(&["values"]).contains(value));
            match expression.str_at(&["operator"]) {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

/// Returns those single permissions of `wanted` that `held` does not grant, each as a rule.
pub fn uncovered(held: &[Value], wanted: &[Value]) -> Vec<Value> {
    wanted.iter().flat_map(single_grants).filter(|grant| !held.iter().any(|rule| covers(rule, grant))).collect()
}

/// Splits a rule into rules of one verb and one resource or path each.
fn single_grants(rule: &Value) -> Vec<Value> {
    let verbs = rule.list_at(&["verbs"]);
    let mut grants = Vec::new();
    let one = |value: &Value| Value::Array(vec![value.clone()]);
    for group in rule.list_at(&["apiGroups"]) {
        for resource in rule.list_at(&["resources"]) {
            for verb in verbs {
                let mut grant = Value::object();
                grant.set_at(&["verbs"], one(verb));
                grant.set_at(&["apiGroups"], one(group));
                grant.set_at(&["resources"], one(resource));
                let names = rule.list_at(&["resourceNames"]);
                if names.is_empty() {
                    grants.push(grant);
                    continue;
                }
                for name in names {
                    grant.set_at(&["resourceNames"], one(name));
                    grants.push(grant.clone());
                }
            }
        }
    }
    for url in rule.list_at(&["nonResourceURLs"]) {
        for verb in verbs {
            let mut grant = Value::object();
            grant.set_at(&["verbs"], one(verb));
            grant.set_at(&["nonResourceURLs"], one(url));
            grants.push(grant);
        }
    }
    grants
}

/// Returns whether a rule grants a single permission.
fn covers(rule: &Value, grant: &Value) -> bool {
    let first = |key: &'static str| grant.list_at(&[key]).first().and_then(Value::as_str);
    let has = |key: &'static str, matches: &dyn Fn(&str, &str) -> bool| {
        first(key)
            .is_none_or(|wanted| rule.list_at(&[key]).iter().filter_map(Value::as_str).any(|own| matches(own, wanted)))
    };
    let same = |own: &str, wanted: &str| own == "*" || own == wanted;
    let resource = |own: &str, wanted: &str| {
        same(own, wanted)
            || matches!((own.strip_prefix("*/"), wanted.split_once('/')), (Some(own), Some((_, wanted))) if own == wanted)
    };
    let names = rule.list_at(&["resourceNames"]);
    let named = match first("resourceNames") {
        _ if names.is_empty() => true,
        None => false,
        Some(wanted) => names.iter().any(|own| own.as_str() == Some(wanted)),
    };
    named
        && has("verbs", &same)
        && has("apiGroups", &same)
        && has("resources", &resource)
        && has("nonResourceURLs", &leads_to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_proto::value;

    #[test]
    fn wildcards_and_names_decide_what_is_covered() {
        let rule = |groups: &str, resource: &str, names: Value| {
            let mut rule = value!({"verbs": ["get"], "apiGroups": [groups], "resources": [resource]});
            if !names.is_null() {
                rule.set_at(&["resourceNames"], names);
            }
            rule
        };
        let pod = rule("", "pods", Value::Null);
        let named = rule("", "pods", value!(["a", "b"]));
        assert!(uncovered(&[rule("*", "*", Value::Null)], &[pod.clone(), named.clone()]).is_empty());
        let pods = [pod.clone()];
        assert_eq!(uncovered(std::slice::from_ref(&named), &pods), pods);
        assert_eq!(uncovered(&[rule("", "pods", value!(["a"]))], &[named]), [rule("", "pods", value!(["b"]))]);
        let scale = rule("apps", "deployments/scale", Value::Null);
        assert!(uncovered(&[rule("apps", "*/scale", Value::Null)], std::slice::from_ref(&scale)).is_empty());
        let url = value!({"verbs": ["get"], "nonResourceURLs": ["/healthz/ping"]});
        let all = value!({"verbs": ["*"], "nonResourceURLs": ["/healthz/*"]});
        assert!(uncovered(&[all], std::slice::from_ref(&url)).is_empty());
        let stars = value!({"verbs": ["get"], "nonResourceURLs": ["/health**"]});
        assert!(uncovered(&[stars], std::slice::from_ref(&url)).is_empty());
        assert_eq!(uncovered(&[pod], std::slice::from_ref(&url)), [url]);
    }
}
