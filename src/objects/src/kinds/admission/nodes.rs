//! Plugins about nodes: topology labels for pods (PodTopologyLabels) and the taint of new nodes
//! (TaintNodesByCondition).

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::quota::requests_of_pod;
use super::tolerations::append;
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

/// Returns why a pod cannot be resized on its node: it would request more than the node can ever give.
pub fn beyond_node(pod: &Value, node: &Value) -> Option<String> {
    let requested = requests_of_pod(pod);
    let missing = ["cpu", "memory"].into_iter().filter_map(|name| {
        let count = |amount: &Quantity| if name == "cpu" { amount.milli_value() } else { amount.value() };
        let requested = requested.get(name).map_or(0, count);
        let allocatable = count(&amount(node.at(&["status", "allocatable", name])));
        (requested > allocatable).then(|| format!("{name}, requested: {requested}, allocatable: {allocatable}"))
    });
    let missing: Vec<String> = missing.collect();
    let why = || format!("node didn't have enough allocatable resources: {}", missing.join("; "));
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
