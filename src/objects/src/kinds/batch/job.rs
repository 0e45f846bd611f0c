//! Jobs (batch).

pub mod indexes;
pub mod policies;
pub mod spec;
mod status;
mod update;

use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::kinds::core::pod::spec::Options;
use crate::kinds::templates;
use crate::printing::{Printer, jobs};
use crate::rules::defaulting::{object, object_or_new, objects, plain, pointer};
use crate::rules::{Dependents, Generation, Strategy, labels, names};

const TEMPLATE_LABELS: [&str; 4] = ["spec", "template", "metadata", "labels"];
const JOB_NAME: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const CONTROLLER: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
/// The server warns of a Job with more completions than this if its parallelism is also above `MANY_PARALLEL`.
const MANY_COMPLETIONS: i64 = 100_000;
const MANY_PARALLEL: i64 = 10_000;

/// Rules of Jobs.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::Own,
    status: true,
    dependents: Dependents::Orphan,
    dependents_warning: Some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
         set propagationPolicy=Orphan to suppress this warning",
    ),
    default,
    prepare_create: |object, _| prepare_create(object),
    prepare_update: |object, old, _| templates::prepare_update(object, old),
    validate,
    validate_update: update::validate,
    validate_status: status::validate,
    warnings,
    selectable: &[("status.successful", |job| job.int_at(&["status", "succeeded"]).unwrap_or_default().to_string())],
    unknown_field: Some(|_, field| format!("field label {field:?} not supported for Job")),
    printer: Some(Printer::of(jobs::job)),
    ..Strategy::DEFAULT
};

fn default(job: &mut Value) {
    label_like_template(job);
    let Some(spec) = job.as_object_mut().and_then(|map| object_or_new(map, "spec")) else { return };
    let unset = |spec: &Map, key: &str| spec.get(key).is_none_or(Value::is_null);
    if unset(spec, "completions") && unset(spec, "parallelism") {
        spec.insert("completions", 1);
    }
    pointer(spec, "parallelism", 1);
    let per_index = !unset(spec, "backoffLimitPerIndex");
    pointer(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
    pointer(spec, "completionMode", "NonIndexed");
    pointer(spec, "suspend", false);
    let policy = if unset(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    pointer(spec, "podReplacementPolicy", policy);
    pointer(spec, "manualSelector", false);
    default_nested(spec);
}

/// Copies the labels of the template to a Job without labels.
fn label_like_template(job: &mut Value) {
    let labels = job.at(&TEMPLATE_LABELS).clone();
    let unlabelled = job.map_at(&["metadata", "labels"]).is_none_or(Map::is_empty);
    if unlabelled && labels.as_object().is_some_and(|labels| !labels.is_empty()) {
        job.set_at(&["metadata", "labels"], labels);
    }
}

/// Sets the defaults that a Job shares with the template of a CronJob.
pub fn default_nested(spec: &mut Map) {
    templates::set_defaults(spec);
    let Some(policy) = object(spec, "podFailurePolicy") else { return };
    for rule in objects(policy, "rules") {
        objects(rule, "onPodConditions").for_each(|pattern| plain(pattern, "status", "True"));
    }
}

fn prepare_create(job: &mut Value) {
    // In the reference, a Job without labels shares those of its template, so labels that are added to the template
    // here appear on the Job, too. A Job with a generated name shares nothing: the reference has copied it before.
    let labels = job.at(&["metadata", "labels"]);
    let shared = labels.is_same(job.at(&TEMPLATE_LABELS)) && job.str_at(&["metadata", "generateName"]).is_empty();
    if !job.is_true_at(&["spec", "manualSelector"]) {
        select_own_pods(job);
    }
    if shared {
        let all = job.at(&TEMPLATE_LABELS).clone();
        job.set_at(&["metadata", "labels"], all);
    }
    // When the reference reads the stored Job, it copies the new labels of the template to a Job without labels. A Job
    // whose name is too long for the label is not stored: validation refuses it.
    if names::label_value(job.str_at(&["metadata", "name"])).is_empty() {
        label_like_template(job);
    }
    templates::prepare_create(job);
}

/// Labels the pods of the Job with its name and UID, and selects them by these labels.
fn select_own_pods(job: &mut Value) {
    let name = job.at(&["metadata", "name"]).clone();
    let uid = job.at(&["metadata", "uid"]).clone();
    let name = if name.is_null() { Value::from("") } else { name };
    for (keys, value) in [(JOB_NAME, &name), (CONTROLLER, &uid)] {
        for key in keys {
            if job.at(&TEMPLATE_LABELS).get(key).is_none() {
                let [spec, template, metadata, labels] = TEMPLATE_LABELS;
                job.set_at(&[spec, template, metadata, labels, key], value.clone());
            }
        }
    }
    let template = job.get_mut("spec").and_then(|spec| spec.get_mut("template"));
    let labels = template.and_then(|template| template.get_mut("metadata")?.get_mut("labels")?.as_object_mut());
    labels.into_iter().for_each(Map::sort);
    let selected = ["spec", "selector", "matchLabels", CONTROLLER[1]];
    if job.at(&selected).is_null() {
        job.set_at(&selected, uid);
        let selector = job.get_mut("spec").and_then(|spec| spec.get_mut("selector"));
        let labels = selector.and_then(|selector| selector.get_mut("matchLabels")?.as_object_mut());
        labels.into_iter().for_each(Map::sort);
    }
}

fn validate(job: &Value, errors: &mut Errors) {
    check(job, &templates::options(None), false, true, errors);
}

/// Checks the rules for creation and for every update.
fn check(job: &Value, options: &Options, any_value: bool, prefixed: bool, errors: &mut Errors) {
    generated_selector(job, prefixed, errors);
    let path = Path::root("spec");
    spec::validate_job(job.at(&["spec"]), &path, options, any_value, errors);
    let completions = job.int_at(&["spec", "completions"]).unwrap_or(0);
    if job.str_at(&["spec", "completionMode"]) == "Indexed" && completions > 0 {
        let name = job.str_at(&["metadata", "name"]);
        let last = format!("{name}-{}", completions - 1);
        if !names::dns1123_label(&last).is_empty() {
            let metadata = Path::root("metadata");
            let why = format!("will not able to create pod with invalid DNS label: {last}");
            errors.invalid_str(&metadata.child("name"), name, why);
        }
    }
}

fn generated_selector(job: &Value, prefixed: bool, errors: &mut Errors) {
    let selector = job.at(&["spec", "selector"]);
    if job.is_true_at(&["spec", "manualSelector"]) || selector.is_null() {
        return;
    }
    let (name, uid) = (job.str_at(&["metadata", "name"]), job.str_at(&["metadata", "uid"]));
    if uid.is_empty() {
        errors.required(&Path::root("metadata.uid"), "");
    }
    let path = Path::root("spec.template.metadata.labels");
    let mut expected = Map::new();
    for n in 0..=usize::from(prefixed) {
        for (key, value) in [(CONTROLLER[n], uid), (JOB_NAME[n], name)] {
            expected.insert(key, value);
            let own = job.at(&TEMPLATE_LABELS);
            let why = format!("must be '{value}'");
            match own.get(key).and_then(Value::as_str) {
                None => errors.required(&path.key(key), why),
                Some(label) if label != value => errors.invalid(&path.key(key), own, why),
                Some(_) => {}
            }
        }
    }
    if crate::rules::selector::is_understood(selector) && !labels::selector_matches(selector, Some(&expected)) {
        errors.invalid(&Path::root("spec.selector"), selector, "`selector` not auto-generated");
    }
}

fn warnings(job: &Value, old: Option<&Value>, into: &mut Vec<String>) {
    if old.is_none() {
        templates::warn_of_name(job, "this is used in Pod names and hostnames", into);
    }
    if templates::is_new_generation(job, old) {
        warn_of_spec(job.at(&["spec"]), &Path::root("spec"), into);
    }
}

/// Warns of the spec of a Job or of a CronJob's template.
pub fn warn_of_spec(spec: &Value, path: &Path<'_>, into: &mut Vec<String>) {
    let number = |key: &str| spec.int_at(&[key]).unwrap_or(0);
    let many = number("completions") > MANY_COMPLETIONS && number("parallelism") > MANY_PARALLEL;
    if spec.str_at(&["completionMode"]) == "Indexed" && many {
        let why = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
            Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
        into.push(format!("{path}: {why}"));
    }
    crate::kinds::core::pod::warnings::of_template(spec.at(&["template"]), &path.child("template"), into);
}
