//! Leases (coordination.k8s.io).

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::printing::{Printer, config};
use crate::rules::{Generation, Strategy};

/// Fields of coordinated leader election, a feature that is off.
const COORDINATED: [&str; 2] = ["strategy", "preferredHolder"];

/// Rules of Leases.
pub static STRATEGY: Strategy = Strategy {
    known_finalizers: false,
    generation: Generation::ClientOwned,
    create_on_update: true,
    unconditional_update: false,
    prepare_create: |lease, _| drop_coordinated(lease, None),
    prepare_update: |lease, old, _| drop_coordinated(lease, Some(old)),
    validate,
    validate_update: |lease, _, errors| validate(lease, errors),
    printer: Some(Printer::of(config::lease)),
    ..Strategy::DEFAULT
};

fn drop_coordinated(lease: &mut Value, old: Option<&Value>) {
    for key in COORDINATED {
        if old.is_none_or(|old| old.at(&["spec", key]).is_null()) {
            lease.remove_at(&["spec", key]);
        }
    }
}

fn validate(lease: &Value, errors: &mut Errors) {
    let path = Path::root("spec");
    let duration = lease.at(&["spec", "leaseDurationSeconds"]);
    if duration.as_int().is_some_and(|seconds| seconds <= 0) {
        errors.invalid(&path.child("leaseDurationSeconds"), duration, "must be greater than 0");
    }
    let transitions = lease.at(&["spec", "leaseTransitions"]);
    if transitions.as_int().is_some_and(|count| count < 0) {
        errors.invalid(&path.child("leaseTransitions"), transitions, "must be greater than or equal to 0");
    }
}
