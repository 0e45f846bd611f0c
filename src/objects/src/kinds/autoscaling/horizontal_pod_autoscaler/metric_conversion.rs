//! Converts metrics of HorizontalPodAutoscalers between v2 and the form that annotations of v1 have.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use crate::rules::resources;

/// The part of an autoscaler to which a metric belongs.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum AutoscalerPart {
    /// A metric with its target.
    Spec,
    /// A metric with its current value.
    Status,
}

/// A field of a metric's source in v1, and its path in v2.
struct MetricField {
    v1: &'static str,
    v2: &'static [&'static str],
    form: FieldConversion,
}

/// The value that a conversion writes for a field.
#[derive(Clone, Copy, PartialEq)]
enum FieldConversion {
    /// The value of the field, if it has one.
    AsIs,
    /// The value of the field, or 0.
    Amount,
    /// The value of the field. In v2 it is the empty text if v1 has none.
    Name,
}

const TARGET_TYPE: [&str; 2] = ["target", "type"];
const TARGET_VALUE: [&str; 2] = ["target", "value"];
const TARGET_AVERAGE: [&str; 2] = ["target", "averageValue"];
const TARGET_UTILIZATION: [&str; 2] = ["target", "averageUtilization"];
const CURRENT_VALUE: [&str; 2] = ["current", "value"];
const CURRENT_AVERAGE: [&str; 2] = ["current", "averageValue"];
const CURRENT_UTILIZATION: [&str; 2] = ["current", "averageUtilization"];

const DESCRIBED: MetricField = as_is("target", &["describedObject"]);
const METRIC_NAME: MetricField = MetricField { v1: "metricName", v2: &["metric", "name"], form: FieldConversion::Name };
const SELECTOR: MetricField = as_is("selector", &["metric", "selector"]);
const EXTERNAL_SELECTOR: MetricField = as_is("metricSelector", &["metric", "selector"]);
const NAME: MetricField = as_is("name", &["name"]);
const CONTAINER: MetricField = as_is("container", &["container"]);

/// The fields of each source of a metric in a spec, in v1's order.
const SPEC: [(&str, &[MetricField]); 5] = [
    (
        "object",
        &[
            DESCRIBED,
            METRIC_NAME,
            amount("targetValue", &TARGET_VALUE),
            SELECTOR,
            as_is("averageValue", &TARGET_AVERAGE),
        ],
    ),
    ("pods", &[METRIC_NAME, amount("targetAverageValue", &TARGET_AVERAGE), SELECTOR]),
    ("resource", &RESOURCE),
    ("containerResource", &RESOURCE),
    (
        "external",
        &[
            METRIC_NAME,
            EXTERNAL_SELECTOR,
            as_is("targetValue", &TARGET_VALUE),
            as_is("targetAverageValue", &TARGET_AVERAGE),
        ],
    ),
];
const RESOURCE: [MetricField; 4] = [
    NAME,
    as_is("targetAverageUtilization", &TARGET_UTILIZATION),
    as_is("targetAverageValue", &TARGET_AVERAGE),
    CONTAINER,
];

/// The fields of each source of a metric in a status, in v1's order.
const STATUS: [(&str, &[MetricField]); 5] = [
    (
        "object",
        &[
            DESCRIBED,
            METRIC_NAME,
            amount("currentValue", &CURRENT_VALUE),
            SELECTOR,
            as_is("averageValue", &CURRENT_AVERAGE),
        ],
    ),
    ("pods", &[METRIC_NAME, amount("currentAverageValue", &CURRENT_AVERAGE), SELECTOR]),
    ("resource", &CURRENT_RESOURCE),
    ("containerResource", &CURRENT_RESOURCE),
    (
        "external",
        &[
            METRIC_NAME,
            EXTERNAL_SELECTOR,
            amount("currentValue", &CURRENT_VALUE),
            as_is("currentAverageValue", &CURRENT_AVERAGE),
        ],
    ),
];
const CURRENT_RESOURCE: [MetricField; 4] = [
    NAME,
    as_is("currentAverageUtilization", &CURRENT_UTILIZATION),
    amount("currentAverageValue", &CURRENT_AVERAGE),
    CONTAINER,
];

const fn as_is(v1: &'static str, v2: &'static [&'static str]) -> MetricField {
    MetricField { v1, v2, form: FieldConversion::AsIs }
}

const fn amount(v1: &'static str, v2: &'static [&'static str]) -> MetricField {
    MetricField { v1, v2, form: FieldConversion::Amount }
}

const fn sources(part: AutoscalerPart) -> &'static [(&'static str, &'static [MetricField]); 5] {
    match part {
        AutoscalerPart::Spec => &SPEC,
        AutoscalerPart::Status => &STATUS,
    }
}

/// Converts a metric of v2 to the form of v1.
pub(super) fn to_v1(metric: &Value, part: AutoscalerPart) -> Value {
    let mut converted = value!({"type": (metric.at(&["type"]).clone())});
    for (source, fields) in sources(part) {
        let from = metric.at(&[source]);
        if from.is_null() {
            continue;
        }
        let mut into = Value::object();
        for MetricField { v1, v2, form } in *fields {
            put(&mut into, &[v1], from.at(v2), *form == FieldConversion::Amount);
        }
        converted.set_at(&[source], into);
    }
    converted
}

/// Converts a metric in the form of v1 to v2. The fields of the result are not in v2's order.
pub(super) fn to_v2(metric: &Value, part: AutoscalerPart) -> Value {
    let mut converted = value!({"type": (metric.str_at(&["type"]))});
    for (source, fields) in sources(part) {
        let from = metric.at(&[source]);
        if from.is_null() {
            continue;
        }
        let mut into = Value::object();
        for MetricField { v1, v2, form } in *fields {
            match form {
                FieldConversion::Name => into.set_at(v2, from.str_at(&[v1])),
                _ => put(&mut into, v2, from.at(&[v1]), *form == FieldConversion::Amount),
            }
        }
        if part == AutoscalerPart::Spec {
            complete_target(source, &mut into);
        }
        converted.set_at(&[source], into);
    }
    converted
}

/// Sets a field unless the value is null; `is_amount` says that 0 replaces null.
fn put(object: &mut Value, path: &[&str], value: &Value, is_amount: bool) {
    match value {
        Value::Null if is_amount => object.set_at(path, "0"),
        Value::Null => {}
        value => object.set_at(path, value.clone()),
    }
}

/// Sets the type of a target, which v1 does not have. Drops the total of an object if it is 0 and there is an average:
/// v1 states 0 where there is no total.
fn complete_target(source: &str, into: &mut Value) {
    let has = |path: &[&str]| !into.at(path).is_null();
    let has_average = has(&TARGET_AVERAGE);
    let kind = match source {
        "object" if !has_average => "Value",
        "external" if has(&TARGET_VALUE) => "Value",
        _ if has(&TARGET_UTILIZATION) => "Utilization",
        _ => "AverageValue",
    };
    if source == "object" && has_average && resources::amount(into.at(&TARGET_VALUE)).sign() == 0 {
        into.remove_at(&TARGET_VALUE);
    }
    into.set_at(&TARGET_TYPE, kind);
}
