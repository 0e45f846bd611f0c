//! Deployments (apps).

use flotilla_proto::value::{Map, Value};

use crate::kinds::templates;
use crate::printing::{Printer, workloads};
use crate::rules::defaulting::{object, object_or_new, plain, pointer};
use crate::rules::{Generation, Strategy, restore, semantic};

/// Rules of Deployments.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::Own,
    status: true,
    default,
    prepare_create: |object, _| templates::prepare_create(object),
    prepare_update: |object, old, _| prepare_update(object, old),
    prepare_status: |object, old, _| restore::keep(object, old, &["metadata", "labels"]),
    validate: validation::validate,
    validate_update: validation::validate_update,
    validate_status: validation::validate_status,
    warnings: templates::warn_of_name_too,
    resets: &[("status", &[&["spec"], &["metadata", "labels"]])],
    printer: Some(Printer::of(workloads::deployment)),
    ..Strategy::DEFAULT
};

mod validation;

fn default(deployment: &mut Value) {
    let Some(spec) = deployment.as_object_mut().and_then(|map| object_or_new(map, "spec")) else { return };
    pointer(spec, "replicas", 1);
    templates::set_defaults(spec);
    if let Some(strategy) = object_or_new(spec, "strategy") {
        plain(strategy, "type", "RollingUpdate");
        if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate") {
            pointer(strategy, "rollingUpdate", Value::object());
            if let Some(rolling) = object(strategy, "rollingUpdate") {
                quarter(rolling);
            }
        }
    }
    pointer(spec, "revisionHistoryLimit", 10);
    pointer(spec, "progressDeadlineSeconds", 600);
}

fn quarter(rolling: &mut Map) {
    pointer(rolling, "maxUnavailable", "25%");
    pointer(rolling, "maxSurge", "25%");
}

fn prepare_update(deployment: &mut Value, old: &Value) {
    templates::prepare_update(deployment, old);
    let changed = !semantic::equal_at(deployment, old, &["spec"])
        || !semantic::equal_at(deployment, old, &["metadata", "annotations"]);
    templates::set_generation(deployment, old, changed);
}
