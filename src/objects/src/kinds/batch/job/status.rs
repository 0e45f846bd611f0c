//! Validation of writes to a Job's status: its counters, and the conditions that end a Job for good.

use std::collections::HashSet;

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::indexes;
use crate::field::{ErrorKind, Errors, Path};
use crate::rules::{numbers, semantic, shown};

fn is(job: &Value, kind: &str, status: &str) -> bool {
    let mut conditions = job.list_at(&["status", "conditions"]).iter();
    conditions.any(|c| c.str_at(&["type"]) == kind && c.str_at(&["status"]) == status)
}

/// The state of a Job, as its conditions state it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    complete: bool,
    failed: bool,
    target: bool,
    criteria: bool,
}

impl State {
    fn of(job: &Value) -> Self {
        let is = |kind| is(job, kind, "True");
        Self {
            complete: is("Complete"),
            failed: is("Failed"),
            target: is("FailureTarget"),
            criteria: is("SuccessCriteriaMet"),
        }
    }

    fn finished(self) -> bool {
        self.complete || self.failed
    }
}

/// A status write: the Job after and before it, and both states.
struct StatusWrite<'a> {
    job: &'a Value,
    old: &'a Value,
    now: State,
    was: State,
}

impl StatusWrite<'_> {
    fn changes(&self, key: &str) -> bool {
        !semantic::equal(self.sent(key), self.old.at(&["status", key]))
    }

    fn sent(&self, key: &str) -> &Value {
        self.job.at(&["status", key])
    }

    fn count(&self, key: &str) -> i64 {
        self.sent(key).as_int().unwrap_or(0)
    }

    fn finishes(&self) -> bool {
        self.now.finished() != self.was.finished()
    }
}

fn refuse(path: &Path<'_>, key: &str, shown: impl Into<String>, why: &str, errors: &mut Errors) {
    errors.push(ErrorKind::Invalid, &path.child(key), shown, why);
}

/// Checks a status write.
pub fn validate(job: &Value, old: &Value, errors: &mut Errors) {
    let write = StatusWrite { job, old, now: State::of(job), was: State::of(old) };
    let path = Path::root("status");
    let counters = ["active", "succeeded", "failed", "ready", "terminating"];
    numbers::all_not_negative(&path, job.at(&["status"]), &counters, errors);
    uncounted(job, &path.child("uncountedTerminatedPods"), errors);
    ends(&write, &path, errors);
    finished(&write, &path, errors);
    sets(&write, &path, errors);
    rest(&write, &path, errors);
    transitions(&write, &path, errors);
}

fn uncounted(job: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for key in ["succeeded", "failed"] {
        let path = path.child(key);
        for (n, uid) in job.list_at(&["status", "uncountedTerminatedPods", key]).iter().enumerate() {
            let text = uid.as_str().unwrap_or("");
            if text.is_empty() {
                errors.invalid_str(&path.index(n), "", "must not be empty");
            } else if !seen.insert(text) {
                errors.duplicate(&path.index(n), uid);
            }
        }
    }
}

fn ends(write: &StatusWrite<'_>, path: &Path<'_>, errors: &mut Errors) {
    let (now, was) = (write.now, write.was);
    let completes = now.complete != was.complete;
    let (start, end) = (write.sent("startTime"), write.sent("completionTime"));
    let times = write.changes("completionTime");
    if (completes || now.failed != was.failed) && now.complete && now.failed {
        refuse(path, "conditions", "", "cannot set Complete=True and Failed=true conditions", errors);
    }
    if (completes || now.target != was.target) && now.complete && now.target {
        refuse(path, "conditions", "", "cannot set Complete=True and FailureTarget=true conditions", errors);
    }
    if completes || times {
        if !end.is_null() && !now.complete {
            let why = "cannot set completionTime when there is no Complete=True condition";
            refuse(path, "completionTime", crate::field::shown(end), why, errors);
        }
        if end.is_null() && now.complete {
            errors.required(&path.child("completionTime"), "completionTime is required for Complete jobs");
        }
    }
    let time = |value: &Value| value.as_str().and_then(|text| Timestamp::parse(text).ok());
    if (times || write.changes("startTime"))
        && let (Some(begun), Some(ended)) = (time(start), time(end))
        && ended < begun
    {
        let why = "must be equal to or after `startTime`";
        refuse(path, "completionTime", crate::field::shown(end), why, errors);
    }
    if (now.failed != was.failed || write.changes("failedIndexes")) && now.failed && !now.target {
        let why = "cannot set Failed=True condition without the FailureTarget=true condition";
        refuse(path, "conditions", "", why, errors);
    }
    if (completes || now.criteria != was.criteria) && now.complete && !now.criteria {
        let why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        refuse(path, "conditions", "", why, errors);
    }
}

fn finished(write: &StatusWrite<'_>, path: &Path<'_>, errors: &mut Errors) {
    if !write.now.finished() {
        return;
    }
    let active = write.count("active");
    if (write.finishes() || write.changes("active")) && active > 0 {
        refuse(path, "active", active.to_string(), "active>0 is invalid for finished job", errors);
    }
    let job = write.job;
    let nothing_to_do = job.is_true_at(&["spec", "suspend"]) && job.int_at(&["spec", "completions"]) == Some(0);
    let starts = write.finishes() || write.changes("startTime");
    if starts && !nothing_to_do && write.sent("startTime").is_null() {
        errors.required(&path.child("startTime"), "startTime is required for finished job");
    }
    let uncounted = write.sent("uncountedTerminatedPods");
    let left = ["succeeded", "failed"].iter().any(|key| !uncounted.list_at(&[key]).is_empty());
    if (write.finishes() || write.changes("uncountedTerminatedPods")) && left {
        let shown = shown::text("UncountedTerminatedPods", uncounted);
        refuse(path, "uncountedTerminatedPods", shown, "must be empty for finished job", errors);
    }
}

fn sets(write: &StatusWrite<'_>, path: &Path<'_>, errors: &mut Errors) {
    let job = write.job;
    let completions = job.int_at(&["spec", "completions"]);
    let per_index = !job.at(&["spec", "backoffLimitPerIndex"]).is_null();
    let completed = write.sent("completedIndexes").as_str().unwrap_or("");
    let failed = write.sent("failedIndexes").as_str();
    let (completes, fails) = (write.changes("completedIndexes"), write.changes("failedIndexes"));
    let quote = crate::field::quote;
    if let Some(completions) = completions.filter(|_| completes)
        && let Err(why) = indexes::count(completed, completions)
    {
        let why = format!("error parsing completedIndexes: {why}");
        refuse(path, "completedIndexes", quote(completed), &why, errors);
    }
    if let (Some(completions), Some(failed)) = (completions.filter(|_| fails && per_index), failed)
        && let Err(why) = indexes::count(failed, completions)
    {
        let why = format!("error parsing failedIndexes: {why}");
        refuse(path, "failedIndexes", quote(failed), &why, errors);
    }
    if completes && !completed.is_empty() && job.str_at(&["spec", "completionMode"]) != "Indexed" {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        refuse(path, "completedIndexes", quote(completed), why, errors);
    }
    let Some(failed) = failed else { return };
    if fails && !per_index {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        refuse(path, "failedIndexes", quote(failed), why, errors);
    }
    if let Some(completions) = completions.filter(|_| completes || fails)
        && let Some(index) = indexes::overlap(completed, failed, completions)
    {
        let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
        refuse(path, "failedIndexes", quote(failed), &why, errors);
    }
}

fn rest(write: &StatusWrite<'_>, path: &Path<'_>, errors: &mut Errors) {
    let now = write.now;
    let terminating = write.count("terminating");
    if (write.finishes() || write.changes("terminating")) && terminating > 0 && now.finished() {
        refuse(path, "terminating", terminating.to_string(), "terminating>0 is invalid for finished job", errors);
    }
    let ready = write.count("ready");
    let may_exceed = write.sent("ready").is_null() || !write.changes("ready") && !write.changes("active");
    if !may_exceed && ready > write.count("active") {
        refuse(path, "ready", ready.to_string(), "cannot set more ready pods than active", errors);
    }
    if now.criteria && now.failed {
        refuse(path, "conditions", "", "cannot set SuccessCriteriaMet=True and Failed=true conditions", errors);
    }
    if now.criteria && now.target {
        let why = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions";
        refuse(path, "conditions", "", why, errors);
    }
    if !write.job.at(&["spec", "successPolicy"]).is_null() && !now.criteria && now.complete {
        let why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        refuse(path, "conditions", "", why, errors);
    }
}

fn transitions(write: &StatusWrite<'_>, path: &Path<'_>, errors: &mut Errors) {
    let (now, was, job, old) = (write.now, write.was, write.job, write.old);
    for (kind, was, now) in [
        ("Failed", was.failed, now.failed),
        ("Complete", was.complete, now.complete),
        ("FailureTarget", was.target, now.target),
    ] {
        if was && !now {
            let why = format!("cannot disable the terminal {kind}=True condition");
            refuse(path, "conditions", "", &why, errors);
        }
    }
    let spec = job.at(&["spec"]);
    let elastic =
        spec.str_at(&["completionMode"]) == "Indexed" && spec.at(&["completions"]) == spec.at(&["parallelism"]);
    for key in ["failed", "succeeded"] {
        let count = write.count(key);
        let shrinks = count < old.int_at(&["status", key]).unwrap_or(0);
        if shrinks && (key == "failed" || !elastic) {
            refuse(path, key, count.to_string(), &format!("cannot decrease the {key} counter"), errors);
        }
    }
    let (end, ended) = (write.sent("completionTime"), old.at(&["status", "completionTime"]));
    if !end.is_null() && !ended.is_null() && end != ended {
        refuse(path, "completionTime", crate::field::shown(end), "field is immutable", errors);
    }
    let resumes = is(old, "Suspended", "True") && is(job, "Suspended", "False");
    let start = write.sent("startTime");
    let started = !old.at(&["status", "startTime"]).is_null();
    if write.changes("startTime") && started && !resumes && !job.is_true_at(&["spec", "suspend"]) {
        let why = "field is immutable for unsuspended job once set";
        refuse(path, "startTime", crate::field::shown(start), why, errors);
    }
    if was.criteria && !now.criteria {
        refuse(path, "conditions", "", "cannot disable the SuccessCriteriaMet=True condition", errors);
    }
    if was.complete && !was.criteria && now.criteria {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        refuse(path, "conditions", "", why, errors);
    }
}
