//! Roles and bindings. The module `access` decides whether a user may grant the permissions in them.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::printing::{PLAIN, Printer, access};
use crate::rules::{Dependents, Generation, NameRule, Strategy, UpdateBasis, labels, metadata, names};

const GROUP: &str = "rbac.authorization.k8s.io";

const COMMON: Strategy = Strategy {
    name: NameRule::PathSegment,
    generation: Generation::ClientOwned,
    create_on_update: true,
    // Whether a user may grant permissions depends on all roles and bindings. Deletions take the same path.
    update_basis: UpdateBasis::Tables,
    dependents: Dependents::Delete,
    ..Strategy::DEFAULT
};

/// Rules of Roles.
pub static ROLE: Strategy = Strategy {
    validate: |object, errors| validate_rules(object, true, errors),
    validate_update: |object, _, errors| {
        metadata::validate_again(NameRule::PathSegment, true, object, errors);
        validate_rules(object, true, errors);
    },
    printer: Some(PLAIN),
    ..COMMON
};

/// Rules of ClusterRoles.
pub static CLUSTER_ROLE: Strategy = Strategy {
    validate: |object, errors| validate_cluster_role(object, false, errors),
    validate_update: |object, old, errors| {
        metadata::validate_again(NameRule::PathSegment, false, object, errors);
        let selectors = old.list_at(&["aggregationRule", "clusterRoleSelectors"]);
        validate_cluster_role(object, selectors.iter().any(labels::has_impossible_value), errors);
    },
    printer: Some(PLAIN),
    ..COMMON
};

/// Rules of RoleBindings.
pub static ROLE_BINDING: Strategy = Strategy {
    default: default_binding,
    validate: |object, errors| validate_binding(object, true, errors),
    validate_update: |object, old, errors| validate_binding_update(object, old, true, errors),
    printer: Some(Printer::of(access::binding)),
    ..COMMON
};

/// Rules of ClusterRoleBindings.
pub static CLUSTER_ROLE_BINDING: Strategy = Strategy {
    default: default_binding,
    validate: |object, errors| validate_binding(object, false, errors),
    validate_update: |object, old, errors| validate_binding_update(object, old, false, errors),
    printer: Some(Printer::of(access::binding)),
    ..COMMON
};

fn default_binding(object: &mut Value) {
    if object.str_at(&["roleRef", "apiGroup"]).is_empty() {
        object.set_at(&["roleRef", "apiGroup"], GROUP);
    }
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        let person = matches!(subject.str_at(&["kind"]), "User" | "Group");
        if person && subject.str_at(&["apiGroup"]).is_empty() {
            subject.set_at(&["apiGroup"], GROUP);
        }
    }
}

fn validate_rules(object: &Value, namespaced: bool, errors: &mut Errors) {
    let path = Path::root("rules");
    for (index, rule) in object.list_at(&["rules"]).iter().enumerate() {
        validate_rule(rule, namespaced, &path.index(index), errors);
    }
}

fn validate_rule(rule: &Value, namespaced: bool, path: &Path<'_>, errors: &mut Errors) {
    let has = |field: &str| !rule.list_at(&[field]).is_empty();
    if !has("verbs") {
        errors.required(&path.child("verbs"), "verbs must contain at least one value");
    }
    if has("nonResourceURLs") {
        let (path, all) = (path.child("nonResourceURLs"), rule.at(&["nonResourceURLs"]));
        if namespaced {
            errors.invalid(&path, all, "namespaced rules cannot apply to non-resource URLs");
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            errors.invalid(&path, all, "rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    for (field, what) in [("apiGroups", "api group"), ("resources", "resource")] {
        if !has(field) {
            errors.required(&path.child(field), format!("resource rules must supply at least one {what}"));
        }
    }
}

fn validate_cluster_role(object: &Value, any_value: bool, errors: &mut Errors) {
    validate_rules(object, false, errors);
    if object.at(&["aggregationRule"]).is_null() {
        return;
    }
    let path = Path::root("aggregationRule.clusterRoleSelectors");
    let selectors = object.list_at(&["aggregationRule", "clusterRoleSelectors"]);
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.required(&path, why);
    }
    for (index, selector) in selectors.iter().enumerate() {
        let before = errors.0.len();
        let options = labels::SelectorOptions { any_value, any_operator: false };
        labels::validate_selector(selector, options, &path.index(index), errors);
        if errors.0.len() > before {
            errors.invalid(&path.index(index), &Value::Null, "invalid label selector.");
        }
    }
}

fn validate_binding(object: &Value, namespaced: bool, errors: &mut Errors) {
    let (path, role) = (Path::root("roleRef"), object.at(&["roleRef"]));
    if role.str_at(&["apiGroup"]) != GROUP {
        errors.not_supported(&path.child("apiGroup"), role.str_at(&["apiGroup"]), &[GROUP]);
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&role.str_at(&["kind"])) {
        errors.not_supported(&path.child("kind"), role.str_at(&["kind"]), kinds);
    }
    match role.str_at(&["name"]) {
        "" => errors.required(&path.child("name"), ""),
        name => names::check(&path.child("name"), name, names::path_segment, errors),
    }
    let path = Path::root("subjects");
    for (index, subject) in object.list_at(&["subjects"]).iter().enumerate() {
        validate_subject(subject, namespaced, &path.index(index), errors);
    }
}

fn validate_subject(subject: &Value, namespaced: bool, path: &Path<'_>, errors: &mut Errors) {
    let (name, group) = (subject.str_at(&["name"]), subject.str_at(&["apiGroup"]));
    if name.is_empty() {
        errors.required(&path.child("name"), "");
    }
    match subject.str_at(&["kind"]) {
        "ServiceAccount" => {
            if !name.is_empty() {
                names::check(&path.child("name"), name, names::dns1123_subdomain, errors);
            }
            if !group.is_empty() {
                errors.not_supported(&path.child("apiGroup"), group, &[""]);
            }
            if !namespaced && subject.str_at(&["namespace"]).is_empty() {
                errors.required(&path.child("namespace"), "");
            }
        }
        "User" | "Group" if group != GROUP => errors.not_supported(&path.child("apiGroup"), group, &[GROUP]),
        "User" | "Group" => {}
        kind => errors.not_supported(&path.child("kind"), kind, &["ServiceAccount", "User", "Group"]),
    }
}

fn validate_binding_update(object: &Value, old: &Value, namespaced: bool, errors: &mut Errors) {
    metadata::validate_again(NameRule::PathSegment, namespaced, object, errors);
    validate_binding(object, namespaced, errors);
    let role = |object: &Value| {
        let field = |name: &str| Value::from(object.str_at(&["roleRef", name]));
        let (group, kind, name) = (field("apiGroup"), field("kind"), field("name"));
        value!({"APIGroup": group, "Kind": kind, "Name": name})
    };
    if role(object) != role(old) {
        errors.invalid(&Path::root("roleRef"), &role(object), "cannot change roleRef");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_of_one_sort() {
        let rule = |rule: Value| value!({"rules": [rule]});
        let pods = value!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
        assert!(ROLE.broken_fields(rule(pods)).is_empty());
        assert_eq!(
            ROLE.broken_fields(rule(value!({}))),
            ["rules[0].verbs", "rules[0].apiGroups", "rules[0].resources"]
        );
        let urls = value!({"verbs": ["get"], "nonResourceURLs": ["/x"]});
        assert_eq!(ROLE.broken_fields(rule(urls.clone())), ["rules[0].nonResourceURLs"]);
        assert!(CLUSTER_ROLE.broken_fields(rule(urls)).is_empty());
    }

    #[test]
    fn bindings_name_a_role_and_subjects() {
        let binding = value!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]});
        assert!(ROLE_BINDING.broken_fields(binding.clone()).is_empty());
        assert_eq!(CLUSTER_ROLE_BINDING.broken_fields(binding), ["roleRef.kind"]);
        let subject = value!({"kind": "ServiceAccount", "name": "s"});
        let binding = value!({"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [subject]});
        assert_eq!(CLUSTER_ROLE_BINDING.broken_fields(binding), ["subjects[0].namespace"]);
    }
}
