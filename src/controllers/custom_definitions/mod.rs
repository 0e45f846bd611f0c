//! Maintains the status of CustomResourceDefinitions: their accepted names, and whether they are established.

mod naming;
mod status;

use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::{Interest, Object, Selection};
use flotilla_proto::json::Part;

use self::naming::TakenNames;
use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::follow::follow;
use crate::metrics::queues::QueueMetrics;
use crate::registry::now;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_part};
use crate::unreadable::skip_unreadable;

/// The part of a definition that its status depends on. The rest, mostly schemas, is by far larger and is not decoded.
const DECIDING: Part = Part::only(&[
    ("metadata", Part::only(&[("uid", Part::Whole), ("annotations", Part::Whole)])),
    ("spec", Part::only(&[("group", Part::Whole), ("names", Part::Whole), ("conversion", Part::Whole)])),
    ("status", Part::Whole),
]);
/// The part of other definitions that is decoded.
const NAMES: Part = Part::only(&[("status", Part::only(&[("acceptedNames", Part::Whole)]))]);

struct DefinitionController {
    agent: Rc<Agent>,
    definitions: Arc<Served>,
    queue: Queue<Task>,
}

/// A task for one definition, named by it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Task {
    /// Brings its status up to date.
    Renew(String),
    /// Renews the other definitions of its group, because a name that they wait for may be free now.
    Release(String),
}

/// Brings the status of every definition up to date, now and whenever one of them changes.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let definitions = agent.resource("apiextensions.k8s.io", "customresourcedefinitions")?;
    let table = agent.registry.tables.table(&definitions);
    let queue = Queue::new(measured);
    let controller = DefinitionController { agent, definitions, queue };
    tokio::join!(
        follow(&table, Interest::default(), |seen| {
            if let Some(definition) = seen.live() {
                controller.queue.add(Task::Renew(definition.key().name().to_owned()));
            } else if let Some(definition) = seen.deleted() {
                controller.queue.add(Task::Release(definition.key().name().to_owned()));
            }
        }),
        // One worker, so that no two definitions get the same name.
        controller.queue.work(1, async |task| match task {
            Task::Renew(name) => controller.renew(name).await,
            Task::Release(name) => controller.release(&name),
        }),
    );
    Ok(())
}

/// Returns the group of a definition, which is the end of its name.
fn group(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

impl DefinitionController {
    async fn renew(&self, name: String) -> ApiResult<Requeue> {
        let target = Target::object(&self.definitions, "", &name).with_subresource("status");
        let Some(mut definition) = self.agent.get_part(target, DECIDING)? else { return Ok(Requeue::Never) };
        let taken = if status::has_its_names(&definition) { None } else { Some(self.taken(&name)?) };
        let (before, now) = (definition.clone(), now().to_string());
        status::renew(&mut definition, taken.as_ref(), &now);
        if definition == before {
            return Ok(Requeue::Never);
        }
        let uid = before.str_at(&["metadata", "uid"]);
        match self.agent.edit(target, uid, |definition| status::renew(definition, taken.as_ref(), &now)).await {
            Err(error) if error.code != 404 => return Err(error),
            _ => {}
        }
        let names = ["status", "acceptedNames"];
        if definition.at(&names) != before.at(&names) {
            self.queue.add(Task::Release(name));
        }
        Ok(Requeue::Never)
    }

    /// Returns the names that other definitions of the same group have.
    fn taken(&self, name: &str) -> ApiResult<TakenNames> {
        let mut taken = TakenNames::default();
        for definition in self.siblings(name)? {
            if let Some(read) = skip_unreadable(stored_part(&definition, NAMES)) {
                taken.add(read.at(&["status", "acceptedNames"]));
            }
        }
        Ok(taken)
    }

    fn release(&self, name: &str) -> ApiResult<Requeue> {
        for definition in self.siblings(name)? {
            if definition.key().name() != name {
                self.queue.add(Task::Renew(definition.key().name().to_owned()));
            }
        }
        Ok(Requeue::Never)
    }

    /// Returns all definitions of the same group, this one included.
    fn siblings(&self, name: &str) -> ApiResult<Vec<Arc<Object>>> {
        let mut found = Vec::new();
        for objects in scan(&self.agent.registry.tables.table(&self.definitions).snapshot(), Selection::default()) {
            found.extend(objects.map_err(ApiError::internal)?);
        }
        found.retain(|definition| group(definition.key().name()) == group(name));
        Ok(found)
    }
}
