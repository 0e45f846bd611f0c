//! LimitRanges: bounds and defaults per container, pod and claim, which must not contradict each other.

use std::collections::{BTreeSet, HashSet};

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::printing::PLAIN;
use crate::rules::{Generation, NameRule, Strategy, metadata, names, resources};

const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

/// Rules of LimitRanges.
pub static STRATEGY: Strategy = Strategy {
    repeats_metadata: false,
    name: NameRule::Subdomain,
    random_name: true,
    generation: Generation::ClientOwned,
    create_on_update: true,
    default,
    validate,
    validate_update: |object, _, errors| {
        metadata::validate_again(NameRule::Subdomain, true, object, errors);
        validate(object, errors);
    },
    printer: Some(PLAIN),
    ..Strategy::DEFAULT
};

/// Sets the defaults of container limits: default limits from the maximum, default requests from the default limits,
/// then from the minimum.
fn default(object: &mut Value) {
    let limits = object.get_mut("spec").and_then(|spec| spec.get_mut("limits")).and_then(Value::as_array_mut);
    for limit in limits.into_iter().flatten() {
        for list in LISTS {
            resources::round_up(limit.get_mut(list));
        }
        if limit.str_at(&["type"]) == "Container" {
            fill(limit, "default", "max");
            fill(limit, "defaultRequest", "default");
            fill(limit, "defaultRequest", "min");
        }
    }
}

fn fill(limit: &mut Value, list: &str, from: &str) {
    let Some(source) = limit.map_at(&[from]) else { return };
    let present = limit.map_at(&[list]);
    let missing: Vec<(String, Value)> = source
        .iter()
        .filter(|(name, _)| present.is_none_or(|present| !present.contains_key(name)))
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect();
    if missing.is_empty() {
        return;
    }
    let Some(limit) = limit.as_object_mut() else { return };
    let place = limit.entry(list);
    if !matches!(place, Value::Object(_)) {
        *place = Value::object();
    }
    if let Value::Object(map) = place {
        for (name, value) in missing {
            map.insert(name, value);
        }
        map.sort();
    }
}

fn validate(object: &Value, errors: &mut Errors) {
    let path = Path::root("spec.limits");
    let mut types = HashSet::new();
    for (index, limit) in object.list_at(&["spec", "limits"]).iter().enumerate() {
        let path = path.index(index);
        let kind = limit.str_at(&["type"]);
        validate_type(kind, &path.child("type"), errors);
        if !types.insert(kind) {
            errors.duplicate(&path.child("type"), &kind.into());
        }
        validate_limit(limit, kind, &path, errors);
    }
}

fn validate_type(kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let before = errors.0.len();
    names::check(path, kind, names::qualified_name, errors);
    let standard = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
    if errors.0.len() == before && !kind.contains('/') && !standard {
        errors.invalid_str(path, kind, "must be a standard limit type or fully qualified");
    }
}

fn validate_limit(limit: &Value, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let mut keys: BTreeSet<&str> = BTreeSet::new();
    for list in LISTS {
        let of_pod = kind == "Pod" && matches!(list, "default" | "defaultRequest");
        let map = limit.map_at(&[list]);
        if of_pod {
            if map.is_some_and(|map| !map.is_empty()) {
                errors.forbidden(&path.child(list), "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        if list == "maxLimitRequestRatio" && kind == "PersistentVolumeClaim" {
            let bounded = ["min", "max"].iter().any(|list| !limit.at(&[list, "storage"]).is_null());
            if !bounded {
                let why = "either minimum or maximum storage value is required, but neither was provided";
                errors.required(&path.child("limits"), why);
            }
        }
        for (name, _) in map.into_iter().flat_map(Map::iter) {
            let path = path.child(list);
            if matches!(kind, "Pod" | "Container") {
                resources::check_container_name(&path.key(name), name, errors);
            } else {
                resources::check_name(&path.key(name), name, errors);
            }
            keys.insert(name);
        }
    }
    for name in keys {
        validate_amounts(limit, kind, name, path, errors);
    }
}

/// Checks that the bounds and defaults of one resource agree.
fn validate_amounts(limit: &Value, kind: &str, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let value = |list: &str| match limit.at(&[list, name]) {
        Value::Str(_) if kind == "Pod" && matches!(list, "default" | "defaultRequest") => None,
        value @ Value::Str(_) => Some(value),
        _ => None,
    };
    let (max, min, default) = (value("max"), value("min"), value("default"));
    let (request, ratio) = (value("defaultRequest"), value("maxLimitRequestRatio"));
    let amount = resources::amount;
    // Pairs of amounts of which the first must not exceed the second, with the path, the shown value and the names of
    // both for the error.
    let orders = [
        (min, max, "min", min, "min value", "max value"),
        (min, request, "defaultRequest", request, "min value", "default request value"),
        (request, max, "defaultRequest", request, "default request value", "max value"),
        (request, default, "defaultRequest", request, "default request value", "default limit value"),
        (min, default, "default", min, "min value", "default value"),
        (default, max, "default", max, "default value", "max value"),
    ];
    for (low, high, list, shown, low_name, high_name) in orders {
        if let (Some(low), Some(high), Some(shown)) = (low, high, shown)
            && amount(low) > amount(high)
        {
            let (low, high) = (resources::shown(low), resources::shown(high));
            let why = format!("{low_name} {low} is greater than {high_name} {high}");
            errors.invalid(&path.child(list).key(name), shown, why);
        }
    }
    if let Some(ratio) = ratio {
        validate_ratio(ratio, min.zip(max), &path.child("maxLimitRequestRatio").key(name), errors);
    }
    if let (Some(default), Some(request)) = (default, request)
        && !resources::may_overcommit(name)
        && amount(default) != amount(request)
    {
        let (a, b) = (resources::shown(default), resources::shown(request));
        let why = format!("default value {a} must equal to defaultRequest value {b} in {name}");
        errors.invalid(&path.child("defaultRequest").key(name), request, why);
    }
}

fn validate_ratio(ratio: &Value, bounds: Option<(&Value, &Value)>, path: &Path<'_>, errors: &mut Errors) {
    let amount = resources::amount(ratio);
    let shown = resources::shown(ratio);
    if amount < Quantity::from_int(1) {
        errors.invalid(path, ratio, format!("ratio {shown} is less than 1"));
    }
    let Some((min, max)) = bounds else { return };
    let (min, max) = (resources::amount(min), resources::amount(max));
    const MILLI_MAX: i64 = i64::MAX / 1000;
    let fine = [amount.value(), min.value(), max.value()].iter().all(|value| *value < MILLI_MAX);
    let (wanted, limit) = if fine {
        (amount.milli_value() as f64 / 1000.0, max.milli_value() as f64 / min.milli_value() as f64)
    } else {
        (amount.value() as f64, max.value() as f64 / min.value() as f64)
    };
    if wanted > limit {
        errors.invalid(path, ratio, format!("ratio {shown} is greater than max/min = {limit:.6}"));
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn broken(limit: Value) -> Vec<String> {
        let mut object = value!({"spec": {"limits": [limit]}});
        default(&mut object);
        let mut errors = Errors::default();
        validate(&object, &mut errors);
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn containers_get_defaults() {
        let limit = value!({"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"}});
        let mut object = value!({"spec": {"limits": [limit]}});
        default(&mut object);
        let limit = &object.list_at(&["spec", "limits"])[0];
        assert_eq!(limit.at(&["default"]), &value!({"cpu": "2"}));
        assert_eq!(limit.at(&["defaultRequest"]), &value!({"cpu": "2", "memory": "1Gi"}));
    }

    #[test]
    fn bounds_agree() {
        assert_eq!(
            broken(value!({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}})),
            [
                "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
                "spec.limits[0].defaultRequest[cpu]: Invalid value: \"1\": min value 2 is greater than default request value 1",
                "spec.limits[0].default[cpu]: Invalid value: \"2\": min value 2 is greater than default value 1",
            ]
        );
        let ratio =
            value!({"type": "Pod", "maxLimitRequestRatio": {"cpu": "8"}, "min": {"cpu": "1"}, "max": {"cpu": "2"}});
        assert_eq!(
            broken(ratio),
            [
                "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"8\": ratio 8 is greater than max/min = 2.000000"
            ]
        );
        assert_eq!(broken(value!({"type": "PersistentVolumeClaim"})).len(), 1);
        assert_eq!(broken(value!({"type": "Pod", "max": {"bogus": "1"}})).len(), 2);
        assert!(broken(value!({"type": "example.com/Thing", "max": {"example.com/x": "5"}})).is_empty());
    }
}
