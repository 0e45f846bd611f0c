//! Cells of Jobs and CronJobs.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Str, Value};

use super::age;
use super::cell::{self, number};
use super::selector;

/// Name, status, completions, duration, age; containers, images, selector.
pub fn job(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([
        cell::name(object),
        status(object).into(),
        completions(object).into(),
        duration(object, now).into(),
        cell::age(object, now),
    ]);
    cells.extend(cell::containers(object.list_at(&["spec", "template", "spec", "containers"])));
    cells.push(selector::text_or_none(object.at(&["spec", "selector"])));
}

fn status(object: &Value) -> &'static str {
    let is = |kind| cell::is_condition_true(object, kind);
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if cell::is_deleted(object) {
        "Terminating"
    } else {
        ["Suspended", "FailureTarget", "SuccessCriteriaMet"].into_iter().find(|kind| is(kind)).unwrap_or("Running")
    }
}

fn completions(object: &Value) -> String {
    let succeeded = number(object, &["status", "succeeded"]);
    match (object.int_at(&["spec", "completions"]), number(object, &["spec", "parallelism"])) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    }
}

fn duration(object: &Value, now: Timestamp) -> Str {
    match age::time(object.at(&["status", "startTime"])) {
        None => Str::default(),
        Some(start) => {
            let end = age::time(object.at(&["status", "completionTime"])).unwrap_or(now);
            age::human(age::between(start, end))
        }
    }
}

/// Name, schedule, time zone, suspend, active, last schedule, age; containers, images, selector.
pub fn cron_job(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let suspend = match object.at(&["spec", "suspend"]) {
        Value::Bool(true) => "True",
        Value::Bool(false) => "False",
        _ => "<unset>",
    };
    let last = object.at(&["status", "lastScheduleTime"]);
    let template = object.at(&["spec", "jobTemplate", "spec"]);
    cells.extend([
        cell::name(object),
        cell::text(object, &["spec", "schedule"]),
        cell::pointer_or(object, &["spec", "timeZone"], "<none>"),
        suspend.into(),
        cell::count(object, &["status", "active"]),
        if last.is_null() { "<none>".into() } else { age::since(last, now).into() },
        cell::age(object, now),
    ]);
    cells.extend(cell::containers(template.list_at(&["template", "spec", "containers"])));
    cells.push(selector::text_or_none(template.at(&["selector"])));
}
