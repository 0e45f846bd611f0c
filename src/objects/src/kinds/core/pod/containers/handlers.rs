//! Validation of probes and lifecycle hooks.

use flotilla_proto::value::Value;

use crate::field::{ErrorKind, Errors, Path};
use crate::kinds::core::pod::containers;
use crate::kinds::core::pod::spec::Surroundings;
use crate::rules::{names, numbers};

/// Handlers in the order in which they are checked.
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/// Checks the hooks and probes of a container that runs as long as the pod.
pub fn validate_container(container: &Value, path: &Path<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    let hooks = path.child("lifecycle");
    for key in ["postStart", "preStop"] {
        let hook = container.at(&["lifecycle", key]);
        if !hook.is_null() {
            handler(hook, &hooks.child(key), around, errors);
        }
    }
    if let Some(signal) = container.at(&["lifecycle", "stopSignal"]).as_str() {
        stop_signal(signal, &hooks.child("stopSignal"), around.os, errors);
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.at(&[key]);
        if !probe.is_null() {
            self::probe(probe, &path.child(key), key == "readinessProbe", around, errors);
        }
    }
}

fn probe(probe: &Value, path: &Path<'_>, is_readiness: bool, around: &Surroundings<'_>, errors: &mut Errors) {
    handler(probe, path, around, errors);
    for key in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        numbers::not_negative(&path.child(key), probe.at(&[key]), errors);
    }
    let grace = probe.at(&["terminationGracePeriodSeconds"]);
    let grace_path = path.child("terminationGracePeriodSeconds");
    if grace.as_int().is_some_and(|seconds| seconds <= 0) {
        errors.invalid(&grace_path, grace, "must be greater than 0");
    }
    if is_readiness {
        if !grace.is_null() {
            errors.invalid(&grace_path, grace, "must not be set for readinessProbes");
        }
    } else {
        let threshold = probe.int_at(&["successThreshold"]).unwrap_or(0);
        if threshold != 1 {
            errors.invalid(&path.child("successThreshold"), &threshold.into(), "must be 1");
        }
    }
}

fn handler(handler: &Value, path: &Path<'_>, around: &Surroundings<'_>, errors: &mut Errors) {
    let mut found = false;
    for key in HANDLERS {
        let action = handler.at(&[key]);
        if action.is_null() {
            continue;
        }
        let path = path.child(key);
        if std::mem::replace(&mut found, true) {
            errors.forbidden(&path, "may not specify more than 1 handler type");
            continue;
        }
        match key {
            "exec" if action.list_at(&["command"]).is_empty() => errors.required(&path.child("command"), ""),
            "exec" => {}
            "httpGet" => http_get(action, &path, errors),
            "sleep" => sleep(action, &path, around.grace_period, errors),
            _ => port(&path.child("port"), action.at(&["port"]), errors),
        }
    }
    if !found {
        errors.required(path, "must specify a handler type");
    }
}

fn http_get(action: &Value, path: &Path<'_>, errors: &mut Errors) {
    if action.str_at(&["path"]).is_empty() {
        errors.required(&path.child("path"), "");
    }
    port(&path.child("port"), action.at(&["port"]), errors);
    let scheme = action.str_at(&["scheme"]);
    if !matches!(scheme, "HTTP" | "HTTPS") {
        errors.not_supported(&path.child("scheme"), scheme, &["HTTP", "HTTPS"]);
    }
    for header in action.list_at(&["httpHeaders"]) {
        names::check(&path.child("httpHeaders"), header.str_at(&["name"]), names::http_header_name, errors);
    }
}

fn sleep(action: &Value, path: &Path<'_>, grace_period: Option<i64>, errors: &mut Errors) {
    let seconds = action.int_at(&["seconds"]).unwrap_or(0);
    if let Some(grace) = grace_period.filter(|grace| !(0..=*grace).contains(&seconds)) {
        let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.invalid(path, &seconds.into(), why);
    }
}

/// Checks a port that is a number or a name.
fn port(path: &Path<'_>, port: &Value, errors: &mut Errors) {
    match port {
        Value::Str(name) => names::check(path, name, names::port_name, errors),
        other => containers::port_number(path, other.as_int().unwrap_or(0), errors),
    }
}

fn stop_signal(signal: &str, path: &Path<'_>, os: Option<&str>, errors: &mut Errors) {
    match os {
        None => errors.forbidden(path, "may not be set for containers with empty `spec.os.name`"),
        Some("windows") if !matches!(signal, "SIGKILL" | "SIGTERM") => {
            errors.not_supported(path, signal, &["SIGKILL", "SIGTERM"]);
        }
        Some("linux") if !signal.starts_with("SIG") => {
            errors.push(ErrorKind::NotSupported, path, crate::field::quote(signal), "");
        }
        Some(_) => {}
    }
}
