//! Validating and mutating webhook configurations.

use std::collections::HashSet;

use flotilla_golang::url::Url;
use flotilla_proto::value::Value;

use super::expressions::validate_conditions;
use super::rules::{check_optional, default_rules, validate_rule};
use crate::field::{Errors, Path};
use crate::printing::{Printer, admission};
use crate::rules::{Generation, NameRule, Strategy, labels, metadata, names};

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
const QUIET: [&str; 2] = ["None", "NoneOnDryRun"];
const EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const CONDITIONS: &str = "matchConditions";
const FORM: &str = "; desired format: https://host[/path]";

/// Rules of ValidatingWebhookConfigurations.
pub static VALIDATING: Strategy = Strategy {
    known_finalizers: false,
    default: |object| default(object, false),
    validate: |object, errors| validate(object, None, false, errors),
    validate_update: |object, old, errors| {
        metadata::validate_again_generic(NameRule::Subdomain, false, object, errors);
        validate(object, Some(old), false, errors);
    },
    ..COMMON
};

/// Rules of MutatingWebhookConfigurations.
pub static MUTATING: Strategy = Strategy {
    known_finalizers: false,
    default: |object| default(object, true),
    validate: |object, errors| validate(object, None, true, errors),
    validate_update: |object, old, errors| {
        metadata::validate_again_generic(NameRule::Subdomain, false, object, errors);
        validate(object, Some(old), true, errors);
    },
    ..COMMON
};

const COMMON: Strategy = Strategy {
    repeats_metadata: false,
    name: NameRule::Subdomain,
    generation: Generation::Own,
    unconditional_update: false,
    prepare_create: |object, _| object.set_at(&["metadata", "generation"], 1),
    prepare_update: |object, old, _| {
        let generation = old.int_at(&["metadata", "generation"]).unwrap_or(0);
        let changed = object.list_at(&["webhooks"]) != old.list_at(&["webhooks"]);
        object.set_at(&["metadata", "generation"], generation + i64::from(changed));
    },
    printer: Some(Printer::of(admission::webhooks)),
    ..Strategy::DEFAULT
};

fn default(object: &mut Value, mutating: bool) {
    for hook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        let fields: [(&str, Value); 5] = [
            ("failurePolicy", "Fail".into()),
            ("matchPolicy", "Equivalent".into()),
            ("namespaceSelector", Value::object()),
            ("objectSelector", Value::object()),
            ("timeoutSeconds", 10.into()),
        ];
        for (field, value) in fields {
            if hook.at(&[field]).is_null() {
                hook.set_at(&[field], value);
            }
        }
        if mutating && hook.at(&["reinvocationPolicy"]).is_null() {
            hook.set_at(&["reinvocationPolicy"], "Never");
        }
        let service = hook.at(&["clientConfig", "service"]);
        if !service.is_null() && service.at(&["port"]).is_null() {
            hook.set_at(&["clientConfig", "service", "port"], 443);
        }
        default_rules(hook.get_mut("rules"));
    }
}

fn validate(object: &Value, old: Option<&Value>, mutating: bool, errors: &mut Errors) {
    let path = Path::root("webhooks");
    let before = old.map_or(&[][..], |old| old.list_at(&["webhooks"]));
    let quiet = before.iter().all(|hook| QUIET.contains(&hook.str_at(&["sideEffects"])));
    let knows = |hook: &Value| {
        let versions = hook.list_at(&["admissionReviewVersions"]);
        versions.is_empty() || versions.iter().any(|v| v.as_str().is_some_and(|v| REVIEWS.contains(&v)))
    };
    let recognized = before.iter().all(knows);
    let mut names_before = HashSet::new();
    let unique = before.iter().all(|hook| names_before.insert(hook.str_at(&["name"])));
    let any_value = before.iter().any(|hook| {
        ["namespaceSelector", "objectSelector"].iter().any(|field| labels::has_impossible_value(hook.at(&[field])))
    });
    let options = labels::SelectorOptions { any_value, any_operator: false };
    let hooks = object.list_at(&["webhooks"]);
    let same = |(now, then): (&Value, &Value)| now.list_at(&[CONDITIONS]) == then.list_at(&[CONDITIONS]);
    let are_kept = old.is_some() && hooks.len() == before.len() && hooks.iter().zip(before).all(same);
    let stood = before.iter().flat_map(|hook| hook.list_at(&[CONDITIONS]).iter().cloned()).collect();
    let mut conditions_before = Value::object();
    conditions_before.set_at(&[CONDITIONS], Value::Array(stood));
    let mut seen = HashSet::new();
    for (index, hook) in hooks.iter().enumerate() {
        let place = path.index(index);
        validate_hook(hook, quiet, options, mutating, &place, errors);
        if !are_kept {
            validate_conditions(hook, &conditions_before, &place.child(CONDITIONS), errors);
        }
        validate_reviews(hook, recognized, &place.child("admissionReviewVersions"), errors);
        let name = hook.str_at(&["name"]);
        if unique && !name.is_empty() && !seen.insert(name) {
            errors.duplicate(&place.child("name"), &name.into());
        }
    }
}

fn validate_hook(
    hook: &Value,
    quiet: bool,
    options: labels::SelectorOptions,
    mutating: bool,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_name(hook.str_at(&["name"]), &path.child("name"), errors);
    for (index, rule) in hook.list_at(&["rules"]).iter().enumerate() {
        validate_rule(rule, &path.child("rules").index(index), errors);
    }
    check_optional(&path.child("failurePolicy"), hook.at(&["failurePolicy"]), &["Fail", "Ignore"], errors);
    check_optional(&path.child("matchPolicy"), hook.at(&["matchPolicy"]), &["Equivalent", "Exact"], errors);
    let allowed: &[&str] = if quiet { &QUIET } else { &EFFECTS };
    match hook.at(&["sideEffects"]) {
        Value::Null => {
            errors.required(&path.child("sideEffects"), format!("must specify one of {}", allowed.join(", ")));
        }
        effects => check_optional(&path.child("sideEffects"), effects, allowed, errors),
    }
    if let Some(seconds) = hook.int_at(&["timeoutSeconds"]).filter(|seconds| !(1..=30).contains(seconds)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        errors.invalid(&path.child("timeoutSeconds"), &seconds.into(), why);
    }
    for field in ["namespaceSelector", "objectSelector"] {
        labels::validate_selector(hook.at(&[field]), options, &path.child(field), errors);
    }
    if mutating {
        let policy = hook.at(&["reinvocationPolicy"]);
        check_optional(&path.child("reinvocationPolicy"), policy, &["IfNeeded", "Never"], errors);
    }
    let (client, place) = (hook.at(&["clientConfig"]), path.child("clientConfig"));
    match (client.at(&["url"]).as_str(), client.at(&["service"])) {
        (None, Value::Null) => errors.required(&place, "exactly one of url or service is required"),
        (Some(_), service) if !service.is_null() => {
            errors.required(&place, "exactly one of url or service is required");
        }
        (Some(url), _) => validate_url(url, &place.child("url"), errors),
        (None, service) => validate_service(service, &place.child("service"), errors),
    }
}

fn validate_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let messages = names::dns1123_subdomain(name);
    if !messages.is_empty() {
        errors.invalid_str(path, name, messages.join(","));
    } else if name.split('.').count() < 3 {
        errors.invalid_str(path, name, "should be a domain with at least three segments separated by dots");
    }
}

fn validate_reviews(hook: &Value, recognized: bool, path: &Path<'_>, errors: &mut Errors) {
    let versions = hook.list_at(&["admissionReviewVersions"]);
    if versions.is_empty() {
        errors.required(path, format!("must specify one of {}", REVIEWS.join(", ")));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let (place, text) = (path.index(index), version.as_str().unwrap_or(""));
        if versions[..index].contains(version) {
            errors.invalid_str(&place, text, "duplicate version");
        } else {
            names::check(&place, text, names::dns1035_label, errors);
        }
    }
    let known = versions.iter().any(|version| version.as_str().is_some_and(|version| REVIEWS.contains(&version)));
    if recognized && !known {
        let why = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.invalid(path, hook.at(&["admissionReviewVersions"]), why);
    }
}

/// Checks the URL of a webhook: it needs HTTPS and a host, and must have no user, query or fragment.
pub fn validate_url(text: &str, path: &Path<'_>, errors: &mut Errors) {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(why) => return errors.required(path, format!("url must be a valid URL: {why}{FORM}")),
    };
    if url.scheme != "https" {
        errors.invalid_str(path, &url.scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        errors.invalid_str(path, "", format!("host must be specified{FORM}"));
    }
    if let Some(user) = &url.user {
        errors.invalid_str(path, &user.text(), "user information is not permitted in the URL");
    }
    if !url.fragment.is_empty() {
        let fragment = String::from_utf8_lossy(&url.fragment);
        errors.invalid_str(path, &fragment, "fragments are not permitted in the URL");
    }
    if !url.raw_query.is_empty() {
        errors.invalid_str(path, &url.raw_query, "query parameters are not permitted in the URL");
    }
}

/// Checks the reference to the Service of a webhook.
pub fn validate_service(service: &Value, path: &Path<'_>, errors: &mut Errors) {
    // The reference confuses the two names in these messages.
    for (field, shown) in [("namespace", "name"), ("name", "namespace")] {
        if service.str_at(&[field]).is_empty() {
            errors.required(&path.child(shown), "");
        }
    }
    let port = service.int_at(&["port"]).unwrap_or(0);
    for message in names::port_number(port) {
        errors.invalid(&path.child("port"), &port.into(), format!("port is not valid: {message}"));
    }
    let text = service.str_at(&["path"]);
    let place = path.child("path");
    if matches!(text, "" | "/") {
        return;
    }
    if text == "//" {
        errors.invalid_str(&place, text, "segment[0] may not be empty");
        return;
    }
    if !text.starts_with('/') {
        errors.invalid_str(&place, text, "must start with a '/'");
    }
    let mut rest = text.chars();
    rest.next();
    let rest = rest.as_str();
    for (index, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            errors.invalid_str(&place, text, format!("segment[{index}] may not be empty"));
            continue;
        }
        for message in names::dns1123_subdomain(step) {
            errors.invalid_str(&place, text, format!("segment[{index}]: {message}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn hooks_are_defaulted_and_checked() {
        let hook = value!({"name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/x"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]});
        let mut object = value!({"metadata": {"name": "w"}, "webhooks": [(hook.clone()), hook]});
        default(&mut object, true);
        assert_eq!(object.list_at(&["webhooks"])[0].int_at(&["clientConfig", "service", "port"]), Some(443));
        let mut errors = Errors::default();
        validate(&object, None, true, &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["webhooks[1].name"]);
    }

    #[test]
    fn urls_are_plain() {
        let broken = |url: &str| {
            let mut errors = Errors::default();
            validate_url(url, &Path::root("url"), &mut errors);
            errors.0.len()
        };
        assert_eq!(broken("https://a.b/c"), 0);
        assert_eq!((broken("http://a"), broken("https://"), broken("https://u@a?q#f")), (1, 1, 3));
        assert_eq!((broken("HTTPS://a.b"), broken("https://a.b?"), broken("https://a.b#")), (0, 0, 0));
        let mut errors = Errors::default();
        validate_url("https://a.b:x", &Path::root("url"), &mut errors);
        let why = "url must be a valid URL: parse \"https://a.b:x\": invalid port \":x\" after host; \
            desired format: https://host[/path]";
        assert_eq!(errors.0[0].detail, why);
    }
}
