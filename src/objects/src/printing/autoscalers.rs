//! Cells of horizontal pod autoscalers: metrics with their targets.

use flotilla_proto::json;
use flotilla_proto::quantity::Quantity;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::{Str, Value};

use super::cell;

/// How many metrics a cell shows.
const SHOWN_MAX: usize = 2;

/// The target of an autoscaler of version 1 that names no metric at all, in percent of the requested CPU.
const CPU_TARGET_DEFAULT: i64 = 80;

const SPECS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const STATUSES: &str = "autoscaling.alpha.kubernetes.io/current-metrics";

/// Appends the cells of an autoscaler in version 2 or 1: name, reference, targets, min, max, replicas, age.
///
/// Version 1 has one metric in a field and the others in an annotation, which does not show where that one stood among
/// them. Callers that have the object in version 2 should pass that version.
pub fn autoscaler(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let specs = object.list_at(&["spec", "metrics"]);
    let targets = if specs.is_empty() {
        targets(&specs_of_1(object), &statuses_of_1(object))
    } else {
        targets(specs, object.list_at(&["status", "currentMetrics"]))
    };
    row(object, targets, now, cells);
}

fn row(object: &Value, targets: Str, now: Timestamp, cells: &mut Vec<Value>) {
    let target = object.at(&["spec", "scaleTargetRef"]);
    let least: Value = match object.int_at(&["spec", "minReplicas"]) {
        Some(least) => least.to_string().into(),
        None => "<unset>".into(),
    };
    cells.extend([
        cell::name(object),
        cell::join([target.str_at(&["kind"]), target.str_at(&["name"])], "/").into(),
        targets.into(),
        least,
        cell::int(object, &["spec", "maxReplicas"]),
        cell::int(object, &["status", "currentReplicas"]),
        cell::age(object, now),
    ]);
}

fn targets(specs: &[Value], statuses: &[Value]) -> Str {
    if specs.is_empty() {
        return Str::const_new("<none>");
    }
    let shown: Vec<String> =
        specs.iter().take(SHOWN_MAX).enumerate().map(|(n, spec)| metric(spec, statuses.get(n))).collect();
    let text = cell::join(shown.iter().map(String::as_str), ", ");
    match specs.len().saturating_sub(SHOWN_MAX) {
        0 => text,
        more => format!("{text} + {more} more...").into(),
    }
}

/// Formats one metric as `current/target`.
fn metric(spec: &Value, status: Option<&Value>) -> String {
    let field = match spec.str_at(&["type"]) {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".into(),
    };
    let (source, target) = (spec.at(&[field]), spec.at(&[field, "target"]));
    let current = status.map(|status| status.at(&[field])).filter(|part| !part.is_null());
    let current = current.map(|part| part.at(&["current"]));
    let is_average = !target.at(&["averageValue"]).is_null();
    match field {
        "pods" => format!("{}/{}", read(current, "averageValue"), amount(target.at(&["averageValue"]))),
        "external" | "object" if is_average => {
            let current = current.filter(|current| !current.at(&["averageValue"]).is_null());
            format!("{}/{} (avg)", read(current, "averageValue"), amount(target.at(&["averageValue"])))
        }
        "external" | "object" => format!("{}/{}", read(current, "value"), amount(target.at(&["value"]))),
        _ => {
            let name = source.str_at(&["name"]);
            if is_average {
                return format!("{name}: {}/{}", read(current, "averageValue"), amount(target.at(&["averageValue"])));
            }
            let percent = |value: Option<&Value>, absent: &str| {
                value.and_then(|value| value.int_at(&["averageUtilization"])).map_or(absent.into(), |n| format!("{n}%"))
            };
            format!("{name}: {}/{}", percent(current, "<unknown>"), percent(Some(target), "<auto>"))
        }
    }
}

/// Returns a current amount; `<unknown>` when nothing is reported for the metric.
fn read(current: Option<&Value>, field: &str) -> String {
    current.map_or("<unknown>".into(), |current| amount(current.at(&[field])))
}

/// Returns a quantity in canonical form, since annotations may hold it in another form.
fn amount(value: &Value) -> String {
    let parsed = match value {
        Value::Str(text) => Quantity::parse(text).ok(),
        Value::Int(number) => Some(Quantity::from_int(*number)),
        _ => None,
    };
    parsed.map_or("<nil>".into(), |quantity| quantity.to_string())
}

fn annotated(object: &Value, key: &str) -> Option<Vec<Value>> {
    let text = cell::annotation(object, key)?;
    match json::parse(text.as_bytes()) {
        Ok(Value::Array(items)) => Some(items),
        _ => None,
    }
}

fn cpu(utilization: i64) -> Value {
    value!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": utilization}}})
}

/// Returns the metrics of a version 1 object as version 2 states them.
fn specs_of_1(object: &Value) -> Vec<Value> {
    if object.str_at(&["metadata", "name"]).is_empty() {
        return Vec::new(); // the empty object of a bookmark gets no default
    }
    let mut specs: Vec<Value> = annotated(object, SPECS).unwrap_or_default().iter().map(spec_of_1).collect();
    specs.extend(object.int_at(&["spec", "targetCPUUtilizationPercentage"]).map(cpu));
    if specs.is_empty() {
        specs.push(cpu(CPU_TARGET_DEFAULT));
    }
    specs
}

fn spec_of_1(spec: &Value) -> Value {
    let kind = spec.str_at(&["type"]);
    let (field, names): (&str, [(&str, &str); 3]) = match kind {
        "Object" => ("object", [("value", "targetValue"), ("averageValue", "averageValue"), ("", "")]),
        "Pods" => ("pods", [("averageValue", "targetAverageValue"), ("", ""), ("", "")]),
        "External" => ("external", [("value", "targetValue"), ("averageValue", "targetAverageValue"), ("", "")]),
        "Resource" | "ContainerResource" => (
            if kind == "Resource" { "resource" } else { "containerResource" },
            [("averageValue", "targetAverageValue"), ("averageUtilization", "targetAverageUtilization"), ("", "")],
        ),
        _ => ("", [("", ""); 3]),
    };
    renamed(spec, kind, field, "target", &names)
}

/// Returns the current metrics of a version 1 object as version 2 states them.
fn statuses_of_1(object: &Value) -> Vec<Value> {
    if let Some(statuses) = annotated(object, STATUSES) {
        return statuses.iter().map(status_of_1).collect();
    }
    let current = object.int_at(&["status", "currentCPUUtilizationPercentage"]);
    let cpu = |current: i64| value!({"type": "Resource", "resource": {"current": {"averageUtilization": current}}});
    current.map(cpu).into_iter().collect()
}

fn status_of_1(status: &Value) -> Value {
    let kind = status.str_at(&["type"]);
    let (field, names): (&str, [(&str, &str); 2]) = match kind {
        "Object" => ("object", [("value", "currentValue"), ("averageValue", "averageValue")]),
        "Pods" => ("pods", [("averageValue", "currentAverageValue"), ("", "")]),
        "External" => ("external", [("value", "currentValue"), ("averageValue", "currentAverageValue")]),
        "Resource" | "ContainerResource" => (
            if kind == "Resource" { "resource" } else { "containerResource" },
            [("averageValue", "currentAverageValue"), ("averageUtilization", "currentAverageUtilization")],
        ),
        _ => ("", [("", ""); 2]),
    };
    renamed(status, kind, field, "current", &names)
}

/// Returns a metric of version 1 as version 2 states it, with its amounts under `part`. `names` has the name of each
/// amount in version 2 and in version 1; a pair of empty names is skipped.
fn renamed(metric: &Value, kind: &str, field: &str, part: &str, names: &[(&str, &str)]) -> Value {
    let source = metric.at(&[field]);
    if source.as_object().is_none() {
        return value!({"type": kind});
    }
    let mut amounts = Value::object();
    for (new, old) in names.iter().filter(|(new, _)| !new.is_empty()) {
        let amount = source.at(&[old]);
        if !amount.is_null() {
            amounts.set_at(&[new], amount.clone());
        }
    }
    let mut renamed = value!({"type": kind});
    renamed.set_at(&[field, "name"], source.at(&["name"]).clone());
    renamed.set_at(&[field, part], amounts);
    renamed
}
