//! Plugins about nodes: topology labels for pods (PodTopologyLabels) and the taint of new nodes
//! (TaintNodesByCondition).

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::tolerations::append;

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

/// Adds the taint `not-ready` to a new node, so that it gets no pods until it reports that it is ready
/// (TaintNodesByCondition).
pub fn taint_new_node(node: &mut Value) {
    let known = |taint: &Value| taint.str_at(&["key"]) == NOT_READY && taint.str_at(&["effect"]) == "NoSchedule";
    if !node.list_at(&["spec", "taints"]).iter().any(known) {
        append(node, &["spec", "taints"], vec![value!({"key": NOT_READY, "effect": "NoSchedule"})]);
    }
}
