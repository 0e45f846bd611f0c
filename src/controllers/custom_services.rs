//! Maintains the API services for the group versions of definitions.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::Interest;
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::bootstrap;
use crate::discovery::GroupVersionPriority;
use crate::discovery::{CUSTOM_GROUP_PRIORITY, CUSTOM_VERSION_PRIORITY};
use crate::follow::follow;
use crate::metrics::queues::QueueMetrics;
use crate::registry::now;
use crate::request::DeleteOptions;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;

const GROUP: &str = "apiregistration.k8s.io";
/// The label of API services that the server manages, and its value for the API services of definitions.
const MANAGED: [&str; 3] = ["metadata", "labels", "kube-aggregator.kubernetes.io/automanaged"];
const ALWAYS: &str = "true";

/// Keeps one API service for each group version that definitions serve, and removes others.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let services = agent.resource(GROUP, "apiservices")?;
    let table = agent.registry.tables.table(&services);
    let queue = Queue::new(measured);
    let mut defined = agent.registry.tables.resources.changes();
    let following = async {
        let mut known: BTreeSet<String> = BTreeSet::new();
        loop {
            defined.borrow_and_update();
            let wanted = wanted(&agent);
            wanted.symmetric_difference(&known).for_each(|name| queue.add(name.clone()));
            known = wanted;
            if defined.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::join!(
        following,
        follow(&table, Interest::default(), |seen| {
            if let Some(service) = seen.live().or(seen.deleted()) {
                queue.add(service.key().name().to_owned());
            }
        }),
        queue.work(1, |name| keep(&agent, &services, name)),
    );
    Ok(())
}

/// Returns the names of the API services that should exist, as in `v1.example.com`.
fn wanted(agent: &Agent) -> BTreeSet<String> {
    let all = agent.registry.tables.resources.all();
    let custom = all.iter().filter(|served| served.custom.is_some());
    custom.map(|served| format!("{}.{}", served.resource.version, served.resource.group)).collect()
}

async fn keep(agent: &Agent, services: &Arc<Served>, name: String) -> ApiResult<Requeue> {
    let target = Target::object(services, "", &name);
    let present = agent.get(target)?;
    let is_managed = |service: &Value| service.str_at(&MANAGED) == ALWAYS;
    match present {
        None if wanted(agent).contains(&name) => {
            if let Some(service) = service(&name) {
                agent.create(target, service).await?;
            }
        }
        Some(service) if is_managed(&service) && !wanted(agent).contains(&name) => {
            agent.delete(target, &DeleteOptions::default()).await?;
        }
        Some(present) if is_managed(&present) => {
            if let Some(service) = service(&name).filter(|service| service.at(&["spec"]) != present.at(&["spec"])) {
                let restore = |present: &mut Value| present.set_at(&["spec"], service.at(&["spec"]).clone());
                return match agent.edit(target, present.str_at(&["metadata", "uid"]), restore).await {
                    Err(ApiError { code: 404, .. }) => Ok(Requeue::Never), // its deletion puts it into the queue
                    restored => restored.map(|()| Requeue::Never),
                };
            }
        }
        _ => {}
    }
    Ok(Requeue::Never)
}

/// Returns the API service of a group version of definitions, by its name, as in `v1.example.com`. `None` if the name
/// does not have this form.
fn service(name: &str) -> Option<Value> {
    let (version, group) = name.split_once('.')?;
    let (group_priority, version_priority) = (CUSTOM_GROUP_PRIORITY, CUSTOM_VERSION_PRIORITY);
    let of = GroupVersionPriority { group, version, group_priority, version_priority };
    Some(bootstrap::local_api_service(&of, ALWAYS, &now().to_string()))
}
