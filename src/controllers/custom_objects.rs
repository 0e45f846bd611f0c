//! Deletes the objects of a definition that is being deleted, before the definition itself is removed ("Custom
//! Resources", deletion of definitions).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::{Interest, Key, Object, Selection};
use flotilla_proto::value::Value;
use futures_util::{StreamExt, stream};

use super::agent::Agent;
use super::metadata::{has_finalizer, is_deleting, release, uid};
use super::queue::{Queue, Requeue};
use crate::custom::termination::{self, TerminationStage};
use crate::custom::{self, Definition};
use crate::follow::follow;
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::registry::now;
use crate::request::{DeleteOptions, Propagation};
use crate::rules::conditions::is_true;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_value};
use crate::unreadable::skip_unreadable;

/// The resources of removed definitions, by the name of the definition.
type RemovedDefinitions = RefCell<HashMap<String, Arc<Served>>>;

/// Deletes the objects of definitions that are being deleted, then removes the definitions' finalizer.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let definitions = agent.resource(custom::GROUP, custom::RESOURCE)?;
    let table = agent.registry.tables.table(&definitions);
    let (queue, gone) = (Queue::new(measured), RemovedDefinitions::default());
    tokio::join!(
        follow(&table, Interest::default(), |seen| {
            let name = |definition: &Object| definition.key().name().to_owned();
            if let Some(definition) = seen.live().filter(|definition| is_deleting(definition)) {
                queue.add_after(name(definition), limits::DEFINITION_SETTLE);
            } else if let Some(definition) = seen.deleted() {
                let read = skip_unreadable(stored_value(definition)).and_then(|tree| Definition::of(&tree));
                if let Some(served) = read.and_then(|definition| agent.registry.tables.resources.defined_by(definition))
                {
                    gone.borrow_mut().insert(name(definition), served);
                    queue.put_off(name(definition), limits::DEFINITION_SWEEP);
                }
            }
        }),
        queue.work(limits::DEFINITION_WORKERS, |name| attempt(&agent, &definitions, &gone, name)),
    );
    Ok(())
}

async fn attempt(
    agent: &Agent,
    definitions: &Arc<Served>,
    gone: &RemovedDefinitions,
    name: String,
) -> ApiResult<Requeue> {
    let target = Target::object(definitions, "", &name);
    let Some(definition) = agent.get(target)? else {
        let served = gone.borrow().get(&name).cloned();
        let is_gone = || Ok(agent.get(target)?.is_none());
        if let Some(served) = served
            && delete_all(agent, &served, is_gone).await?
        {
            return Ok(Requeue::After(limits::DEFINITION_RECHECK));
        }
        gone.borrow_mut().remove(&name);
        return Ok(Requeue::Never);
    };
    gone.borrow_mut().remove(&name); // its objects now belong to a new definition
    if definition.at(&["metadata", "deletionTimestamp"]).is_null() || !has_finalizer(&definition, termination::CLEANUP)
    {
        return Ok(Requeue::Never);
    }
    match finish(agent, target, &definition).await {
        Err(ApiError { code: 404, .. }) => Ok(Requeue::Never), // the definition is gone or was replaced
        finished => finished,
    }
}

/// Deletes the objects of a definition that is being deleted, then removes its finalizer.
async fn finish(agent: &Agent, target: Target<'_>, definition: &Value) -> ApiResult<Requeue> {
    tell(agent, target, definition, TerminationStage::InProgress).await?;
    let uid = definition.str_at(&["metadata", "uid"]);
    if is_true(definition, "Established") {
        let served = Definition::of(definition).and_then(|of| agent.registry.tables.resources.defined_by(of));
        let is_same = || Ok(agent.get(target)?.is_some_and(|now| now.str_at(&["metadata", "uid"]) == uid));
        if let Some(served) = served
            && delete_all(agent, &served, is_same).await?
        {
            return Ok(Requeue::After(limits::DEFINITION_RECHECK));
        }
    }
    tell(agent, target, definition, TerminationStage::Completed).await?;
    agent.edit(target, uid, |definition| release(definition, termination::CLEANUP)).await?;
    Ok(Requeue::Never)
}

/// Writes the stage of the deletion into the status.
async fn tell(agent: &Agent, of: Target<'_>, definition: &Value, stage: TerminationStage) -> ApiResult<()> {
    let now = now().to_string();
    let status = of.with_subresource("status");
    agent.edit(status, definition.str_at(&["metadata", "uid"]), |definition| stage.tell(definition, &now)).await
}

/// Deletes the objects of a resource, unless `still_wanted` returns false. It is called after this replica has caught
/// up with all acknowledged writes. Returns whether it has found any objects.
async fn delete_all(agent: &Agent, served: &Served, still_wanted: impl Fn() -> ApiResult<bool>) -> ApiResult<bool> {
    let table = agent.registry.tables.table(served);
    agent.registry.tables.catch_up().await?;
    agent.registry.tables.barrier(&table).await?;
    let chunks = scan(&table.snapshot(), Selection::default());
    if !still_wanted()? {
        return Ok(false); // the objects may belong to a definition that was created again
    }
    let delete = async |(key, uid): (Key, Option<String>)| {
        let propagation = Some(Propagation::Background);
        let options = DeleteOptions { propagation, uid, ..DeleteOptions::default() };
        let namespace = key.namespace().unwrap_or("");
        agent.delete(Target::object(served, namespace, key.name()), &options).await
    };
    let (mut found, mut failed) = (false, None);
    for objects in chunks {
        let objects = objects.map_err(ApiError::internal)?;
        found |= !objects.is_empty();
        let identity = |object: &Arc<Object>| (object.key().clone(), uid(object).map(str::to_owned));
        let waiting = objects.iter().filter(|object| !is_deleting(object)).map(identity);
        let deletions = stream::iter(waiting.collect::<Vec<_>>()).map(&delete);
        // An object that cannot be deleted does not stop the others.
        let outcomes: Vec<ApiResult<()>> = deletions.buffer_unordered(limits::DEFINITION_DELETIONS).collect().await;
        failed = failed.or(outcomes.into_iter().find_map(Result::err));
    }
    failed.map_or(Ok(found), Err)
}
