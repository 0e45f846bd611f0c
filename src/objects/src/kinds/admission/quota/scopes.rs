//! Scopes of quotas: which objects a quota selects.

use flotilla_proto::value::Value;

use crate::kinds::core::pod::resources::pod_level::quality_of_service;
use crate::rules::protection::attribute_classes;

/// Returns whether a quota selects an object: all its scopes must match.
pub(super) fn match_object(quota: &Value, group: &str, resource: &str, object: &Value) -> bool {
    of_quota(quota).all(|scope| is_in(&scope, group, resource, object))
}

/// Returns the scopes of a quota.
pub(super) fn of_quota(quota: &Value) -> impl Iterator<Item = Scope<'_>> {
    let named = quota.list_at(&["spec", "scopes"]).iter().filter_map(Value::as_str);
    let named = named.map(|name| Scope { name, operator: "Exists", values: &[] });
    named.chain(quota.list_at(&["spec", "scopeSelector", "matchExpressions"]).iter().map(stated))
}

/// Returns a scope as a selector states it.
pub(super) fn stated(expression: &Value) -> Scope<'_> {
    Scope {
        name: expression.str_at(&["scopeName"]),
        operator: expression.str_at(&["operator"]),
        values: expression.list_at(&["values"]),
    }
}

/// Returns whether an object is in a scope.
pub(super) fn is_in(scope: &Scope<'_>, group: &str, resource: &str, object: &Value) -> bool {
    match (group, resource) {
        ("", "pods") => of_pod(scope, object),
        ("", "persistentvolumeclaims") => of_claim(scope, object),
        _ => false,
    }
}

/// Returns whether a pod ends by itself: it has a deadline (scope `Terminating`).
pub(super) fn ends(pod: &Value) -> bool {
    pod.int_at(&["spec", "activeDeadlineSeconds"]).is_some_and(|seconds| seconds >= 0)
}

/// A scope, as quotas state it.
pub(super) struct Scope<'a> {
    /// Its name.
    pub(super) name: &'a str,
    operator: &'a str,
    values: &'a [Value],
}

impl std::fmt::Display for Scope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values: Vec<&str> = self.values.iter().filter_map(Value::as_str).collect();
        write!(f, "{{{} {} [{}]}}", self.name, self.operator, values.join(" "))
    }
}

impl Scope<'_> {
    /// Returns whether the scope's operator and values match one of these values, or their absence.
    fn selects<'v>(&self, all: impl Iterator<Item = &'v str>) -> bool {
        let listed = |one: &str| self.values.iter().any(|value| value.as_str() == Some(one));
        let mut all = all.peekable();
        match self.operator {
            "In" => all.any(listed),
            "NotIn" => all.peek().is_none() || all.any(|one| !listed(one)),
            "DoesNotExist" => all.peek().is_none(),
            _ => all.peek().is_some(),
        }
    }
}

fn of_pod(scope: &Scope<'_>, pod: &Value) -> bool {
    let best_effort = || quality_of_service(pod) == "BestEffort";
    match scope.name {
        "Terminating" => ends(pod),
        "NotTerminating" => !ends(pod),
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "PriorityClass" => {
            let class = pod.str_at(&["spec", "priorityClassName"]);
            scope.selects([class].into_iter().filter(|class| !class.is_empty()))
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

fn of_claim(scope: &Scope<'_>, claim: &Value) -> bool {
    scope.name == "VolumeAttributesClass" && scope.selects(attribute_classes(claim))
}

fn crosses_namespaces(pod: &Value) -> bool {
    let foreign =
        |term: &Value| !term.list_at(&["namespaces"]).is_empty() || !term.at(&["namespaceSelector"]).is_null();
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let of = |list: &str| pod.list_at(&["spec", "affinity", kind, list]);
        of("requiredDuringSchedulingIgnoredDuringExecution").iter().any(foreign)
            || of("preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(|weighted| foreign(weighted.at(&["podAffinityTerm"])))
    })
}
