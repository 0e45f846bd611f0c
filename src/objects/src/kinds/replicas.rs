//! Rules that kinds with a number of replicas share.

use flotilla_proto::value::Value;

use super::core::pod::spec::Options;
use super::templates;
use crate::field::{ErrorKind, Errors, Path};
use crate::rules::{metadata, numbers, selector, shown};

/// Checks the selector and the template of a Deployment or ReplicaSet. As in the reference, the errors about both kinds
/// name Deployments for the selector and ReplicaSets for the template.
pub fn validate_selector_and_template(spec: &Value, options: &Options, errors: &mut Errors) {
    let path = Path::root("spec");
    let own = spec.at(&["selector"]);
    selector::required(own, "deployment", &path.child("selector"), errors);
    if !selector::is_understood(own) {
        return errors.invalid(&path.child("selector"), own, "invalid label selector");
    }
    let template = spec.at(&["template"]);
    let path = path.child("template");
    selector::matches_template(own, template, &path, errors);
    templates::validate_endless(template, "ReplicaSet", &path, options, errors);
}

/// Checks that an update does not change the selector.
pub fn validate_same_selector(object: &Value, old: &Value, errors: &mut Errors) {
    let (new, was) = (object.at(&["spec", "selector"]), old.at(&["spec", "selector"]));
    metadata::immutable(&Path::root("spec").child("selector"), new, was, errors);
}

/// Adds the error that the type of a strategy is not allowed; the message shows the whole strategy.
pub fn strategy_not_supported(
    path: &Path<'_>,
    structure: &str,
    strategy: &Value,
    allowed: &[&str],
    errors: &mut Errors,
) {
    let allowed: Vec<String> = allowed.iter().map(|word| crate::field::quote(word)).collect();
    let detail = format!("supported values: {}", allowed.join(", "));
    errors.push(ErrorKind::NotSupported, path, shown::text(structure, strategy), detail);
}

/// Checks the counts of pods in a status: none of `all` is negative, each of `parts` is at most `replicas`, and
/// `availableReplicas` is at most `readyReplicas`, else the message is `more_than_ready`.
pub fn validate_counts(status: &Value, all: &[&str], parts: &[&str], more_than_ready: &str, errors: &mut Errors) {
    let path = Path::root("status");
    numbers::all_not_negative(&path, status, all, errors);
    let mut pairs: Vec<_> =
        parts.iter().map(|part| (*part, "replicas", "cannot be greater than status.replicas")).collect();
    pairs.push(("availableReplicas", "readyReplicas", more_than_ready));
    numbers::ordered(&path, status, &pairs, errors);
}

/// Checks the counts in the status of a ReplicaSet or ReplicationController.
pub fn validate_set_counts(status: &Value, errors: &mut Errors) {
    let all = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    validate_counts(status, &all, &parts, "cannot be greater than readyReplicas", errors);
}
