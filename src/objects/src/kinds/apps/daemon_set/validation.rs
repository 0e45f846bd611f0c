//! Validation of DaemonSets.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::{replicas, templates};
use crate::rules::labels::{self, SelectorOptions};
use crate::rules::{numbers, selector};

const COUNTS: [&str; 9] = [
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
];

pub(super) fn validate(set: &Value, errors: &mut Errors) {
    check(set, None, errors);
}

pub(super) fn validate_update(set: &Value, old: &Value, errors: &mut Errors) {
    replicas::validate_same_selector(set, old, errors);
    check(set, Some(old), errors);
}

fn check(set: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = set.at(&["spec"]);
    let path = Path::root("spec");
    let options = templates::options(old);
    let own = spec.at(&["selector"]);
    let selector_path = path.child("selector");
    let was_impossible = old.is_some_and(|old| labels::has_impossible_value(old.at(&["spec", "selector"])));
    let any_value = options.any_selector_value || was_impossible;
    labels::validate_selector(own, SelectorOptions { any_value, ..Default::default() }, &selector_path, errors);
    let template = spec.at(&["template"]);
    let template_path = path.child("template");
    if selector::is_understood(own) {
        selector::matches_template(own, template, &template_path, errors);
    }
    if labels::selects_everything(own) {
        errors.invalid(&selector_path, own, "empty selector is invalid for daemonset");
    }
    templates::validate_endless(template, "DaemonSet", &template_path, &options, errors);
    numbers::not_negative(&path.child("minReadySeconds"), spec.at(&["minReadySeconds"]), errors);
    strategy(spec.at(&["updateStrategy"]), &path.child("updateStrategy"), errors);
    numbers::not_negative(&path.child("revisionHistoryLimit"), spec.at(&["revisionHistoryLimit"]), errors);
}

fn strategy(strategy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rolling = strategy.at(&["rollingUpdate"]);
    let rolling_path = path.child("rollingUpdate");
    match strategy.str_at(&["type"]) {
        "OnDelete" => {}
        "RollingUpdate" if rolling.is_null() => errors.required(&rolling_path, ""),
        "RollingUpdate" => self::rolling(rolling, &rolling_path, errors),
        _ => {
            let allowed = ["RollingUpdate", "OnDelete"];
            replicas::strategy_not_supported(path, "DaemonSetUpdateStrategy", strategy, &allowed, errors);
        }
    }
}

fn rolling(rolling: &Value, path: &Path<'_>, errors: &mut Errors) {
    let members = ["maxUnavailable", "maxSurge"].map(|key| (path.child(key), rolling.at(&[key])));
    for (path, value) in &members {
        numbers::int_or_percent(path, value, errors);
    }
    for (path, value) in &members {
        numbers::at_most_whole(path, value, errors);
    }
    let [(gone_path, gone), (extra_path, extra)] = &members;
    match (numbers::amount(gone) != 0, numbers::amount(extra) != 0) {
        (true, true) => errors.invalid(extra_path, extra, "may not be set when maxUnavailable is non-zero"),
        (false, false) => errors.required(gone_path, "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}

pub(super) fn validate_status(set: &Value, old: &Value, errors: &mut Errors) {
    numbers::all_not_negative(&Path::root("status"), set.at(&["status"]), &COUNTS, errors);
    numbers::collision_count(set, old, errors);
}
