//! Converts HorizontalPodAutoscalers between v1 and v2. Annotations of v1 hold the fields that v1 does not have.

use flotilla_proto::json;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::metric_conversion::{self, AutoscalerPart};
use super::{CPU_PERCENT, cpu_metric};
use crate::rules::shown;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const ANNOTATIONS: [&str; 6] = [
    METRICS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
    CURRENT_METRICS,
    CONDITIONS,
];
const CPU_FIELD: [&str; 2] = ["spec", "targetCPUUtilizationPercentage"];
const CURRENT_CPU_FIELD: [&str; 2] = ["status", "currentCPUUtilizationPercentage"];

/// Drops the annotations in which v1 holds fields of v2.
pub fn drop_annotations(scaler: &mut Value) {
    let path = ["metadata", "annotations"];
    let Some(annotations) = scaler.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations")) else {
        return;
    };
    let Some(annotations) = annotations.as_object_mut() else { return };
    annotations.retain(|key, _| !ANNOTATIONS.contains(&key));
    if annotations.is_empty() {
        scaler.remove_at(&path);
    }
}

fn put(object: &mut Value, path: &[&str], value: &Value) {
    if !value.is_null() {
        object.set_at(path, value.clone());
    }
}

fn is_cpu_utilization(metric: &Value) -> bool {
    metric.str_at(&["type"]) == "Resource"
        && metric.str_at(&["resource", "name"]) == "cpu"
        && !metric.at(&["resource", "target", "averageUtilization"]).is_null()
}

/// Converts a v2 object to v1.
pub fn to_v1(scaler: &mut Value) {
    drop_annotations(scaler);
    let spec = scaler.at(&["spec"]).clone();
    let status = scaler.at(&["status"]).clone();
    for path in [["spec", "metrics"], ["spec", "behavior"], ["status", "currentMetrics"], ["status", "conditions"]] {
        scaler.remove_at(&path);
    }
    let (cpu, others): (Vec<&Value>, Vec<&Value>) =
        spec.list_at(&["metrics"]).iter().partition(|metric| is_cpu_utilization(metric));
    if let Some(metric) = cpu.first() {
        put(scaler, &CPU_FIELD, metric.at(&["resource", "target", "averageUtilization"]));
    }
    let current = status.list_at(&["currentMetrics"]);
    for metric in current.iter().filter(|metric| metric.str_at(&["type"]) == "Resource") {
        if metric.str_at(&["resource", "name"]) == "cpu" {
            put(scaler, &CURRENT_CPU_FIELD, metric.at(&["resource", "current", "averageUtilization"]));
        }
    }
    let mut annotate = |key: &str, value: Value| {
        let text = String::from_utf8_lossy(&json::to_vec(&value)).into_owned();
        scaler.set_at(&["metadata", "annotations", key], text);
    };
    if !others.is_empty() {
        annotate(
            METRICS,
            Value::Array(
                others.into_iter().map(|metric| metric_conversion::to_v1(metric, AutoscalerPart::Spec)).collect(),
            ),
        );
    }
    if !current.is_empty() {
        annotate(
            CURRENT_METRICS,
            Value::Array(
                current.iter().map(|metric| metric_conversion::to_v1(metric, AutoscalerPart::Status)).collect(),
            ),
        );
    }
    if !spec.at(&["behavior"]).is_null() {
        annotate(BEHAVIOR, shown::internal("HorizontalPodAutoscalerBehavior", spec.at(&["behavior"])));
    }
    if !status.list_at(&["conditions"]).is_empty() {
        annotate(CONDITIONS, status.at(&["conditions"]).clone());
    }
    if let Some(annotations) = scaler.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations")) {
        annotations.as_object_mut().into_iter().for_each(Map::sort);
    }
}

/// Returns the list or object in an annotation. Returns `None` if it has none.
fn annotation(scaler: &Value, key: &str) -> Option<Value> {
    let text = scaler.at(&["metadata", "annotations", key]).as_str()?;
    json::parse(text.as_bytes()).ok().filter(|value| value.as_array().is_some() || value.as_object().is_some())
}

/// Converts a v1 object to v2.
pub fn to_v2(scaler: &mut Value) {
    let cpu = scaler.remove_at(&CPU_FIELD).filter(|percent| !percent.is_null());
    let current_cpu = scaler.remove_at(&CURRENT_CPU_FIELD).filter(|percent| !percent.is_null());
    let mut metrics: Vec<Value> = Vec::new();
    if let Some(Value::Array(others)) = annotation(scaler, METRICS) {
        metrics.extend(others.iter().map(|metric| metric_conversion::to_v2(metric, AutoscalerPart::Spec)));
    }
    metrics.extend(cpu.map(cpu_metric));
    if metrics.is_empty() {
        metrics.push(cpu_metric(CPU_PERCENT));
    }
    let behavior = annotation(scaler, BEHAVIOR).map(|behavior| lower_keys(&behavior));
    if let Some(behavior) = behavior.filter(|behavior| behavior.as_object().is_some_and(|map| !map.is_empty())) {
        scaler.set_at(&["spec", "behavior"], behavior);
    }
    scaler.set_at(&["spec", "metrics"], metrics);
    let current = match (annotation(scaler, CURRENT_METRICS), current_cpu) {
        (Some(Value::Array(list)), _) => {
            Value::Array(list.iter().map(|metric| metric_conversion::to_v2(metric, AutoscalerPart::Status)).collect())
        }
        (_, Some(percent)) => {
            let current = value!({"averageUtilization": percent});
            let metric = value!({"type": "Resource", "resource": {"name": "cpu", "current": current}});
            Value::Array(vec![metric])
        }
        _ => Value::Null,
    };
    scaler.set_at(&["status", "currentMetrics"], current);
    if let Some(conditions @ Value::Array(_)) = annotation(scaler, CONDITIONS) {
        scaler.set_at(&["status", "conditions"], conditions);
    }
    drop_annotations(scaler);
}

/// Lowers the first letter of each key, and drops null members: the reference writes these keys with capitals, and Go
/// reads them in any case.
fn lower_keys(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let members = map.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| {
                let mut key = key.to_owned();
                if let Some(first) = key.get_mut(..1) {
                    first.make_ascii_lowercase();
                }
                (key, lower_keys(value))
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(lower_keys).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_v1_lacks_survive_in_annotations() {
        let average = value!({"type": "AverageValue", "averageValue": "100M"});
        let memory = value!({"type": "Resource", "resource": {"name": "memory", "target": average}});
        let behavior = value!({"scaleDown": {"stabilizationWindowSeconds": 30, "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 10, "periodSeconds": 15}]}});
        let mut scaler = value!({
            "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "metrics": [memory, (cpu_metric(50))], "behavior": behavior},
            "status": {"currentMetrics": null}
        });
        let original = scaler.clone();
        to_v1(&mut scaler);
        assert_eq!(scaler.int_at(&CPU_FIELD), Some(50));
        let metrics = scaler.str_at(&["metadata", "annotations", METRICS]);
        assert_eq!(metrics, r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"100M"}}]"#);
        let behavior = scaler.str_at(&["metadata", "annotations", BEHAVIOR]);
        assert!(behavior.starts_with(r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":30,"#), "{behavior}");
        to_v2(&mut scaler);
        assert_eq!(scaler, original);
    }
}
