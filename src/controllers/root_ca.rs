//! Maintains the ConfigMap `kube-root-ca.crt` of each namespace: the CA bundle with which clients in the cluster verify
//! the server.

use std::rc::Rc;

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::each_namespace::{Kept, keep, unless_namespace_ends};
use crate::metrics::queues::QueueMetrics;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;

const MAP: Kept = Kept { resource: "configmaps", name: "kube-root-ca.crt" };
const DESCRIPTION: &str = "kubernetes.io/description";
/// The value of the description annotation, as in the reference.
const DESCRIPTION_TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Publishes the bundle in every namespace, and restores it when it is changed or deleted.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    keep(&agent, MAP, measured, publish).await
}

async fn publish(agent: &Agent, target: Target<'_>) -> ApiResult<()> {
    let data = value!({"ca.crt": (agent.settings.root_ca.as_str())});
    let Some(current) = agent.get(target)? else {
        let mut object = value!({"metadata": {"name": (target.name), "namespace": (target.namespace)}});
        object.set_at(&["metadata", "annotations", DESCRIPTION], DESCRIPTION_TEXT);
        object.set_at(&["data"], data);
        return unless_namespace_ends(agent.create(Target { name: "", ..target }, object).await);
    };
    let described = !current.str_at(&["metadata", "annotations", DESCRIPTION]).is_empty();
    if described && *current.at(&["data"]) == data {
        return Ok(());
    }
    let restore = |object: &mut Value| {
        object.set_at(&["metadata", "annotations", DESCRIPTION], DESCRIPTION_TEXT);
        object.set_at(&["data"], data.clone());
    };
    match agent.edit(target, current.str_at(&["metadata", "uid"]), restore).await {
        // It was deleted meanwhile: the deletion puts the namespace into the queue again.
        Err(ApiError { code: 404, .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}
