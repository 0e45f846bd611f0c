//! The plugin DefaultTolerationSeconds: pods stay for a while on nodes that are not ready or not reachable.

use flotilla_proto::value;
use flotilla_proto::value::Value;

/// How long pods that do not state it stay on lost nodes, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostNodes {
    /// On nodes that are not ready.
    pub not_ready: i64,
    /// On nodes that are not reachable.
    pub unreachable: i64,
}

impl Default for LostNodes {
    fn default() -> Self {
        Self { not_ready: 300, unreachable: 300 }
    }
}

/// Adds tolerations for nodes that are not ready or not reachable, unless the pod states its own.
pub fn tolerate_lost_nodes(pod: &mut Value, times: LostNodes) {
    let taints =
        [("node.kubernetes.io/not-ready", times.not_ready), ("node.kubernetes.io/unreachable", times.unreachable)];
    let own = pod.list_at(&["spec", "tolerations"]);
    let is_stated = |taint: &str| {
        own.iter().any(|own| {
            let (key, effect) = (own.str_at(&["key"]), own.str_at(&["effect"]));
            (key.is_empty() || key == taint) && (effect.is_empty() || effect == "NoExecute")
        })
    };
    let missing = taints.into_iter().filter(|(taint, _)| !is_stated(taint)).map(|(taint, seconds)| {
        value!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds})
    });
    let missing: Vec<Value> = missing.collect();
    append(pod, &["spec", "tolerations"], missing);
}

/// Adds items to a list; creates the list if it is absent.
pub(super) fn append(object: &mut Value, path: &[&str], items: Vec<Value>) {
    if items.is_empty() {
        return;
    }
    let mut all = object.list_at(path).to_vec();
    all.extend(items);
    object.set_at(path, all);
}
