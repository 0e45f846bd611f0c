//! PodDisruptionBudgets (policy).

use flotilla_proto::value::Value;

use crate::field::{ErrorKind, Errors, Path};
use crate::kinds::templates;
use crate::printing::{Printer, workloads};
use crate::rules::labels::{self, SelectorOptions};
use crate::rules::{Generation, Strategy, conditions, metadata, numbers, shown};

/// Rules of PodDisruptionBudgets.
pub static STRATEGY: Strategy = Strategy {
    known_finalizers: false,
    metadata_last: true,
    generation: Generation::Own,
    status: true,
    unconditional_update: false,
    prepare_update: |object, old, _| templates::count_spec(object, old),
    validate: |budget, errors| validate(budget, false, errors),
    validate_update: |budget, old, errors| {
        metadata::take_repeated(budget, old, errors);
        validate(budget, has_invalid_selector(old), errors);
    },
    validate_status,
    printer: Some(Printer::of(workloads::disruption_budget)),
    ..Strategy::DEFAULT
};

fn has_invalid_selector(budget: &Value) -> bool {
    let mut errors = Errors::default();
    let selector = budget.at(&["spec", "selector"]);
    labels::validate_selector(selector, SelectorOptions::default(), &Path::root(""), &mut errors);
    !errors.is_empty()
}

fn validate(budget: &Value, any_value: bool, errors: &mut Errors) {
    let spec = budget.at(&["spec"]);
    let path = Path::root("spec");
    let bounds = ["minAvailable", "maxUnavailable"].map(|key| (path.child(key), spec.at(&[key])));
    if bounds.iter().all(|(_, bound)| !bound.is_null()) {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(ErrorKind::Invalid, &path, shown::text("PodDisruptionBudgetSpec", spec), why);
    }
    for (path, bound) in &bounds {
        numbers::int_or_percent(path, bound, errors);
        numbers::at_most_whole(path, bound, errors);
    }
    let options = SelectorOptions { any_value, ..Default::default() };
    labels::validate_selector(spec.at(&["selector"]), options, &path.child("selector"), errors);
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    let policy = spec.at(&["unhealthyPodEvictionPolicy"]).as_str();
    if let Some(policy) = policy.filter(|policy| !policies.contains(policy)) {
        errors.not_supported(&path.child("unhealthyPodEvictionPolicy"), policy, &policies);
    }
}

fn validate_status(budget: &Value, old: &Value, errors: &mut Errors) {
    metadata::take_repeated(budget, old, errors);
    let status = budget.at(&["status"]);
    let path = Path::root("status");
    conditions::validate(status.list_at(&["conditions"]), &path.child("conditions"), errors);
    let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    numbers::all_not_negative(&path, status, &counts, errors);
}
