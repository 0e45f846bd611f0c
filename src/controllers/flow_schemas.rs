//! Maintains the condition `Dangling` of FlowSchemas: whether their priority level is missing (KEP-1040).

use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::{Interest, Selection};
use flotilla_proto::value;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::bootstrap::{FLOW_GROUP, FLOW_STATUS_MANAGER, dangling};
use crate::follow::{Seen, follow};
use crate::metrics::queues::QueueMetrics;
use crate::registry::now;
use crate::scan::scan;
use crate::served::Served;
use crate::status::ApiResult;
use crate::tables::Target;

/// Renews the condition of every FlowSchema, now and whenever the FlowSchema or a priority level has changed.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let schemas = agent.resource(FLOW_GROUP, "flowschemas")?;
    let levels = agent.resource(FLOW_GROUP, "prioritylevelconfigurations")?;
    let (schema_table, level_table) = (agent.registry.tables.table(&schemas), agent.registry.tables.table(&levels));
    let queue = Queue::new(measured);
    let add_all = || {
        let chunks = scan(&schema_table.snapshot(), Selection::default());
        // If the snapshot expires, the rest of the list is skipped: those objects come with their own changes.
        let found = chunks.map_while(Result::ok).flatten();
        found.for_each(|schema| queue.add(schema.key().name().to_owned()));
    };
    tokio::join!(
        follow(&schema_table, Interest::default(), |seen| {
            if let Some(schema) = seen.live() {
                queue.add(schema.key().name().to_owned());
            }
        }),
        follow(&level_table, Interest::default(), |seen| {
            // Only changes of levels matter: levels that existed before are looked up when each schema is checked.
            if matches!(seen, Seen::Changed(_)) {
                add_all();
            }
        }),
        queue.work(1, |name| renew(&agent, &schemas, &levels, name)),
    );
    Ok(())
}

async fn renew(agent: &Agent, schemas: &Arc<Served>, levels: &Arc<Served>, name: String) -> ApiResult<Requeue> {
    let target = Target::object(schemas, "", &name).with_subresource("status");
    let Some(schema) = agent.get(target)? else { return Ok(Requeue::Never) };
    let level = schema.str_at(&["spec", "priorityLevelConfiguration", "name"]);
    let found = agent.registry.tables.current(levels, "", level).is_some();
    let conditions = schema.list_at(&["status", "conditions"]);
    let present = conditions.iter().find(|condition| condition.str_at(&["type"]) == "Dangling");
    let mut wanted = dangling(level, found, &now().to_string());
    if let Some(present) = present {
        let same = |field: &str| present.str_at(&[field]) == wanted.str_at(&[field]);
        if ["status", "reason", "message"].into_iter().all(same) {
            return Ok(Requeue::Never);
        }
        if same("status") {
            wanted.set_at(&["lastTransitionTime"], present.str_at(&["lastTransitionTime"]));
        }
    }
    match agent.apply(target, value!({"status": {"conditions": [wanted]}}), FLOW_STATUS_MANAGER).await {
        Err(error) if error.code != 404 => Err(error),
        _ => Ok(Requeue::Never),
    }
}
