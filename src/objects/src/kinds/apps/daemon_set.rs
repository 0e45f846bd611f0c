//! DaemonSets (apps).

use flotilla_proto::value::{Map, Value};

use crate::kinds::templates;
use crate::printing::{Printer, workloads};
use crate::rules::defaulting::{object, object_or_new, plain, pointer};
use crate::rules::{Generation, Strategy, semantic};

/// Annotation that counts the changes of the template, left over from extensions/v1beta1.
const TEMPLATE_GENERATION: [&str; 3] = ["metadata", "annotations", "deprecated.daemonset.template.generation"];

/// Rules of DaemonSets.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::Own,
    status: true,
    default,
    prepare_create: |object, _| prepare_create(object),
    prepare_update: |object, old, _| prepare_update(object, old),
    validate: validation::validate,
    validate_update: validation::validate_update,
    prepare_status: |set, old, _| set.set_at(&TEMPLATE_GENERATION, old.str_at(&TEMPLATE_GENERATION)),
    validate_status: validation::validate_status,
    warnings,
    printer: Some(Printer::of(workloads::daemon_set)),
    ..Strategy::DEFAULT
};

mod validation;

fn default(set: &mut Value) {
    // For a client that omits the annotation the count is zero, and the client owns the field.
    if let Some(annotations) = set.as_object_mut().and_then(|map| object_or_new(map, "metadata"))
        && let Some(annotations) = object_or_new(annotations, "annotations")
    {
        plain(annotations, TEMPLATE_GENERATION[2], "0");
        annotations.sort();
    }
    let Some(spec) = set.as_object_mut().and_then(|map| object_or_new(map, "spec")) else { return };
    templates::set_defaults(spec);
    if let Some(strategy) = object_or_new(spec, "updateStrategy") {
        plain(strategy, "type", "RollingUpdate");
        if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate") {
            pointer(strategy, "rollingUpdate", Value::object());
            if let Some(rolling) = object(strategy, "rollingUpdate") {
                one_at_a_time(rolling);
            }
        }
        // Under another strategy type, the reference does not leave these numbers unset, but sets them to zero.
        if let Some(rolling) = object(strategy, "rollingUpdate") {
            pointer(rolling, "maxUnavailable", 0);
            pointer(rolling, "maxSurge", 0);
        }
    }
    pointer(spec, "revisionHistoryLimit", 10);
}

fn one_at_a_time(rolling: &mut Map) {
    pointer(rolling, "maxUnavailable", 1);
    pointer(rolling, "maxSurge", 0);
}

fn template_generation(set: &Value) -> i64 {
    set.str_at(&TEMPLATE_GENERATION).parse().unwrap_or(0)
}

fn prepare_create(set: &mut Value) {
    templates::prepare_create(set);
    let generation = template_generation(set).max(1);
    set.set_at(&TEMPLATE_GENERATION, generation.to_string());
}

fn prepare_update(set: &mut Value, old: &Value) {
    templates::prepare_update(set, old);
    let changed = !semantic::equal_at(set, old, &templates::PATH);
    let generation = template_generation(old) + i64::from(changed);
    set.set_at(&TEMPLATE_GENERATION, generation.to_string());
}

fn warnings(set: &Value, old: Option<&Value>, into: &mut Vec<String>) {
    if old.is_none_or(|old| template_generation(old) != template_generation(set)) {
        templates::warn(set, None, into);
    }
}
