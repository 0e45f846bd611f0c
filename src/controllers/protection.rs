//! Protects objects in use ("Storage Object in Use Protection"): claims of pods, volumes of claims,
//! VolumeAttributesClasses.
//!
//! Admission adds a finalizer to each of them. This controller removes it once the object is deleted and not in use,
//! and adds it to objects that lack it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::{Interest, Object, Scope, Selection};
use flotilla_proto::value::Value;
use futures_util::future::join_all;
use memchr::memmem;

use super::agent::Agent;
use super::metadata::{has_finalizer, is_deleting, mentions, release};
use super::queue::{Queue, Requeue};
use crate::follow::{Seen, follow};
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::rules::protection::{self, Protection};
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_value};

/// Namespace and name.
type NamespacedName = (String, String);

struct ProtectionController {
    agent: Rc<Agent>,
    guard: &'static Protection,
    /// The finalizer in quotes, as it stands in the text of objects.
    finalizer: String,
    guarded: Arc<Served>,
    users: Vec<Arc<Served>>,
    /// Objects that are deleted and still in use. Changes of users matter only for these.
    held: RefCell<BTreeSet<NamespacedName>>,
    queue: Queue<NamespacedName>,
}

/// Protects claims that pods use.
pub async fn claims(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    run(agent, measured, &protection::CLAIMS).await
}

/// Protects volumes that are bound.
pub async fn volumes(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    run(agent, measured, &protection::VOLUMES).await
}

/// Protects VolumeAttributesClasses that claims and volumes use.
pub async fn classes(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    run(agent, measured, &protection::CLASSES).await
}

async fn run(agent: Rc<Agent>, measured: QueueMetrics, guard: &'static Protection) -> ApiResult<()> {
    let guarded = agent.resource(guard.group, guard.resource)?;
    let users = guard.users.iter().map(|user| agent.resource("", user.resource)).collect::<ApiResult<Vec<_>>>()?;
    let (held, queue) = (RefCell::default(), Queue::new(measured));
    let finalizer = format!("\"{}\"", guard.finalizer);
    let controller = ProtectionController { agent, guard, finalizer, guarded, users, held, queue };
    let table = controller.agent.registry.tables.table(&controller.guarded);
    let tables: Vec<_> = controller.users.iter().map(|users| controller.agent.registry.tables.table(users)).collect();
    let following = tables.iter().map(|table| follow(table, Interest::default(), |seen| controller.see_user(&seen)));
    tokio::join!(
        follow(&table, Interest::default(), |seen| controller.see(&seen)),
        join_all(following),
        controller.queue.work(limits::PROTECTION_WORKERS, |namespaced_name| controller.attempt(namespaced_name)),
    );
    Ok(())
}

impl ProtectionController {
    fn see(&self, seen: &Seen<'_>) {
        if let Some(object) = seen.live() {
            let has_finalizer = mentions(object, &self.finalizer);
            if has_finalizer == is_deleting(object) {
                self.queue.add_after(namespaced_name(object), limits::PROTECTION_SETTLE);
            }
        } else if let Some(object) = seen.deleted() {
            self.held.borrow_mut().remove(&namespaced_name(object));
        }
    }

    fn see_user(&self, seen: &Seen<'_>) {
        let Seen::Changed(change) = seen else { return };
        let namespace = change.object().key().namespace().unwrap_or("");
        let concerned = |(own, _): &&NamespacedName| own.is_empty() || own == namespace;
        for namespaced_name in self.held.borrow().iter().filter(concerned) {
            self.queue.add_after(namespaced_name.clone(), limits::PROTECTION_SETTLE);
        }
    }

    async fn attempt(&self, namespaced_name: NamespacedName) -> ApiResult<Requeue> {
        let (namespace, name) = (&*namespaced_name.0, &*namespaced_name.1);
        let target = Target::object(&self.guarded, namespace, name);
        let Some(object) = self.agent.get(target)? else { return Ok(Requeue::Never) };
        let is_deleting = !object.at(&["metadata", "deletionTimestamp"]).is_null();
        if has_finalizer(&object, self.guard.finalizer) != is_deleting {
            return Ok(Requeue::Never);
        }
        if is_deleting {
            // From here on changes of users put the object into the queue again.
            self.held.borrow_mut().insert(namespaced_name.clone());
            if (self.guard.is_used)(&object) || self.has_user(&object).await? {
                return Ok(Requeue::Never);
            }
        }
        let uid = object.str_at(&["metadata", "uid"]);
        let changed = self.agent.edit(target, uid, |object: &mut Value| match is_deleting {
            true => release(object, self.guard.finalizer),
            false => protection::add_finalizer(object, self.guard.finalizer),
        });
        match changed.await {
            Ok(()) | Err(ApiError { code: 404, .. }) => {
                self.held.borrow_mut().remove(&namespaced_name);
                Ok(Requeue::Never)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether any object uses this one, after catching up with all acknowledged writes.
    async fn has_user(&self, object: &Value) -> ApiResult<bool> {
        let name = object.str_at(&["metadata", "name"]);
        let scope = match object.str_at(&["metadata", "namespace"]) {
            "" => Scope::All,
            namespace => Scope::namespace(namespace),
        };
        for (user, served) in self.guard.users.iter().zip(&self.users) {
            let table = self.agent.registry.tables.table(served);
            self.agent.registry.tables.barrier(&table).await?;
            let selection = Selection { scope: scope.clone(), ..Selection::default() };
            let mut chunks = scan(&table.snapshot(), selection);
            while let Some(objects) = chunks.next_yielding().await {
                let objects = objects.map_err(ApiError::internal)?;
                // The text of a user contains the name of the object, or parts of that name for generated claims.
                let is_named = |user: &Object| {
                    let generated = name.starts_with(&format!("{}-", user.key().name()));
                    generated || memmem::find(user.bytes(), name.as_bytes()).is_some()
                };
                for found in objects.iter().filter(|found| is_named(found)) {
                    if (user.uses)(&stored_value(found)?, object) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

fn namespaced_name(object: &Object) -> NamespacedName {
    let key = object.key();
    (key.namespace().unwrap_or("").to_owned(), key.name().to_owned())
}
