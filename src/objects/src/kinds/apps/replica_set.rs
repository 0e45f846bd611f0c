//! ReplicaSets (apps).

use flotilla_proto::value::Value;

use crate::kinds::templates;
use crate::printing::{Printer, workloads};
use crate::rules::defaulting::{object_or_new, pointer};
use crate::rules::{Generation, Strategy};

/// Rules of ReplicaSets.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::Own,
    status: true,
    default,
    prepare_create: |object, _| templates::prepare_create(object),
    prepare_update: |object, old, _| templates::prepare_update(object, old),
    validate: validation::validate,
    validate_update: validation::validate_update,
    validate_status: validation::validate_status,
    warnings: templates::warn_of_name_too,
    printer: Some(Printer::of(workloads::replica_set)),
    ..Strategy::DEFAULT
};

mod validation;

fn default(set: &mut Value) {
    let Some(spec) = set.as_object_mut().and_then(|map| object_or_new(map, "spec")) else { return };
    pointer(spec, "replicas", 1);
    templates::set_defaults(spec);
}
