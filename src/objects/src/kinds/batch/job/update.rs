//! Validation of updates of a Job: most of its spec is immutable; while it is suspended, the scheduling and resources
//! of its pods may change.

use flotilla_proto::value::Value;

use super::{CONTROLLER, JOB_NAME, TEMPLATE_LABELS, check, spec};
use crate::field::{ErrorKind, Errors, Path};
use crate::kinds::templates;
use crate::rules::NameRule;
use crate::rules::restore::put;
use crate::rules::{labels, metadata, semantic, shown};

const AFFINITY: [&str; 2] = ["spec", "affinity"];

/// Checks an update of a Job.
pub fn validate(job: &Value, old: &Value, errors: &mut Errors) {
    let options = templates::options(Some(old));
    let any_value = labels::has_impossible_value(old.at(&["spec", "selector"]));
    let own = old.at(&TEMPLATE_LABELS);
    let prefixed = own.get(JOB_NAME[1]).is_some() && own.get(CONTROLLER[1]).is_some();
    let repeated = metadata::take_repeated(job, old, errors);
    metadata::validate_again(NameRule::Subdomain, true, job, errors);
    check(job, &options, any_value, prefixed, errors);
    errors.append(repeated.0);
    let path = Path::root("spec");
    let (new, was) = (job.at(&["spec"]), old.at(&["spec"]));
    // The reference checks the spec twice, so errors appear twice.
    if !errors.is_empty() {
        spec::validate_job(new, &path, &options, any_value, errors);
    }
    completions(new, was, &path.child("completions"), errors);
    immutable(new, was, "selector", "", &path, errors);
    template(new, old, &path, errors);
    for (key, structure) in [
        ("completionMode", ""),
        ("podFailurePolicy", "PodFailurePolicy"),
        ("backoffLimitPerIndex", ""),
        ("managedBy", ""),
        ("successPolicy", "SuccessPolicy"),
    ] {
        immutable(new, was, key, structure, &path, errors);
    }
}

fn immutable(new: &Value, old: &Value, key: &str, structure: &str, path: &Path<'_>, errors: &mut Errors) {
    let (new, old) = (new.at(&[key]), old.at(&[key]));
    same(new, old, structure, &path.child(key), errors);
}

fn same(new: &Value, old: &Value, structure: &str, path: &Path<'_>, errors: &mut Errors) {
    if semantic::equal(new, old) {
        return;
    }
    let shown = match new {
        value if structure.is_empty() => crate::field::shown(value),
        Value::Null => "null".into(),
        value => shown::text(structure, value),
    };
    errors.push(ErrorKind::Invalid, path, shown, metadata::IMMUTABLE);
}

fn completions(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (count, was) = (new.at(&["completions"]), old.at(&["completions"]));
    if new.str_at(&["completionMode"]) != "Indexed" {
        return same(count, was, "", path, errors);
    }
    if count != was && !count.is_null() && count != new.at(&["parallelism"]) {
        errors.invalid(path, count, "can only be modified in tandem with spec.parallelism");
    }
}

/// Returns whether no pods of the old Job run, so that its template may change.
fn may_change_template(old: &Value) -> bool {
    let status = old.at(&["status"]);
    let suspended = status
        .list_at(&["conditions"])
        .iter()
        .any(|condition| condition.str_at(&["type"]) == "Suspended" && condition.str_at(&["status"]) == "True");
    let not_started = status.at(&["startTime"]).is_null();
    old.is_true_at(&["spec", "suspend"]) && (not_started || suspended) && status.int_at(&["active"]).unwrap_or(0) == 0
}

fn template(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let template = new.at(&["template"]);
    let mut was = old.at(&["spec", "template"]).clone();
    let may_change = may_change_template(old);
    if may_change {
        forgive_scheduling(template, &mut was);
    }
    if !may_change {
        return same(template, &was, "PodTemplateSpec", &path.child("template"), errors);
    }
    for list in ["containers", "initContainers"] {
        forgive_resources(template, &mut was, list);
    }
    let (pod, was) = (template.at(&["spec"]), was.at(&["spec"]));
    same(pod, was, "PodSpec", &path.child("template.spec"), errors);
}

fn forgive_scheduling(template: &Value, was: &mut Value) {
    let [spec, affinity] = AFFINITY;
    put(was, &[spec, affinity, "nodeAffinity"], template.at(&[spec, affinity, "nodeAffinity"]));
    let is_empty = was.map_at(&AFFINITY).is_some_and(|affinity| affinity.is_empty());
    match template.at(&AFFINITY) {
        Value::Null if is_empty => _ = was.remove_at(&AFFINITY),
        Value::Object(_) if was.at(&AFFINITY).is_null() => was.set_at(&AFFINITY, Value::object()),
        _ => {}
    }
    for path in [
        ["spec", "nodeSelector"],
        ["spec", "tolerations"],
        ["metadata", "annotations"],
        ["metadata", "labels"],
        ["spec", "schedulingGates"],
    ] {
        put(was, &path, template.at(&path));
    }
}

fn forgive_resources(template: &Value, was: &mut Value, list: &str) {
    let new = template.list_at(&["spec", list]);
    let old = was.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut);
    let Some(old) = old.filter(|old| old.len() == new.len()) else { return };
    for (old, new) in old.iter_mut().zip(new) {
        if old.str_at(&["name"]) == new.str_at(&["name"]) {
            put(old, &["resources"], new.at(&["resources"]));
        }
    }
}
