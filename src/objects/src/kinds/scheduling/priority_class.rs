//! PriorityClasses (scheduling.k8s.io).

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::core::pod::spec::choice;
use crate::printing::{Printer, nodes};
use crate::rules::defaulting::pointer;
use crate::rules::{Generation, Strategy, metadata};

/// Highest priority of a class that is not one of the system's.
pub const USER_PRIORITY_MAX: i64 = 1_000_000_000;
const SYSTEM_PREFIX: &str = "system-";
/// The system's own classes.
pub const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// Rules of PriorityClasses.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::Own,
    default: |class| {
        if let Some(class) = class.as_object_mut() {
            pointer(class, "preemptionPolicy", "PreemptLowerPriority");
        }
    },
    validate,
    validate_update,
    printer: Some(Printer::of(nodes::priority_class)),
    ..Strategy::DEFAULT
};

/// Returns why a class with the system's prefix is not a system class. Returns `None` if it is one.
fn not_of_system(name: &str, value: i64, global: bool) -> Option<String> {
    let Some((_, known)) = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if value != *known {
        Some(format!("value of {name} PriorityClass must be {known}"))
    } else {
        global.then(|| format!("globalDefault of {name} PriorityClass must be false"))
    }
}

fn validate(class: &Value, errors: &mut Errors) {
    let name = class.str_at(&["metadata", "name"]);
    let value = class.int_at(&["value"]).unwrap_or(0);
    if name.starts_with(SYSTEM_PREFIX) {
        if let Some(why) = not_of_system(name, value, class.is_true_at(&["globalDefault"])) {
            let metadata = Path::root("metadata");
            let reserved = "priority class names with 'system-' prefix are reserved for system use only. error:";
            errors.forbidden(&metadata.child("name"), format!("{reserved} {why}"));
        }
    } else if value > USER_PRIORITY_MAX {
        let why = format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
        errors.forbidden(&Path::root("value"), why);
    }
    if let Some(policy) = class.at(&["preemptionPolicy"]).as_str() {
        choice(&Path::root("preemptionPolicy"), policy, &["PreemptLowerPriority", "Never"], errors);
    }
}

fn validate_update(class: &Value, old: &Value, errors: &mut Errors) {
    if class.int_at(&["value"]).unwrap_or(0) != old.int_at(&["value"]).unwrap_or(0) {
        errors.forbidden(&Path::root("value"), "may not be changed in an update.");
    }
    let (new, was) = (class.at(&["preemptionPolicy"]), old.at(&["preemptionPolicy"]));
    metadata::immutable(&Path::root("preemptionPolicy"), new, was, errors);
}
