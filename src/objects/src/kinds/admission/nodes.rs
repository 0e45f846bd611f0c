//! Plugins about nodes: topology labels for pods (PodTopologyLabels), the taint of new nodes (TaintNodesByCondition),
//! and the demands of a resize on the node (PodResizeValidator, NodeDeclaredFeatureValidator).

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::tolerations::append;
use crate::field::quote;
use crate::kinds::core::pod::resources::quantities::{is_sidecar, of_pod};
use crate::rules::resources::amount;

/// Labels that are copied from a node to its pods (KEP-4742).
pub const TOPOLOGY_LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Copies zone and region of a node to a pod that names the node, or to a binding.
pub fn copy_topology_labels(object: &mut Value, node: &Value) {
    let labels = node.map_at(&["metadata", "labels"]);
    for (key, value) in labels.into_iter().flat_map(Map::iter).filter(|(key, _)| TOPOLOGY_LABELS.contains(key)) {
        object.set_at(&["metadata", "labels", key], value.clone());
    }
}

/// Returns the reason (as causes have it) and the text why a pod cannot be resized on its node: the node does not run
/// Linux, or the pod would request more than the node can ever give. Resources that the pod has only by its status do
/// not count.
pub fn refuse_resize(pod: &Value, node: &Value) -> Option<(&'static str, String)> {
    let system = node.at(&["metadata", "labels", "kubernetes.io/os"]).as_str().filter(|system| *system != "linux");
    if let Some(system) = system {
        let (name, system) = (quote(node.str_at(&["metadata", "name"])), quote(system));
        let why = format!("pod resize is only supported on linux nodes, node {name} is {system}");
        return Some(("UnsupportedPlatform", why));
    }
    let requested = of_pod(pod, "requests");
    let missing = ["cpu", "memory"].into_iter().filter_map(|name| {
        let count = |amount: &Quantity| if name == "cpu" { amount.milli_value() } else { amount.value() };
        let (requested, allocatable) = (requested.get(name)?, amount(node.at(&["status", "allocatable", name])));
        (*requested > allocatable)
            .then(|| format!("{name}, requested: {}, allocatable: {}", count(requested), count(&allocatable)))
    });
    let missing: Vec<String> = missing.collect();
    let why = || format!("node didn't have enough allocatable resources: {}", missing.join("; "));
    (!missing.is_empty()).then(|| ("NodeCapacity", why()))
}

/// Returns the features that a node must declare for an update of a pod, in order (KEP-5328).
pub fn features_for_update(pod: &Value, old: &Value) -> Vec<&'static str> {
    let of_pod = |pod: &Value| pod.map_at(&["spec", "resources"]).cloned().unwrap_or_default();
    let of_init_containers = |pod: &Value| -> Vec<Value> {
        let containers = pod.list_at(&["spec", "initContainers"]).iter().filter(|container| !is_sidecar(container));
        containers.map(|container| container.at(&["resources"]).clone()).collect()
    };
    let mut needed = Vec::new();
    if of_pod(pod) != of_pod(old) {
        needed.push("InPlacePodLevelResourcesVerticalScaling");
    }
    if of_init_containers(pod) != of_init_containers(old) {
        needed.push("InPlacePodVerticalScalingInitContainers");
    }
    needed
}

/// Returns why an update of a pod that needs these features is refused on its node: the node does not declare them.
pub fn refuse_undeclared(needed: &[&'static str], node: &Value) -> Option<String> {
    let declared = node.list_at(&["status", "declaredFeatures"]);
    let is_missing = |name: &&&str| !declared.iter().any(|feature| feature.as_str() == Some(**name));
    let missing: Vec<&str> = needed.iter().filter(is_missing).copied().collect();
    let (names, node) = (missing.join(", "), quote(node.str_at(&["metadata", "name"])));
    let why = || format!("pod update requires features {names} which are not available on node {node}");
    (!missing.is_empty()).then(why)
}

/// Adds the taint `not-ready` to a new node, so that it gets no pods until it reports that it is ready
/// (TaintNodesByCondition).
pub fn taint_new_node(node: &mut Value) {
    let known = |taint: &Value| taint.str_at(&["key"]) == NOT_READY && taint.str_at(&["effect"]) == "NoSchedule";
    if !node.list_at(&["spec", "taints"]).iter().any(known) {
        append(node, &["spec", "taints"], vec![value!({"key": NOT_READY, "effect": "NoSchedule"})]);
    }
}
