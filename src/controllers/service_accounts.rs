//! Maintains the service account `default` of each namespace.

use std::rc::Rc;

use flotilla_proto::value;

use super::agent::Agent;
use super::each_namespace::{Kept, keep, unless_namespace_ends};
use crate::metrics::queues::QueueMetrics;
use crate::status::ApiResult;
use crate::tables::Target;

/// The account of pods that name none.
const ACCOUNT: Kept = Kept { resource: "serviceaccounts", name: "default" };

/// Creates missing accounts, now and whenever one is deleted.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    keep(&agent, ACCOUNT, measured, create_missing).await
}

async fn create_missing(agent: &Agent, target: Target<'_>) -> ApiResult<()> {
    let Target { served, namespace, name, .. } = target;
    if agent.registry.tables.current(served, namespace, name).is_some() {
        return Ok(());
    }
    let object = value!({"metadata": {"name": name, "namespace": namespace}});
    unless_namespace_ends(agent.create(Target { name: "", ..target }, object).await)
}
