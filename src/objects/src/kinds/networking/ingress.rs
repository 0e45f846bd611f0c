//! Ingresses and their classes.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::core::service;
use crate::printing::{Printer, networking};
use crate::rules::{Generation, NameRule, Strategy, addresses, metadata, names};

const CLASS: &str = "kubernetes.io/ingress.class";
const CONTROLLER_BYTES_MAX: usize = 250;
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];

/// Rules of Ingresses.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    status: true,
    prepare_create: |object, _| object.set_at(&["status"], flotilla_proto::value!({"loadBalancer": {}})),
    validate: |object, errors| {
        validate(object, None, errors);
        let annotation = object.at(&["metadata", "annotations", CLASS]);
        let class = object.at(&["spec", "ingressClassName"]);
        if !annotation.is_null() && !class.is_null() && annotation != class {
            let path = Path::root("annotations");
            errors.invalid(&path.child(CLASS), annotation, "must match `ingressClassName` when both are specified");
        }
    },
    validate_update: |object, old, errors| {
        metadata::validate_again(NameRule::Subdomain, true, object, errors);
        validate(object, Some(old), errors);
    },
    validate_status,
    warnings: |object, old, warnings| {
        let annotated = !object.at(&["metadata", "annotations", CLASS]).is_null();
        if old.is_none() && annotated && object.at(&["spec", "ingressClassName"]).is_null() {
            let why = "is deprecated, please use 'spec.ingressClassName' instead";
            warnings.push(format!("annotation \"{CLASS}\" {why}"));
        }
    },
    printer: Some(Printer::of(networking::ingress)),
    ..Strategy::DEFAULT
};

/// Rules of IngressClasses.
pub static CLASS_STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    default: |object| {
        let parameters = object.at(&["spec", "parameters"]);
        if !parameters.is_null() && parameters.at(&["scope"]).is_null() {
            object.set_at(&["spec", "parameters", "scope"], "Cluster");
        }
    },
    validate: validate_class,
    validate_update: |object, old, errors| {
        let controller = |object: &Value| Value::from(object.str_at(&["spec", "controller"]));
        metadata::immutable(&Path::root("spec.controller"), &controller(object), &controller(old), errors);
        metadata::validate_again(NameRule::Subdomain, false, object, errors);
        validate_class(object, errors);
    },
    printer: Some(Printer::of(networking::ingress_class)),
    ..Strategy::DEFAULT
};

/// Checks a host name that may start with a wildcard.
fn check_host(path: &Path<'_>, host: &str, errors: &mut Errors) {
    let form = if host.contains('*') { names::wildcard_subdomain } else { names::dns1123_subdomain };
    names::check(path, host, form, errors);
}

fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    let rules = spec.list_at(&["rules"]);
    let backend = spec.at(&["defaultBackend"]);
    if rules.is_empty() && backend.is_null() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.invalid(&path, spec.at(&["rules"]), why);
    }
    if !backend.is_null() {
        validate_backend(backend, &path.child("defaultBackend"), errors);
    }
    // Older servers did not check rules of wildcard hosts, so stored ones are tolerated.
    let lax = old.is_some_and(|old| {
        old.list_at(&["spec", "rules"]).iter().any(|rule| {
            let mut found = Errors::default();
            validate_paths(rule, &Path::root(""), &mut found);
            rule.str_at(&["host"]).contains('*') && !found.is_empty()
        })
    });
    for (index, rule) in rules.iter().enumerate() {
        let path = path.child("rules");
        let path = path.index(index);
        let host = rule.str_at(&["host"]);
        if !host.is_empty() {
            if addresses::parse_sloppy(host).is_some() {
                errors.invalid_str(&path.child("host"), host, "must be a DNS name, not an IP address");
            }
            check_host(&path.child("host"), host, errors);
        }
        if !(lax && host.contains('*')) {
            validate_paths(rule, &path, errors);
        }
    }
    validate_tls(spec, old, &path.child("tls"), errors);
    if let Some(class) = spec.at(&["ingressClassName"]).as_str() {
        names::check(&path.child("ingressClassName"), class, names::dns1123_subdomain, errors);
    }
}

fn validate_tls(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let odd = |name: &str| !name.is_empty() && !names::dns1123_subdomain(name).is_empty();
    let lax = old.is_some_and(|old| old.list_at(&["spec", "tls"]).iter().any(|tls| odd(tls.str_at(&["secretName"]))));
    for (index, tls) in spec.list_at(&["tls"]).iter().enumerate() {
        let path = path.index(index);
        for (index, host) in tls.list_at(&["hosts"]).iter().enumerate() {
            check_host(&path.child("hosts").index(index), host.as_str().unwrap_or(""), errors);
        }
        let secret = tls.str_at(&["secretName"]);
        if !lax && !secret.is_empty() {
            names::check(&path.child("secretName"), secret, names::dns1123_subdomain, errors);
        }
    }
}

fn validate_paths(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let http = rule.at(&["http"]);
    if http.is_null() {
        return;
    }
    let path = path.child("http");
    let path = path.child("paths");
    let paths = http.list_at(&["paths"]);
    if paths.is_empty() {
        errors.required(&path, "");
    }
    for (index, item) in paths.iter().enumerate() {
        let place = path.index(index);
        let Some(kind) = item.at(&["pathType"]).as_str() else {
            errors.required(&place.child("pathType"), "pathType must be specified");
            continue;
        };
        let text = item.str_at(&["path"]);
        if PATH_TYPES.contains(&kind) {
            validate_path(kind, text, &place.child("path"), errors);
        } else {
            errors.not_supported(&place.child("pathType"), kind, &PATH_TYPES);
        }
        validate_backend(item.at(&["backend"]), &place.child("backend"), errors);
    }
}

fn validate_path(kind: &str, text: &str, path: &Path<'_>, errors: &mut Errors) {
    let free = kind == "ImplementationSpecific";
    let absent = free && text.is_empty();
    if !text.starts_with('/') && !absent {
        errors.invalid_str(path, text, "must be an absolute path");
    }
    if free {
        return;
    }
    for part in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| text.contains(part)) {
        errors.invalid_str(path, text, format!("must not contain '{part}'"));
    }
    for part in ["/..", "/."].into_iter().filter(|part| text.ends_with(part)) {
        errors.invalid_str(path, text, format!("cannot end with '{part}'"));
    }
}

fn validate_backend(backend: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (resource, service) = (backend.at(&["resource"]), backend.at(&["service"]));
    match (resource.is_null(), service.is_null()) {
        (false, false) => errors.invalid_str(path, "", "cannot set both resource and service backends"),
        (true, true) => errors.invalid_str(path, "", "resource or service backend is required"),
        (false, true) => validate_reference(resource, &path.child("resource"), errors),
        (true, false) => validate_service(service, path, errors),
    }
}

fn validate_service(service: &Value, path: &Path<'_>, errors: &mut Errors) {
    let place = path.child("service");
    match service.str_at(&["name"]) {
        "" => errors.required(&place.child("name"), ""),
        name => names::check(&place.child("name"), name, names::dns1123_label, errors),
    }
    let (name, number) = (service.str_at(&["port", "name"]), service.int_at(&["port", "number"]).unwrap_or(0));
    let place = place.child("port");
    match (name.is_empty(), number) {
        (true, 0) => errors.required(path, "port name or number is required"),
        (false, 0) => names::check(&place.child("name"), name, names::port_name, errors),
        (true, number) => {
            for message in names::port_number(number) {
                errors.invalid(&place.child("number"), &number.into(), message);
            }
        }
        (false, _) => errors.invalid_str(path, "", "cannot set both port name & port number"),
    }
}

fn validate_reference(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(group) = reference.at(&["apiGroup"]).as_str() {
        names::check(&path.child("apiGroup"), group, names::dns1123_subdomain, errors);
    }
    for field in ["kind", "name"] {
        match reference.str_at(&[field]) {
            "" => errors.required(&path.child(field), ""),
            text => names::check(&path.child(field), text, names::path_segment, errors),
        }
    }
}

fn validate_class(object: &Value, errors: &mut Errors) {
    let path = Path::root("spec");
    let controller = object.str_at(&["spec", "controller"]);
    if controller.len() > CONTROLLER_BYTES_MAX {
        errors.too_long(&path.child("controller"), CONTROLLER_BYTES_MAX);
    }
    names::check_domain_path(&path.child("controller"), controller, errors);
    let parameters = object.at(&["spec", "parameters"]);
    if parameters.is_null() {
        return;
    }
    let path = path.child("parameters");
    validate_reference(parameters, &path, errors);
    let namespace = parameters.at(&["namespace"]).as_str();
    let place = path.child("namespace");
    match (parameters.at(&["scope"]).as_str(), namespace) {
        (None, _) => errors.required(&path.child("scope"), ""),
        (Some("Namespace"), None) => errors.required(&place, "`parameters.scope` is set to 'Namespace'"),
        (Some("Namespace"), Some(namespace)) => names::check(&place, namespace, names::dns1123_label, errors),
        (Some("Cluster"), Some(_)) => errors.forbidden(&place, "`parameters.scope` is set to 'Cluster'"),
        (Some("Cluster"), None) => {}
        (Some(scope), _) => errors.not_supported(&path.child("scope"), scope, &["Cluster", "Namespace"]),
    }
}

fn validate_status(object: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::root("status.loadBalancer.ingress");
    let points = |object: &Value| object.list_at(&["status", "loadBalancer", "ingress"]).to_vec();
    let before: Vec<Value> = points(old).iter().map(|point| point.at(&["ip"]).clone()).collect();
    for (index, point) in points(object).iter().enumerate() {
        let path = path.index(index);
        let ip = point.str_at(&["ip"]);
        if !ip.is_empty() {
            addresses::check_legacy(&path.child("ip"), ip, &before, errors);
        }
        service::change::validate_hostname(point.str_at(&["hostname"]), &path.child("hostname"), errors);
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn broken(spec: Value) -> Vec<String> {
        let mut errors = Errors::default();
        (STRATEGY.validate)(&value!({"metadata": {"name": "i"}, "spec": spec}), &mut errors);
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_and_backends() {
        let backend = value!({"service": {"name": "s", "port": {"number": 80}}});
        assert!(broken(value!({"defaultBackend": (backend.clone())})).is_empty());
        assert_eq!(
            broken(value!({})),
            ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]
        );
        let path = value!({"pathType": "Prefix", "path": "a//b", "backend": (backend)});
        assert_eq!(broken(value!({"rules": [{"host": "*.a.b", "http": {"paths": [path]}}]})).len(), 2);
        assert_eq!(broken(value!({"rules": [{"host": "1.2.3.4"}]})).len(), 1);
    }
}
