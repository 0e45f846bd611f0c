//! ReplicaSets (apps).

use flotilla_proto::value::Value;

use super::defaulting::{object_or_new, pointer};
use super::{Generation, Strategy, templates};

/// Rules of ReplicaSets.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::Spec,
    status: true,
    default,
    prepare_create: |object| templates::prepare(object, None),
    prepare_update: |object, old| templates::prepare(object, Some(old)),
    validate: validation::validate,
    validate_update: validation::validate_update,
    validate_status: validation::validate_status,
    warnings: templates::warn_of_name_too,
    selectable: &[templates::STATUS_REPLICAS],
    ..Strategy::DEFAULT
};

pub mod validation;

fn default(set: &mut Value) {
    let Some(spec) = set.as_object_mut().and_then(|map| object_or_new(map, "spec")) else { return };
    pointer(spec, "replicas", 1);
    templates::set_defaults(spec);
}
