//! Maintains the server's own objects while it runs: creates missing ones, and restores changed ones that must have
//! certain content. [`crate::bootstrap`] lists these objects with their rules.

use std::rc::Rc;

use flotilla_cluster::{Interest, Object};
use flotilla_proto::value::Value;
use futures_util::future::join_all;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::bootstrap::{self, BootstrapInput, BootstrapObject, FLOW_GROUP, ReconcileTrigger};
use crate::follow::{Seen, follow};
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::registry::now;
use crate::request::DeleteOptions;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;

/// An item of the queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum UpkeepItem {
    /// An object of the server: its resource, namespace and name.
    Kept(&'static str, String, String),
    /// An object of flow control that does not belong to the server: its resource and name.
    Unwanted(&'static str, String),
}

/// The resources of flow control.
const FLOW: [&str; 2] = ["flowschemas", "prioritylevelconfigurations"];

/// Checks each of the objects, now and whenever one is changed or deleted.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let kept = kept(&agent.settings.bootstrap)?;
    let queue = Queue::new(measured);
    let mut followed = Vec::new();
    for desired in &kept {
        followed.push((agent.registry.tables.table(&*agent.resource(desired.group, desired.resource)?), desired));
    }
    let each = followed.iter().map(|(table, desired)| {
        let item = item(desired);
        let (namespace, name) = (desired.object.str_at(&["metadata", "namespace"]), name(&desired.object));
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty()).map(Into::into);
        let interest = Interest { namespace, name: Some(name.into()), ..Interest::default() };
        let queue = &queue;
        follow(table, interest, move |seen| {
            // A list shows only objects that exist, so missing ones are checked at its end.
            if matches!(seen, Seen::ListEnd(_) | Seen::Changed(_)) {
                queue.add_after(item.clone(), limits::UPKEEP_SETTLE);
            }
        })
    });
    let flow = FLOW.map(|resource| agent.resource(FLOW_GROUP, resource));
    let [schemas, levels] = flow;
    let tables = [agent.registry.tables.table(&*schemas?), agent.registry.tables.table(&*levels?)];
    let is_kept = |resource: &str, object: &Object| {
        kept.iter().any(|desired| desired.resource == resource && name(&desired.object) == object.key().name())
    };
    let look_at = |resource: &'static str, seen: &Seen<'_>| {
        if let Some(object) = seen.live().filter(|object| !is_kept(resource, object)) {
            queue.add_after(
                UpkeepItem::Unwanted(resource, object.key().name().to_owned()),
                limits::UPKEEP_UNWANTED_LIFETIME,
            );
        }
    };
    tokio::join!(
        join_all(each),
        follow(&tables[0], Interest::default(), |seen| look_at(FLOW[0], &seen)),
        follow(&tables[1], Interest::default(), |seen| look_at(FLOW[1], &seen)),
        queue.work(1, |item| attempt(&agent, item)),
    );
    Ok(())
}

/// Returns the objects that are kept while a server runs.
fn kept(input: &BootstrapInput) -> ApiResult<Vec<BootstrapObject>> {
    let input = BootstrapInput { now: now().to_string(), ..input.clone() };
    let seeds = bootstrap::objects(&input).map_err(ApiError::internal)?;
    Ok(seeds.into_iter().filter(|desired| desired.trigger != ReconcileTrigger::AtStart).collect())
}

fn item(desired: &BootstrapObject) -> UpkeepItem {
    UpkeepItem::Kept(
        desired.resource,
        desired.object.str_at(&["metadata", "namespace"]).to_owned(),
        name(&desired.object).to_owned(),
    )
}

fn name(object: &Value) -> &str {
    object.str_at(&["metadata", "name"])
}

async fn attempt(agent: &Agent, of: UpkeepItem) -> ApiResult<Requeue> {
    let done = match &of {
        UpkeepItem::Unwanted(resource, name) => remove_unwanted(agent, resource, name).await,
        // The object is computed anew, since some objects contain the time.
        UpkeepItem::Kept(..) => {
            match kept(&agent.settings.bootstrap)?.into_iter().find(|desired| item(desired) == of) {
                Some(desired) => restore(agent, &desired).await,
                None => Ok(()),
            }
        }
    };
    match done {
        Ok(()) => Ok(Requeue::Never),
        // Another writer changed it at the same time.
        Err(ApiError { code: 409, .. }) => Ok(Requeue::After(limits::UPKEEP_SETTLE)),
        Err(error) => Err(error),
    }
}

async fn restore(agent: &Agent, desired: &BootstrapObject) -> ApiResult<()> {
    let served = agent.resource(desired.group, desired.resource)?;
    let (namespace, name) = (desired.object.str_at(&["metadata", "namespace"]), name(&desired.object));
    agent.registry.tables.catch_up_with(&served, namespace, name).await?;
    let is_there = agent.registry.tables.current(&served, namespace, name).is_some();
    match desired.trigger {
        ReconcileTrigger::Missing if is_there => Ok(()),
        _ => bootstrap::ensure(&agent.registry, desired).await,
    }
}

/// Removes an object of flow control that claims to belong to the server and does not.
async fn remove_unwanted(agent: &Agent, resource: &str, name: &str) -> ApiResult<()> {
    let served = agent.resource(FLOW_GROUP, resource)?;
    let target = Target::object(&served, "", name);
    let Some(object) = agent.get(target)?.filter(bootstrap::claims_upkeep) else { return Ok(()) };
    let resource_version = Some(object.str_at(&["metadata", "resourceVersion"]).to_owned());
    agent.delete(target, &DeleteOptions { resource_version, ..DeleteOptions::default() }).await
}
