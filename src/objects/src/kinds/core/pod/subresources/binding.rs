//! The `binding` subresource: a scheduler assigns a pod to a node.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::kinds::core::pod::status::conditions;

/// Checks a `Binding`.
pub fn validate(binding: &Value, errors: &mut Errors) {
    let path = Path::root("target");
    let kind = binding.str_at(&["target", "kind"]);
    if !matches!(kind, "" | "Node") {
        errors.not_supported(&path.child("kind"), kind, &["Node", "<empty>"]);
    }
    if binding.str_at(&["target", "name"]).is_empty() {
        errors.required(&path.child("name"), "");
    }
}

/// Assigns a pod to the binding's target, at the time `now`. Copies the binding's annotations to the pod, and its
/// labels, which admission may have copied from the node. `Err` says why the pod cannot be assigned, which is a
/// conflict.
pub fn assign(pod: &mut Value, binding: &Value, now: Timestamp) -> Result<(), String> {
    let name = pod.str_at(&["metadata", "name"]);
    if !pod.at(&["metadata", "deletionTimestamp"]).is_null() {
        return Err(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = pod.str_at(&["spec", "nodeName"]);
    if !node.is_empty() {
        return Err(format!("pod {name} is already assigned to node {}", crate::field::quote(node)));
    }
    if !pod.list_at(&["spec", "schedulingGates"]).is_empty() {
        return Err(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    pod.set_at(&["spec", "nodeName"], binding.str_at(&["target", "name"]));
    pod.remove_at(&["status", "nominatedNodeName"]);
    for key in ["annotations", "labels"] {
        for (name, value) in binding.map_at(&["metadata", key]).into_iter().flat_map(Map::iter) {
            pod.set_at(&["metadata", key, name], value.clone());
        }
    }
    conditions::set(pod, conditions::condition("PodScheduled", "True", "", "", now));
    Ok(())
}
