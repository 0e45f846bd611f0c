//! CronJobs (batch).

mod schedule;

use flotilla_proto::value::Value;

use super::job;
use crate::field::{Errors, Path};
use crate::kinds::core::pod::dropped;
use crate::kinds::core::pod::spec::{Options, choice};
use crate::kinds::templates;
use crate::printing::{Printer, jobs};
use crate::rules::defaulting::{object_or_new, plain, pointer};
use crate::rules::{Generation, Strategy, metadata, numbers};

const TEMPLATE: [&str; 4] = ["spec", "jobTemplate", "spec", "template"];
const POD: [&str; 5] = ["spec", "jobTemplate", "spec", "template", "spec"];
/// Most bytes in the name of a CronJob: the names of its Jobs have a suffix of eleven characters more.
const NAME_BYTES_MAX: usize = 52;

/// Rules of CronJobs.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::Own,
    status: true,
    default,
    prepare_create: |cron, _| dropped::drop_from_spec(cron, None, &POD),
    prepare_update: |cron, old, _| {
        dropped::drop_from_spec(cron, Some(old), &POD);
        templates::count_spec(cron, old);
    },
    validate,
    validate_update: |cron, old, errors| check(cron, Some(old), errors),
    validate_status: |cron, old, errors| _ = metadata::take_repeated(cron, old, errors),
    warnings,
    printer: Some(Printer::of(jobs::cron_job)),
    ..Strategy::DEFAULT
};

fn default(cron: &mut Value) {
    let Some(spec) = cron.as_object_mut().and_then(|map| object_or_new(map, "spec")) else { return };
    plain(spec, "concurrencyPolicy", "Allow");
    pointer(spec, "suspend", false);
    pointer(spec, "successfulJobsHistoryLimit", 3);
    pointer(spec, "failedJobsHistoryLimit", 1);
    let template = object_or_new(spec, "jobTemplate").and_then(|template| object_or_new(template, "spec"));
    template.into_iter().for_each(job::default_nested);
}

fn validate(cron: &Value, errors: &mut Errors) {
    check(cron, None, errors);
    let name = cron.str_at(&["metadata", "name"]);
    if name.len() > NAME_BYTES_MAX {
        let metadata = Path::root("metadata");
        errors.invalid_str(&metadata.child("name"), name, "must be no more than 52 characters");
    }
}

fn check(cron: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = cron.at(&["spec"]);
    let path = Path::root("spec");
    let zone = spec.at(&["timeZone"]);
    match spec.str_at(&["schedule"]) {
        "" => errors.required(&path.child("schedule"), ""),
        schedule => {
            let zone_allowed = old.is_some_and(|old| old.str_at(&["spec", "schedule"]).contains("TZ"));
            schedule::validate(schedule, zone_allowed, !zone.is_null(), &path.child("schedule"), errors);
        }
    }
    numbers::not_negative(&path.child("startingDeadlineSeconds"), spec.at(&["startingDeadlineSeconds"]), errors);
    if old.is_none_or(|old| old.at(&["spec", "timeZone"]) != zone)
        && let Some(zone) = zone.as_str()
    {
        schedule::validate_zone(zone, &path.child("timeZone"), errors);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    choice(&path.child("concurrencyPolicy"), spec.str_at(&["concurrencyPolicy"]), &policies, errors);
    let template = path.child("jobTemplate");
    job_template(cron, old, &template.child("spec"), errors);
    numbers::all_not_negative(&path, spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], errors);
}

fn job_template(cron: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let options = Options::of_template(old.map(|old| old.at(&TEMPLATE)));
    let job = cron.at(&["spec", "jobTemplate", "spec"]);
    job::spec::validate(job, path, &options, errors);
    let selector = job.at(&["selector"]);
    if !selector.is_null() {
        errors.invalid(&path.child("selector"), selector, "`selector` will be auto-generated");
    }
    if job.is_true_at(&["manualSelector"]) {
        let detail = "supported values: \"nil\", \"false\"";
        errors.push(crate::field::ErrorKind::NotSupported, &path.child("manualSelector"), "true", detail);
    }
}

fn warnings(cron: &Value, old: Option<&Value>, into: &mut Vec<String>) {
    if old.is_none() {
        templates::warn_of_name(cron, "this is used in Pod names and hostnames", into);
    }
    if templates::is_new_generation(cron, old) {
        let spec = Path::root("spec");
        let template = spec.child("jobTemplate");
        job::warn_of_spec(cron.at(&["spec", "jobTemplate", "spec"]), &template.child("spec"), into);
    }
    if old.is_some() && cron.str_at(&["spec", "schedule"]).contains("TZ") {
        let docs = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/";
        into.push(format!(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {docs} for more details"
        ));
    }
}
