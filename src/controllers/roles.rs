//! Maintains the rules of cluster roles that aggregate others ("Aggregated ClusterRoles").

use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::{Interest, Selection};
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::access::rbac::aggregated;
use crate::bootstrap::AGGREGATION_MANAGER;
use crate::follow::follow;
use crate::metrics::queues::QueueMetrics;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_value};
use crate::unreadable::skip_unreadable;

/// Updates aggregated cluster roles, now and whenever a cluster role changes.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let roles = agent.resource("rbac.authorization.k8s.io", "clusterroles")?;
    let table = agent.registry.tables.table(&roles);
    let queue = Queue::new(measured);
    tokio::join!(
        // Labels decide which roles depend on which, so every change may concern all aggregated ones. The queue holds
        // one key for all of them, so that many changes in a row cause one update.
        follow(&table, Interest::default(), |seen| {
            if seen.live().is_some() || seen.deleted().is_some() {
                queue.add(());
            }
        }),
        queue.work(1, |()| renew(&agent, &roles)),
    );
    Ok(())
}

async fn renew(agent: &Agent, roles: &Arc<Served>) -> ApiResult<Requeue> {
    let mut chunks = scan(&agent.registry.tables.table(roles).snapshot(), Selection::default());
    let mut all: Vec<Value> = Vec::new();
    while let Some(objects) = chunks.next_yielding().await {
        let objects = objects.map_err(ApiError::internal)?;
        all.extend(objects.iter().filter_map(|object| skip_unreadable(stored_value(object))));
    }
    for role in all.iter().filter(|role| !role.at(&["aggregationRule"]).is_null()) {
        let rules = aggregated(role, &all);
        if *role.at(&["rules"]) == rules {
            continue;
        }
        let target = Target::object(roles, "", role.str_at(&["metadata", "name"]));
        let mut configuration = Value::object();
        if !rules.is_null() {
            configuration.set_at(&["rules"], rules);
        }
        match agent.apply(target, configuration, AGGREGATION_MANAGER).await {
            Err(error) if error.code != 404 => return Err(error),
            _ => {}
        }
    }
    Ok(Requeue::Never)
}
