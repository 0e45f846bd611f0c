//! Prepares a new pod: the fields that the server sets at creation.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::dropped;
use super::resources::pod_level;
use super::security::app_armor;
use super::status::conditions;
use crate::rules::defaulting::{items, object, object_or_new, objects};

/// Sets status, generation and all fields that are derived at creation only.
pub fn prepare(pod: &mut Value, now: Timestamp) {
    let class = match pod.str_at(&["status", "qosClass"]) {
        "" => Value::from(pod_level::quality_of_service(pod)),
        sent => Value::from(sent),
    };
    let mut status = value!({"phase": "Pending"});
    if !pod.list_at(&["spec", "schedulingGates"]).is_empty() {
        let message = "Scheduling is blocked due to non-empty scheduling gates";
        let condition = conditions::condition("PodScheduled", "False", "SchedulingGated", message, now);
        status.set_at(&["conditions"], vec![condition]);
    }
    status.set_at(&["qosClass"], class);
    pod.set_at(&["status"], status);
    pod.set_at(&["metadata", "generation"], 1);
    dropped::drop_from_spec(pod, None, &["spec"]);
    let labels = pod.at(&["metadata", "labels"]).clone();
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        complete_affinity(spec, labels.as_object());
        complete_spread(spec, labels.as_object());
    }
    app_armor::fields_from_annotations(pod);
}

/// Adds the pod's labels to the selector of a term, for the label keys that the term names (KEP-3633, KEP-3243).
fn complete(term: &mut Map, keys: &str, operator: &str, labels: Option<&Map>) {
    let chosen: Vec<Value> = term
        .get(keys)
        .and_then(Value::as_array)
        .unwrap_or(&[])
        .iter()
        .filter_map(Value::as_str)
        .filter_map(|key| Some((key, labels?.get(key)?)))
        .map(|(key, label)| value!({"key": key, "operator": operator, "values": [(label.clone())]}))
        .collect();
    if chosen.is_empty() {
        return;
    }
    let Some(selector) = object(term, "labelSelector") else { return };
    if selector.get("matchExpressions").is_none_or(Value::is_null) {
        selector.insert("matchExpressions", Vec::new());
    }
    if let Some(expressions) = selector.get_mut("matchExpressions").and_then(Value::as_array_mut) {
        expressions.extend(chosen);
    }
}

fn complete_affinity(spec: &mut Map, labels: Option<&Map>) {
    let Some(affinity) = object(spec, "affinity") else { return };
    let both = |term: &mut Map| {
        complete(term, "matchLabelKeys", "In", labels);
        complete(term, "mismatchLabelKeys", "NotIn", labels);
    };
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = object(affinity, kind) else { continue };
        for weighted in objects(affinity, "preferredDuringSchedulingIgnoredDuringExecution") {
            if let Some(term) = object(weighted, "podAffinityTerm") {
                both(term);
            }
        }
        objects(affinity, "requiredDuringSchedulingIgnoredDuringExecution").for_each(both);
    }
}

fn complete_spread(spec: &mut Map, labels: Option<&Map>) {
    for constraint in objects(spec, "topologySpreadConstraints") {
        complete(constraint, "matchLabelKeys", "In", labels);
    }
}

/// Calls `visit` for every container of a pod spec, in the order in which the reference walks them.
pub fn for_each_container(spec: &mut Map, mut visit: impl FnMut(&mut Map)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        items(spec, list).iter_mut().filter_map(Value::as_object_mut).for_each(&mut visit);
    }
}

/// Returns the `securityContext` of a container; adds it if it is absent.
pub fn security_context(container: &mut Map) -> Option<&mut Map> {
    object_or_new(container, "securityContext")
}
