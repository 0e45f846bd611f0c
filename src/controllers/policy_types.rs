//! What is wrong with validating policies where they meet the kinds that they name: told in their status.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::Interest;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::queue::{Queue, Then};
use crate::admission::validating::warnings;
use crate::follow::follow;
use crate::metrics::queues::QueueMetrics;
use crate::registry::Target;
use crate::served::Served;
use crate::status::ApiResult;

/// The field manager of what is told.
const MANAGER: &str = "validatingadmissionpolicy-status";
/// How long a policy rests before it is checked: whoever is writing it meets no other writer.
const SETTLE: Duration = Duration::from_secs(5);

/// Checks policies, now and whenever one has changed.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let policies = agent.resource("admissionregistration.k8s.io", "validatingadmissionpolicies")?;
    let table = agent.registry.table(&policies);
    let queue = Queue::new(measured);
    tokio::join!(
        follow(&table, Interest::default(), |seen| {
            if let Some(policy) = seen.live() {
                queue.put_off(policy.key().name().to_owned(), SETTLE);
            }
        }),
        queue.work(1, |name: String| {
            let (agent, policies) = (&agent, &policies);
            async move { check(agent, policies, &name).await }
        }),
    );
    Ok(())
}

async fn check(agent: &Agent, policies: &Arc<Served>, name: &str) -> ApiResult<Then> {
    let target = Target { served: policies, namespace: "", name, subresource: "" };
    let Some(policy) = agent.get(target)? else { return Ok(Then::Rest) };
    let generation = policy.int_at(&["metadata", "generation"]).unwrap_or(0);
    if generation <= policy.int_at(&["status", "observedGeneration"]).unwrap_or(0) {
        return Ok(Then::Rest);
    }
    let found = warnings(&agent.registry.resources, &policy);
    let mut checking = Value::object();
    if !found.is_empty() {
        checking.set_at(&["expressionWarnings"], Value::Array(found));
    }
    let status = value!({"status": {"observedGeneration": generation, "typeChecking": checking}});
    match agent.apply(Target { subresource: "status", ..target }, status, MANAGER).await {
        Err(error) if error.code != 404 => Err(error),
        _ => Ok(Then::Rest),
    }
}
