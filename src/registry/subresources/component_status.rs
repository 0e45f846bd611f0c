//! ComponentStatuses: what older tools ask for to see whether a cluster is well. Deprecated since Kubernetes 1.19.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::Registry;

/// Components that run on their own, and where they tell of their health.
const COMPONENTS: [(&str, u16); 2] = [("scheduler", 10259), ("controller-manager", 10257)];
/// The name under which clients look for the storage.
const STORAGE: &str = "etcd-0";

/// The storage is part of this server, so it is well if this answers; of other components nothing is known.
pub(super) fn all(_: &Registry) -> Vec<Value> {
    let mut all: Vec<Value> = COMPONENTS
        .iter()
        .map(|(name, port)| {
            let why = format!(
                "Get \"https://127.0.0.1:{port}/healthz\": not asked: the server does not know where the {name} runs"
            );
            status(name, "False", &why)
        })
        .collect();
    all.push(status(STORAGE, "True", "ok"));
    all
}

fn status(name: &str, healthy: &str, message: &str) -> Value {
    value!({
        "kind": "ComponentStatus",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": healthy, "message": message}]
    })
}
