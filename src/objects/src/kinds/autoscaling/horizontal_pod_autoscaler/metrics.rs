//! Validation of the metrics of HorizontalPodAutoscalers.

use flotilla_proto::value::Value;

use super::validation::{Reference, reference, version_error};
use crate::field::{Errors, Path};
use crate::rules::{names, resources};

const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
/// Sources of metrics in the order in which they are checked, each with its `type`.
const SOURCES: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

/// Checks `metrics`.
pub(super) fn validate(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let metrics = spec.list_at(&["metrics"]);
    let options = Reference { any_version: has_bad_version(old), core_group: true };
    for (n, metric) in metrics.iter().enumerate() {
        validate_metric(metric, options, &path.index(n), errors);
    }
    let measures_outside = metrics.iter().any(|metric| matches!(metric.str_at(&["type"]), "Object" | "External"));
    if spec.int_at(&["minReplicas"]) == Some(0) && !measures_outside {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(path, why);
    }
}

/// Returns whether a metric of the stored object refers to an object of an invalid version.
fn has_bad_version(old: Option<&Value>) -> bool {
    let options = Reference { core_group: true, ..Reference::default() };
    let metrics = old.map_or(&[][..], |old| old.list_at(&["spec", "metrics"]));
    metrics.iter().any(|metric| {
        let object = metric.at(&["object", "describedObject"]);
        metric.str_at(&["type"]) == "Object" && !object.is_null() && version_error(object, options).is_some()
    })
}

fn validate_metric(metric: &Value, options: Reference, path: &Path<'_>, errors: &mut Errors) {
    let kind = metric.str_at(&["type"]);
    let kind_path = path.child("type");
    if kind.is_empty() {
        errors.required(&kind_path, "must specify a metric source type");
    }
    let known = TYPES.contains(&kind);
    if !known {
        errors.not_supported(&kind_path, kind, &TYPES);
    }
    let present: Vec<&str> = SOURCES.iter().map(|(key, _)| *key).filter(|key| !metric.at(&[key]).is_null()).collect();
    if let Some(first) = present.first() {
        source(first, metric.at(&[first]), options, &path.child(first), errors);
    }
    let expected = SOURCES.iter().find(|(_, asked)| *asked == kind).map(|(key, _)| *key);
    match expected {
        Some(key) if metric.at(&[key]).is_null() => {
            errors.required(&path.child(key), "must populate information for the given metric source");
        }
        Some(_) => {}
        None => errors.not_supported(&kind_path, kind, &TYPES),
    }
    if present.len() != 1 {
        for key in present.into_iter().filter(|key| Some(*key) != expected) {
            errors.forbidden(&path.child(key), "must populate the given metric source only");
        }
    }
}

fn source(key: &str, source: &Value, options: Reference, path: &Path<'_>, errors: &mut Errors) {
    let target = source.at(&["target"]);
    let target_path = path.child("target");
    match key {
        "object" | "external" | "pods" => {
            if key == "object" {
                reference(source.at(&["describedObject"]), options, &path.child("describedObject"), errors);
            }
            let metric = path.child("metric");
            match source.str_at(&["metric", "name"]) {
                "" => errors.required(&metric.child("name"), "must specify a metric name"),
                name => names::check(&metric.child("name"), name, names::path_segment, errors),
            }
        }
        _ => resource_name(key, source, path, errors),
    }
    validate_target(target, &target_path, errors);
    let has = |key: &str| !target.at(&[key]).is_null();
    let (value, average, utilization) = (has("value"), has("averageValue"), has("averageUtilization"));
    match key {
        "object" | "external" => {
            let why = match key {
                "object" => "must set either a target value or averageValue",
                _ => "must set either a target value for metric or a per-pod target",
            };
            if !value && !average {
                errors.required(&target_path.child("averageValue"), why);
            }
            if key == "external" && value && average {
                let why = "may not set both a target value for metric and a per-pod target";
                errors.forbidden(&target_path.child("value"), why);
            }
        }
        "pods" => {
            if !average {
                errors.required(&target_path.child("averageValue"), "must specify a positive target averageValue");
            }
        }
        _ => {
            if !utilization && !average {
                let why = "must set either a target raw value or a target utilization";
                errors.required(&target_path.child("averageUtilization"), why);
            }
            if utilization && average {
                let why = "may not set both a target raw value and a target utilization";
                errors.forbidden(&target_path.child("averageValue"), why);
            }
        }
    }
}

fn resource_name(key: &str, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = source.str_at(&["name"]);
    if name.is_empty() {
        errors.required(&path.child("name"), "must specify a resource name");
    } else if key == "containerResource" {
        resources::check_container_name(&path.child("name"), name, errors);
    }
    if key == "containerResource" {
        match source.str_at(&["container"]) {
            "" => errors.required(&path.child("container"), "must specify a container"),
            container => names::check(&path.child("container"), container, names::dns1123_label, errors),
        }
    }
}

fn validate_target(target: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = target.str_at(&["type"]);
    if kind.is_empty() {
        errors.required(&path.child("type"), "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        errors.invalid_str(&path.child("type"), kind, "must be either Utilization, Value, or AverageValue");
    }
    for key in ["value", "averageValue"] {
        let value = target.at(&[key]);
        if !value.is_null() && resources::amount(value).sign() != 1 {
            errors.invalid(&path.child(key), value, "must be positive");
        }
    }
    let utilization = target.at(&["averageUtilization"]);
    if utilization.as_int().is_some_and(|percent| percent < 1) {
        errors.invalid(&path.child("averageUtilization"), utilization, "must be greater than 0");
    }
}
