//! FlowSchemas and PriorityLevelConfigurations.

use std::collections::HashSet;

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::{Generation, NameRule, Strategy, metadata, names};
use crate::field::{Errors, Path};

const PRECEDENCE_MAX: i64 = 10_000;
const PRECEDENCE: i64 = 1000;
const QUEUES_MAX: i64 = 10_000_000;
const HASH_BITS_MAX: i64 = 60;
const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const ZERO_SHARES: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

/// Rules of FlowSchemas.
pub static SCHEMA: Strategy = Strategy {
    repeats_metadata: false,
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    status: true,
    default: |object| {
        if object.int_at(&["spec", "matchingPrecedence"]).unwrap_or(0) == 0 {
            object.set_at(&["spec", "matchingPrecedence"], PRECEDENCE);
        }
    },
    validate: validate_schema,
    validate_update: |object, _, errors| {
        metadata::validate_again(NameRule::Subdomain, false, object, errors);
        validate_schema(object, errors);
    },
    validate_status: |object, _, errors| validate_conditions(object, errors),
    ..Strategy::DEFAULT
};

/// Rules of PriorityLevelConfigurations.
pub static LEVEL: Strategy = Strategy {
    repeats_metadata: false,
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    status: true,
    default: default_level,
    validate: validate_level,
    validate_update: |object, _, errors| {
        metadata::validate_again(NameRule::Subdomain, false, object, errors);
        validate_level(object, errors);
    },
    validate_status: |object, _, errors| validate_conditions(object, errors),
    ..Strategy::DEFAULT
};

fn default_level(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    for (part, shares) in [("limited", 30), ("exempt", 0)] {
        let Some(part) = spec.get_mut(part).filter(|part| !part.is_null()) else { continue };
        for (field, value) in [("nominalConcurrencyShares", shares), ("lendablePercent", 0)] {
            if part.at(&[field]).is_null() {
                part.set_at(&[field], value);
            }
        }
    }
    let response = spec.get_mut("limited").and_then(|limited| limited.get_mut("limitResponse"));
    let queuing = response.and_then(|response| response.get_mut("queuing")).filter(|queuing| !queuing.is_null());
    if let Some(queuing) = queuing {
        for (field, value) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
            if queuing.int_at(&[field]).unwrap_or(0) == 0 {
                queuing.set_at(&[field], value);
            }
        }
    }
}

fn validate_conditions(object: &Value, errors: &mut Errors) {
    let path = Path::root("status.conditions");
    let mut seen = HashSet::new();
    for (index, condition) in object.list_at(&["status", "conditions"]).iter().enumerate() {
        let place = path.index(index);
        let kind = condition.str_at(&["type"]);
        if !seen.insert(kind) {
            errors.duplicate(&place.child("type"), &kind.into());
        }
        if kind.is_empty() {
            errors.required(&place.child("type"), "");
        }
    }
}

fn validate_schema(object: &Value, errors: &mut Errors) {
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
        let shown = crate::field::shown(&shown);
        let why = "supported values: \"ByNamespace\", \"ByUser\"";
        let place = path.child("distinguisherMethod");
        errors.push(crate::field::ErrorKind::NotSupported, &place.child("type"), shown, why);
    }
    let place = path.child("priorityLevelConfiguration");
    match spec.str_at(&["priorityLevelConfiguration", "name"]) {
        "" => errors.required(&place.child("name"), "must reference a priority level"),
        name => names::check(&place.child("name"), name, names::dns1123_subdomain, errors),
    }
    for (index, rule) in spec.list_at(&["rules"]).iter().enumerate() {
        validate_rule(rule, &path.child("rules").index(index), errors);
    }
    if let Some(fixed) = mandatory_schema(name)
        && schema_shown(spec) != schema_shown(&fixed)
    {
        let why = format!("spec of '{name}' must equal the fixed value");
        errors.invalid(&path, &schema_shown(spec), why);
    }
    validate_conditions(object, errors);
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
    let mut told = HashSet::new();
    for (kind, field) in order.into_iter().map(|at| KINDS[at]).filter(|(_, field)| *field != own) {
        if told.insert(field) && !subject.at(&[field]).is_null() {
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
        let shown = crate::field::shown(rule.at(&["verbs"]));
        errors.push(crate::field::ErrorKind::NotSupported, &path, shown, why);
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

/// The specs that two schemas always have.
fn mandatory_schema(name: &str) -> Option<Value> {
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

/// A schema's spec as messages show it: all fields, by the names that the server uses inside.
fn schema_shown(spec: &Value) -> Value {
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

fn validate_level(object: &Value, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    let name = object.str_at(&["metadata", "name"]);
    if !object.at(&["metadata", "annotations", ZERO_SHARES]).is_null() {
        let why = format!("annotation '{ZERO_SHARES}' is forbidden");
        errors.forbidden(&Path::root("metadata.annotations"), why);
    }
    let kind = spec.str_at(&["type"]);
    if (name == "exempt") != (kind == "Exempt") {
        errors.invalid_str(&path.child("type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    let (limited, exempt) = (spec.at(&["limited"]), spec.at(&["exempt"]));
    match kind {
        "Exempt" => {
            if !limited.is_null() {
                errors.forbidden(&path.child("limited"), "must be nil if the type is not Limited");
            }
            if !exempt.is_null() {
                let place = path.child("exempt");
                check_shares(exempt, &place, errors);
                check_lendable(exempt, &place, errors);
            }
        }
        "Limited" => {
            if !exempt.is_null() {
                errors.forbidden(&path.child("exempt"), "must be nil if the type is Limited");
            }
            if limited.is_null() {
                errors.required(&path.child("limited"), "must not be empty when type is Limited");
            } else {
                validate_limited(limited, &path.child("limited"), errors);
            }
        }
        "" => errors.required(&path.child("type"), ""),
        other => errors.not_supported(&path.child("type"), other, &["Exempt", "Limited"]),
    }
    validate_mandatory(spec, name, &path, errors);
    validate_conditions(object, errors);
}

fn check_shares(part: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(shares) = part.int_at(&["nominalConcurrencyShares"]).filter(|shares| *shares < 0) {
        errors.invalid(&path.child("nominalConcurrencyShares"), &shares.into(), "must be a non-negative integer");
    }
}

fn check_lendable(part: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(percent) = part.int_at(&["lendablePercent"]).filter(|percent| !(0..=100).contains(percent)) {
        errors.invalid(&path.child("lendablePercent"), &percent.into(), "must be between 0 and 100, inclusive");
    }
}

fn validate_limited(limited: &Value, path: &Path<'_>, errors: &mut Errors) {
    check_shares(limited, path, errors);
    let (response, place) = (limited.at(&["limitResponse"]), path.child("limitResponse"));
    let queuing = response.at(&["queuing"]);
    match response.str_at(&["type"]) {
        "Reject" if !queuing.is_null() => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            errors.forbidden(&place.child("queuing"), why);
        }
        "Reject" => {}
        "Queue" if queuing.is_null() => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            errors.required(&place.child("queuing"), why);
        }
        "Queue" => validate_queuing(queuing, &place.child("queuing"), errors),
        "" => errors.required(&place.child("type"), ""),
        other => errors.not_supported(&place.child("type"), other, &["Queue", "Reject"]),
    }
    check_lendable(limited, path, errors);
    if let Some(percent) = limited.int_at(&["borrowingLimitPercent"]).filter(|percent| *percent < 0) {
        let why = "if specified, must be a non-negative integer";
        errors.invalid(&path.child("borrowingLimitPercent"), &percent.into(), why);
    }
}

fn validate_queuing(queuing: &Value, path: &Path<'_>, errors: &mut Errors) {
    let number = |field: &str| queuing.int_at(&[field]).unwrap_or(0);
    let (length, queues, hand) = (number("queueLengthLimit"), number("queues"), number("handSize"));
    if length <= 0 {
        errors.invalid(&path.child("queueLengthLimit"), &length.into(), "must be positive");
    }
    if queues <= 0 {
        errors.invalid(&path.child("queues"), &queues.into(), "must be positive");
    } else if queues > QUEUES_MAX {
        errors.invalid(&path.child("queues"), &queues.into(), format!("must not be greater than {QUEUES_MAX}"));
    }
    let place = path.child("handSize");
    // Bits that are needed to deal this many cards from a deck of that size (shuffle sharding).
    let bits = ((queues.max(1) as f64).log2() * hand as f64).ceil() as i64;
    if hand <= 0 {
        errors.invalid(&place, &hand.into(), "must be positive");
    } else if hand > queues {
        errors.invalid(&place, &hand.into(), format!("should not be greater than queues ({queues})"));
    } else if bits > HASH_BITS_MAX {
        let why = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS_MAX}"
        );
        errors.invalid(&place, &hand.into(), why);
    }
}

fn validate_mandatory(spec: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let (fixed, except) = match name {
        "exempt" => (value!({"type": "Exempt"}), " except the 'spec.exempt' field"),
        "catch-all" => {
            let limited = value!({"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"},
                "lendablePercent": 0});
            (value!({"type": "Limited", "limited": limited}), "")
        }
        _ => return,
    };
    let mut compared = spec.as_object().cloned().unwrap_or_else(Map::new);
    if name == "exempt" {
        compared.remove("exempt");
    }
    if Value::from(compared) != fixed {
        let why = format!("spec of '{name}'{except} must equal the fixed value");
        errors.invalid(path, &level_shown(spec), why);
    }
}

/// A level's spec as messages show it: all fields, by the names that the server uses inside.
fn level_shown(spec: &Value) -> Value {
    let field = |part: &Value, name: &str| part.at(&[name]).clone();
    let limited = match spec.at(&["limited"]) {
        Value::Null => Value::Null,
        limited => {
            let queuing = match limited.at(&["limitResponse", "queuing"]) {
                Value::Null => Value::Null,
                queuing => {
                    let (queues, hand) = (field(queuing, "queues"), field(queuing, "handSize"));
                    value!({"Queues": queues, "HandSize": hand, "QueueLengthLimit": (field(queuing, "queueLengthLimit"))})
                }
            };
            let kind = limited.str_at(&["limitResponse", "type"]);
            let (shares, lendable) = (field(limited, "nominalConcurrencyShares"), field(limited, "lendablePercent"));
            value!({"NominalConcurrencyShares": shares, "LimitResponse": {"Type": kind, "Queuing": queuing},
                "LendablePercent": lendable, "BorrowingLimitPercent": (field(limited, "borrowingLimitPercent"))})
        }
    };
    let exempt = match spec.at(&["exempt"]) {
        Value::Null => Value::Null,
        exempt => {
            let (shares, lendable) = (field(exempt, "nominalConcurrencyShares"), field(exempt, "lendablePercent"));
            value!({"NominalConcurrencyShares": shares, "LendablePercent": lendable})
        }
    };
    value!({"Type": (spec.str_at(&["type"])), "Limited": limited, "Exempt": exempt})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(strategy: &Strategy, object: Value) -> Vec<String> {
        let mut object = object;
        (strategy.default)(&mut object);
        let mut errors = Errors::default();
        (strategy.validate)(&object, &mut errors);
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn levels_are_checked() {
        let level =
            |limited: Value| value!({"metadata": {"name": "a"}, "spec": {"type": "Limited", "limited": limited}});
        assert!(broken(&LEVEL, level(value!({"limitResponse": {"type": "Queue", "queuing": {}}}))).is_empty());
        let queuing = value!({"queues": 2, "handSize": 5, "queueLengthLimit": (-1)});
        assert_eq!(broken(&LEVEL, level(value!({"limitResponse": {"type": "Queue", "queuing": queuing}}))).len(), 2);
        assert_eq!(broken(&LEVEL, value!({"metadata": {"name": "a"}, "spec": {}})), ["spec.type: Required value"]);
    }

    #[test]
    fn mandatory_ones_stay() {
        let spec = mandatory_schema("exempt").unwrap_or_default();
        let mut object = value!({"metadata": {"name": "exempt"}, "spec": spec});
        assert!(broken(&SCHEMA, object.clone()).is_empty());
        object.set_at(&["spec", "matchingPrecedence"], 3);
        assert!(broken(&SCHEMA, object)[0].starts_with("spec: Invalid value: {\"PriorityLevelConfiguration\":{\"Name\":\"exempt\"},\"MatchingPrecedence\":3,\"DistinguisherMethod\":null,\"Rules\":[{\"Subjects\":[{\"Kind\":\"Group\",\"User\":null,\"Group\":{\"Name\":\"system:masters\"},\"ServiceAccount\":null}]"));
    }
}
