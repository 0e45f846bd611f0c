//! Checks the types in the expressions of validating policies against the kinds that they match, and writes warnings
//! into their status.

use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::Interest;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::admission::validating::warnings;
use crate::follow::follow;
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::served::Served;
use crate::status::ApiResult;
use crate::tables::Target;

/// The field manager of the status.
const MANAGER: &str = "validatingadmissionpolicy-status";

/// Checks policies, now and whenever one has changed.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let policies = agent.resource("admissionregistration.k8s.io", "validatingadmissionpolicies")?;
    let table = agent.registry.tables.table(&policies);
    let queue = Queue::new(measured);
    tokio::join!(
        follow(&table, Interest::default(), |seen| {
            if let Some(policy) = seen.live() {
                queue.put_off(policy.key().name().to_owned(), limits::POLICY_TYPES_SETTLE);
            }
        }),
        queue.work(1, |name: String| {
            let (agent, policies) = (&agent, &policies);
            async move { check(agent, policies, &name).await }
        }),
    );
    Ok(())
}

async fn check(agent: &Agent, policies: &Arc<Served>, name: &str) -> ApiResult<Requeue> {
    let target = Target::object(policies, "", name);
    let Some(policy) = agent.get(target)? else { return Ok(Requeue::Never) };
    let generation = policy.int_at(&["metadata", "generation"]).unwrap_or(0);
    if generation <= policy.int_at(&["status", "observedGeneration"]).unwrap_or(0) {
        return Ok(Requeue::Never);
    }
    let found = warnings(&agent.registry.tables.resources, &policy);
    let mut checking = Value::object();
    if !found.is_empty() {
        checking.set_at(&["expressionWarnings"], Value::Array(found));
    }
    let status = value!({"status": {"observedGeneration": generation, "typeChecking": checking}});
    match agent.apply(target.with_subresource("status"), status, MANAGER).await {
        Err(error) if error.code != 404 => Err(error),
        _ => Ok(Requeue::Never),
    }
}
