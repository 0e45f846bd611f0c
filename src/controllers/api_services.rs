//! Sets the condition `Available` of API services: whether the servers behind them are reachable.

use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::Interest;
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::aggregation::availability::{self, Availability};
use crate::aggregation::{GROUP, RESOURCE, Remote};
use crate::follow::follow;
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::prometheus::families;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;

/// The label of an endpoint slice with the name of its Service.
const SERVICE_NAME: [&str; 3] = ["metadata", "labels", "kubernetes.io/service-name"];

/// Keeps the conditions of API services up to date.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let own = agent.resource(GROUP, RESOURCE)?;
    let services = agent.resource("", "services")?;
    let slices = agent.resource("discovery.k8s.io", "endpointslices")?;
    let queue = Queue::new(measured);
    let [own_table, service_table, slice_table] = [&own, &services, &slices].map(|of| agent.registry.tables.table(of));
    // A change of a Service or of its endpoints requires a check of the API services that refer to it.
    let concern = |namespace: &str, name: &str| {
        for remote in agent.settings.aggregation.all() {
            if remote.namespace == namespace && remote.service == name {
                queue.add(remote.name.clone());
            }
        }
    };
    tokio::join!(
        follow(&own_table, Interest::default(), |seen| {
            if let Some(object) = seen.live() {
                queue.add(object.key().name().to_owned());
            }
        }),
        follow(&service_table, Interest::default(), |seen| {
            if let Some(object) = seen.live().or(seen.deleted()) {
                concern(object.key().namespace().unwrap_or(""), object.key().name());
            }
        }),
        follow(&slice_table, Interest::default(), |seen| {
            let Some(object) = seen.live().or(seen.deleted()) else { return };
            if agent.settings.aggregation.all().is_empty() {
                return;
            }
            if let Ok(slice) = crate::tables::stored_value(object) {
                concern(object.key().namespace().unwrap_or(""), slice.str_at(&SERVICE_NAME));
            }
        }),
        queue.work(limits::API_SERVICE_WORKERS, |name| keep(&agent, &own, name)),
    );
    Ok(())
}

async fn keep(agent: &Agent, own: &Arc<Served>, name: String) -> ApiResult<Requeue> {
    let target = Target::object(own, "", &name).with_subresource("status");
    let Some(object) = agent.get(target)? else { return Ok(Requeue::Never) };
    let (found, then) = match Remote::of(&object) {
        None => (Availability::local(), Requeue::Never),
        Some(remote) => (
            availability::look(&agent.settings.aggregation, &remote).await,
            Requeue::After(limits::AGGREGATED_CHECK_INTERVAL),
        ),
    };
    if let Some(reason) = found.is_lost(&object) {
        let labels = [("name", &*name), ("reason", reason)];
        agent.registry.tables.metrics.meter().counter(families::AGGREGATED_LOST, &labels).increment(1);
    }
    if found.status(&object).is_some() {
        let change = |object: &mut Value| {
            if let Some(status) = found.status(object) {
                object.set_at(&["status"], status);
            }
        };
        match agent.edit(target, object.str_at(&["metadata", "uid"]), change).await {
            Err(ApiError { code: 404, .. }) => return Ok(Requeue::Never),
            edited => edited?,
        }
    }
    if found.is_settled() {
        return Ok(then);
    }
    Err(ApiError::unavailable("the aggregated server does not answer", 0))
}
