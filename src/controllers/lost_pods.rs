//! Removes deleted pods whose node does not exist: no kubelet would end them or report their end ("Pod Lifecycle",
//! garbage collection of pods).

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::{Interest, Object, Selection};
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::metadata::is_deleting;
use super::queue::{Queue, Requeue};
use crate::follow::{Seen, follow};
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::registry::now;
use crate::request::DeleteOptions;
use crate::scan::scan;
use crate::served::Served;
use crate::status::ApiResult;
use crate::tables::Target;

/// Removes these pods once their grace period is over.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let (pods, nodes) = (agent.resource("", "pods")?, agent.resource("", "nodes")?);
    let (pod_table, node_table) = (agent.registry.tables.table(&pods), agent.registry.tables.table(&nodes));
    let queue = Queue::new(measured);
    let look_at = |pod: &Object| {
        let key = pod.key();
        queue.add_after((key.namespace().unwrap_or("").to_owned(), key.name().to_owned()), limits::LOST_POD_QUARANTINE);
    };
    tokio::join!(
        follow(&pod_table, Interest::default(), |seen| {
            if let Some(pod) = seen.live().filter(|pod| is_deleting(pod)) {
                look_at(pod);
            }
        }),
        follow(&node_table, Interest::default(), |seen: Seen<'_>| {
            let Some(node) = seen.deleted() else { return };
            let field = Some(("spec.nodeName".into(), node.key().name().into()));
            let chunks = scan(&pod_table.snapshot(), Selection { field, ..Selection::default() });
            // If the snapshot expires, the rest of the list is skipped: those pods stay until they are checked again.
            let found = chunks.map_while(Result::ok).flatten();
            found.filter(|pod| is_deleting(pod)).for_each(|pod| look_at(&pod));
        }),
        queue.work(limits::LOST_POD_WORKERS, |(namespace, name): (String, String)| {
            let (agent, pods, nodes) = (&agent, &pods, &nodes);
            async move {
                let target = Target::object(pods, &namespace, &name);
                attempt(agent, target, nodes).await
            }
        }),
    );
    Ok(())
}

async fn attempt(agent: &Agent, target: Target<'_>, nodes: &Arc<Served>) -> ApiResult<Requeue> {
    let Some(pod) = agent.get(target)? else { return Ok(Requeue::Never) };
    let node = pod.str_at(&["spec", "nodeName"]);
    let Some(end) = end(&pod).filter(|_| !node.is_empty()) else { return Ok(Requeue::Never) };
    let rest = u64::try_from(end.seconds.saturating_sub(now().seconds)).unwrap_or(0);
    if rest > 0 {
        return Ok(Requeue::After(Duration::from_secs(rest)));
    }
    agent.registry.tables.catch_up_with(nodes, "", node).await?;
    if agent.registry.tables.current(nodes, "", node).is_some() {
        return Ok(Requeue::Never); // its kubelet ends the pod, or the node goes
    }
    let uid = Some(pod.str_at(&["metadata", "uid"]).to_owned());
    let options = DeleteOptions { uid, grace_seconds: Some(0), ..DeleteOptions::default() };
    agent.delete(target, &options).await?;
    Ok(Requeue::Never)
}

/// Returns the time at which the grace period of a deleted pod ends. Returns `None` if the pod is not deleted.
fn end(pod: &Value) -> Option<Timestamp> {
    Timestamp::parse(pod.str_at(&["metadata", "deletionTimestamp"])).ok()
}
