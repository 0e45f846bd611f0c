//! ReplicationControllers (core).

use flotilla_proto::value::{Map, Value};

use crate::kinds::templates;
use crate::printing::{Printer, workloads};
use crate::rules::defaulting::{object_or_new, pointer};
use crate::rules::{Dependents, Generation, Strategy};

/// Rules of ReplicationControllers.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::Own,
    status: true,
    dependents: Dependents::Orphan,
    default,
    prepare_create: |object, _| templates::prepare_create(object),
    prepare_update: |object, old, _| templates::prepare_update(object, old),
    validate: validation::validate,
    validate_update: validation::validate_update,
    validate_status: validation::validate_status,
    warnings,
    selectable: &[templates::STATUS_REPLICAS],
    printer: Some(Printer::of(workloads::replication_controller)),
    ..Strategy::DEFAULT
};

mod validation;

fn default(controller: &mut Value) {
    let labels = controller.at(&["spec", "template", "metadata", "labels"]).clone();
    if labels.as_object().is_some_and(|labels| !labels.is_empty()) {
        for path in [["spec", "selector"], ["metadata", "labels"]] {
            if controller.map_at(&path).is_none_or(Map::is_empty) {
                controller.set_at(&path, labels.clone());
            }
        }
    }
    let Some(spec) = controller.as_object_mut().and_then(|map| object_or_new(map, "spec")) else { return };
    pointer(spec, "replicas", 1);
    if spec.get("template").is_some_and(|template| !template.is_null()) {
        templates::set_defaults(spec);
    }
}

/// Adds the warnings about the template. On update the reference warns of the old template, not of the new one.
fn warnings(controller: &Value, old: Option<&Value>, into: &mut Vec<String>) {
    match old {
        None => templates::warn_of_name_too(controller, None, into),
        Some(old) if templates::is_new_generation(controller, Some(old)) => templates::warn(old, None, into),
        Some(_) => {}
    }
}
