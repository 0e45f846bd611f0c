//! FlowSchemas.

use std::collections::HashSet;

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::priority_level;
use crate::field::{self, ErrorKind, Errors, Path};
use crate::fieldmanager::reset;
use crate::printing::{Printer, flow};
use crate::rules::{Generation, NameRule, Strategy, metadata, names};

const PRECEDENCE_MAX: i64 = 10_000;
const PRECEDENCE: i64 = 1000;
const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Rules of FlowSchemas.
pub static STRATEGY: Strategy = Strategy {
    repeats_metadata: false,
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    status: true,
    default: |object| {
        if object.int_at(&["spec", "matchingPrecedence"]).unwrap_or(0) == 0 {
            object.set_at(&["spec", "matchingPrecedence"], PRECEDENCE);
        }
    },
    validate,
    validate_update: |object, _, errors| {
        metadata::validate_again(NameRule::Subdomain, false, object, errors);
        validate(object, errors);
    },
    prepare_status: |object, old, _| metadata::reset_for_status(object, old),
    validate_status: |object, _, errors| priority_level::validate_conditions(object, errors),
    resets: &[("status", reset::SPEC_AND_METADATA)],
    printer: Some(Printer { order: Some(flow::by_precedence), ..Printer::of(flow::flow_schema) }),
    ..Strategy::DEFAULT
};

fn validate(object: &Value, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    let name = object.str_at(&["metadata", "name"]);
    let place = path.child("matchingPrecedence");
    let precedence = spec.int_at(&["matchingPrecedence"]).unwrap_or(0);
    if precedence <= 0 {
        errors.invalid(&place, &precedence.into(), "must be a positive value");
    }
    if precedence > PRECEDENCE_MAX {
        errors.invalid(&place, &precedence.into(), format!("must not be greater than {PRECEDENCE_MAX}"));
    }
    if precedence == 1 && name != "exempt" {
        let why = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.invalid(&place, &precedence.into(), why);
    }
    let method = spec.at(&["distinguisherMethod"]);
    if !method.is_null() && !matches!(method.str_at(&["type"]), "ByUser" | "ByNamespace") {
        let shown = value!({"Type": (method.str_at(&["type"]))});
        let shown = field::shown(&shown);
        let why = "supported values: \"ByNamespace\", \"ByUser\"";
        let place = path.child("distinguisherMethod");
        errors.push(ErrorKind::NotSupported, &place.child("type"), shown, why);
    }
    let place = path.child("priorityLevelConfiguration");
    match spec.str_at(&["priorityLevelConfiguration", "name"]) {
        "" => errors.required(&place.child("name"), "must reference a priority level"),
        name => names::check(&place.child("name"), name, names::dns1123_subdomain, errors),
    }
    for (index, rule) in spec.list_at(&["rules"]).iter().enumerate() {
        validate_rule(rule, &path.child("rules").index(index), errors);
    }
    if let Some(fixed) = mandatory(name)
        && shown(spec) != shown(&fixed)
    {
        let why = format!("spec of '{name}' must equal the fixed value");
        errors.invalid(&path, &shown(spec), why);
    }
    priority_level::validate_conditions(object, errors);
}

fn validate_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let subjects = rule.list_at(&["subjects"]);
    if subjects.is_empty() {
        errors.required(&path.child("subjects"), "subjects must contain at least one value");
    }
    for (index, subject) in subjects.iter().enumerate() {
        validate_subject(subject, &path.child("subjects").index(index), errors);
    }
    let (resources, others) = (rule.list_at(&["resourceRules"]), rule.list_at(&["nonResourceRules"]));
    if resources.is_empty() && others.is_empty() {
        errors.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    for (index, rule) in resources.iter().enumerate() {
        validate_resources(rule, &path.child("resourceRules").index(index), errors);
    }
    for (index, rule) in others.iter().enumerate() {
        let place = path.child("nonResourceRules");
        let place = place.index(index);
        validate_verbs(rule, &place, errors);
        validate_urls(rule, &place.child("nonResourceURLs"), errors);
    }
}

fn validate_subject(subject: &Value, path: &Path<'_>, errors: &mut Errors) {
    const KINDS: [(&str, &str); 3] = [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = subject.str_at(&["kind"]);
    let Some((_, own)) = KINDS.into_iter().find(|(name, _)| *name == kind) else {
        errors.not_supported(&path.child("kind"), kind, &["Group", "ServiceAccount", "User"]);
        return;
    };
    let (value, place) = (subject.at(&[own]), path.child(own));
    let name = value.str_at(&["name"]);
    if value.is_null() {
        errors.required(&place, format!("{own} is required when subject kind is '{kind}'"));
    } else {
        if name.is_empty() {
            errors.required(&place.child("name"), "");
        } else if kind == "ServiceAccount" && name != "*" {
            names::check(&place.child("name"), name, names::dns1123_subdomain, errors);
        }
        if kind == "ServiceAccount" {
            match value.str_at(&["namespace"]) {
                "" => errors.required(&place.child("namespace"), "must specify namespace for service account"),
                namespace => names::check(&place.child("namespace"), namespace, names::dns1123_label, errors),
            }
        }
    }
    let order = if own == "serviceAccount" { [1, 2, 1] } else { [0, 1, 2] };
    let mut reported = HashSet::new();
    for (kind, field) in order.into_iter().map(|at| KINDS[at]).filter(|(_, field)| *field != own) {
        if reported.insert(field) && !subject.at(&[field]).is_null() {
            let why = format!("{field} is forbidden when subject kind is not '{kind}'");
            errors.forbidden(&path.child(field), why);
        }
    }
}

fn has_wildcard(list: &[Value]) -> bool {
    list.iter().any(|item| item.as_str() == Some("*"))
}

fn validate_verbs(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (path, verbs) = (path.child("verbs"), rule.list_at(&["verbs"]));
    if verbs.is_empty() {
        errors.required(&path, "verbs must contain at least one value");
    } else if has_wildcard(verbs) {
        if verbs.len() > 1 {
            errors.invalid(&path, rule.at(&["verbs"]), "if '*' is present, must not specify other verbs");
        }
    } else if !verbs.iter().all(|verb| verb.as_str().is_some_and(|verb| VERBS.contains(&verb))) {
        let list: Vec<String> = VERBS.iter().map(|verb| format!("\"{verb}\"")).collect();
        let why = format!("supported values: {}", list.join(", "));
        let shown = field::shown(rule.at(&["verbs"]));
        errors.push(ErrorKind::NotSupported, &path, shown, why);
    }
}

fn validate_urls(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let urls = rule.list_at(&["nonResourceURLs"]);
    if urls.is_empty() {
        errors.required(path, "nonResourceURLs must contain at least one value");
    } else if has_wildcard(urls) {
        if urls.len() > 1 {
            let why = "if '*' is present, must not specify other non-resource URLs";
            errors.invalid(path, rule.at(&["nonResourceURLs"]), why);
        }
    } else {
        for (index, url) in urls.iter().enumerate() {
            let text = url.as_str().unwrap_or("");
            let stars = text.matches('*').count();
            let why = match text {
                "" => "must not be empty",
                "/" => continue,
                _ if !text.starts_with('/') => "must start with slash",
                _ if text.contains(' ') => "must not contain white-space",
                _ if text.contains("//") => "must not contain double slash",
                _ if stars > 1 || (stars == 1 && !text.ends_with("/*")) => "wildcard can only do suffix matching",
                _ => continue,
            };
            errors.invalid_str(&path.index(index), text, why);
        }
    }
}

fn validate_resources(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    validate_verbs(rule, path, errors);
    for (field, one, others) in [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")] {
        let list = rule.list_at(&[field]);
        if list.is_empty() {
            errors.required(&path.child(field), format!("resource rules must supply at least one {one}"));
        } else if list.len() > 1 && has_wildcard(list) {
            let why = format!("if '*' is present, must not specify other {others}");
            errors.invalid(&path.child(field), rule.at(&[field]), why);
        }
    }
    let (path, namespaces) = (path.child("namespaces"), rule.list_at(&["namespaces"]));
    if namespaces.is_empty() && !rule.is_true_at(&["clusterScope"]) {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.required(&path, why);
    } else if has_wildcard(namespaces) {
        if namespaces.len() > 1 {
            let why = "if '*' is present, must not specify other namespaces";
            errors.invalid(&path, rule.at(&["namespaces"]), why);
        }
    } else {
        for (index, namespace) in namespaces.iter().enumerate() {
            let text = namespace.as_str().unwrap_or("");
            for message in names::dns1123_label(text) {
                let why = format!("each member of this list must be '*' or a DNS-1123 label; {message}");
                errors.invalid_str(&path.index(index), text, why);
            }
        }
    }
}

/// Returns the spec of a mandatory FlowSchema. Returns `None` for any other name.
fn mandatory(name: &str) -> Option<Value> {
    let group = |name: &str| value!({"kind": "Group", "group": {"name": name}});
    let (precedence, subjects) = match name {
        "exempt" => (1, vec![group("system:masters")]),
        "catch-all" => (PRECEDENCE_MAX, vec![group("system:unauthenticated"), group("system:authenticated")]),
        _ => return None,
    };
    let resources = value!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true,
        "namespaces": ["*"]});
    let others = value!({"verbs": ["*"], "nonResourceURLs": ["*"]});
    let rule = value!({"subjects": subjects, "resourceRules": [resources], "nonResourceRules": [others]});
    let mut spec = value!({"priorityLevelConfiguration": {"name": name}, "matchingPrecedence": precedence,
        "rules": [rule]});
    if name == "catch-all" {
        spec.set_at(&["distinguisherMethod"], value!({"type": "ByUser"}));
    }
    Some(spec)
}

/// Formats a spec for messages: all fields, under the reference's internal names.
fn shown(spec: &Value) -> Value {
    let rule = |rule: &Value| {
        let subjects = list_of(rule.at(&["subjects"]), subject_shown);
        let resources = list_of(rule.at(&["resourceRules"]), |rule| {
            let cluster = rule.is_true_at(&["clusterScope"]);
            let field = |name: &str| rule.at(&[name]).clone();
            let (verbs, groups, resources) = (field("verbs"), field("apiGroups"), field("resources"));
            let namespaces = field("namespaces");
            value!({"Verbs": verbs, "APIGroups": groups, "Resources": resources, "ClusterScope": cluster,
                "Namespaces": namespaces})
        });
        let others = list_of(rule.at(&["nonResourceRules"]), |rule| {
            let (verbs, urls) = (rule.at(&["verbs"]).clone(), rule.at(&["nonResourceURLs"]).clone());
            value!({"Verbs": verbs, "NonResourceURLs": urls})
        });
        value!({"Subjects": subjects, "ResourceRules": resources, "NonResourceRules": others})
    };
    let method = match spec.at(&["distinguisherMethod"]) {
        Value::Null => Value::Null,
        method => value!({"Type": (method.str_at(&["type"]))}),
    };
    let name = spec.str_at(&["priorityLevelConfiguration", "name"]);
    let precedence = spec.int_at(&["matchingPrecedence"]).unwrap_or(0);
    let rules = list_of(spec.at(&["rules"]), rule);
    value!({"PriorityLevelConfiguration": {"Name": name}, "MatchingPrecedence": precedence,
        "DistinguisherMethod": method, "Rules": rules})
}

fn list_of(value: &Value, show: fn(&Value) -> Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(show).collect()),
        _ => Value::Null,
    }
}

fn subject_shown(subject: &Value) -> Value {
    let named = |field: &str| match subject.at(&[field]) {
        Value::Null => Value::Null,
        value => value!({"Name": (value.str_at(&["name"]))}),
    };
    let account = match subject.at(&["serviceAccount"]) {
        Value::Null => Value::Null,
        account => value!({"Namespace": (account.str_at(&["namespace"])), "Name": (account.str_at(&["name"]))}),
    };
    let (kind, user, group) = (subject.str_at(&["kind"]), named("user"), named("group"));
    value!({"Kind": kind, "User": user, "Group": group, "ServiceAccount": account})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mandatory_specs_cannot_change() {
        let spec = mandatory("exempt").unwrap_or_default();
        let mut object = value!({"metadata": {"name": "exempt"}, "spec": spec});
        assert!(STRATEGY.complaints(object.clone()).is_empty());
        object.set_at(&["spec", "matchingPrecedence"], 3);
        assert!(STRATEGY.complaints(object)[0].starts_with("spec: Invalid value: {\"PriorityLevelConfiguration\":{\"Name\":\"exempt\"},\"MatchingPrecedence\":3,\"DistinguisherMethod\":null,\"Rules\":[{\"Subjects\":[{\"Kind\":\"Group\",\"User\":null,\"Group\":{\"Name\":\"system:masters\"},\"ServiceAccount\":null}]"));
    }
}
