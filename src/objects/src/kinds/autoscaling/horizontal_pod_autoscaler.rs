//! HorizontalPodAutoscalers (autoscaling), stored as v2.

mod conversion;
mod metric_conversion;
mod metrics;
mod validation;

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use crate::printing::{Printer, autoscalers};
use crate::rules::defaulting::{object, object_or_new, pointer};
use crate::rules::{Conversion, Generation, Strategy};

/// Default target of the CPU utilization, in percent.
pub const CPU_PERCENT: i64 = 80;
/// Period of a default scaling policy, in seconds.
const PERIOD_SECONDS: i64 = 15;

/// Rules of HorizontalPodAutoscalers.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::ClientOwned,
    status: true,
    default,
    default_converted: Some(default_converted),
    validate: |scaler, errors| {
        validation::validate(scaler, None, errors);
    },
    validate_update: |scaler, old, errors| validation::validate(scaler, Some(old), errors),
    validate_status: validation::validate_status,
    conversions: &[
        Conversion { from: ("autoscaling", "v1"), to: ("autoscaling", "v2"), change: conversion::to_v2 },
        Conversion { from: ("autoscaling", "v2"), to: ("autoscaling", "v1"), change: conversion::to_v1 },
    ],
    printer: Some(Printer::of(autoscalers::autoscaler)),
    ..Strategy::DEFAULT
};

/// Returns the metric of the CPU utilization, which is the default and which v1 has a field for.
fn cpu_metric(percent: impl Into<Value>) -> Value {
    let target = value!({"type": "Utilization", "averageUtilization": (percent.into())});
    value!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

/// Sets defaults of an object that was sent as v1, except in `behavior`: the client sent it in an annotation, and the
/// reference validates it without defaults.
fn default_converted(scaler: &mut Value) {
    let behavior = scaler.remove_at(&["spec", "behavior"]);
    default(scaler);
    if let Some(behavior) = behavior {
        scaler.set_at(&["spec", "behavior"], behavior);
    }
}

fn default(scaler: &mut Value) {
    conversion::drop_annotations(scaler);
    let Some(spec) = scaler.as_object_mut().and_then(|map| object_or_new(map, "spec")) else { return };
    pointer(spec, "minReplicas", 1);
    if spec.get("metrics").and_then(Value::as_array).is_none_or(<[Value]>::is_empty) {
        spec.insert("metrics", vec![cpu_metric(CPU_PERCENT)]);
    }
    if let Some(behavior) = object(spec, "behavior") {
        let pods = value!({"type": "Pods", "value": 4, "periodSeconds": PERIOD_SECONDS});
        let percent = value!({"type": "Percent", "value": 100, "periodSeconds": PERIOD_SECONDS});
        rules(behavior, "scaleUp", vec![pods, percent.clone()]);
        if let Some(up) = object(behavior, "scaleUp") {
            pointer(up, "stabilizationWindowSeconds", 0);
        }
        rules(behavior, "scaleDown", vec![percent]);
    }
}

fn rules(behavior: &mut Map, key: &str, policies: Vec<Value>) {
    if let Some(rules) = object_or_new(behavior, key) {
        pointer(rules, "selectPolicy", "Max");
        pointer(rules, "policies", policies);
    }
}
