//! The plugin DefaultTolerationSeconds: pods stay for a while on nodes that are not ready or not reachable.

use flotilla_proto::value;
use flotilla_proto::value::Value;

/// Seconds for which a pod stays on such a node.
const SECONDS: i64 = 300;
const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Adds tolerations for nodes that are not ready or not reachable, unless the pod states its own.
pub fn tolerate_lost_nodes(pod: &mut Value) {
    let own = pod.list_at(&["spec", "tolerations"]);
    let missing: Vec<Value> = TAINTS
        .iter()
        .filter(|taint| {
            !own.iter().any(|own| {
                let (key, effect) = (own.str_at(&["key"]), own.str_at(&["effect"]));
                (key.is_empty() || key == **taint) && (effect.is_empty() || effect == "NoExecute")
            })
        })
        .map(|taint| {
            let taint: &str = taint;
            value!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS})
        })
        .collect();
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
