//! Deletes namespaces: empties them, then removes them ("Namespaces", KEP-5080 for the order).

mod conditions;
mod content;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::{Interest, Revision, Subscription, Table};
use flotilla_proto::value::Value;
use futures_util::future::select_all;
use tokio::time::Instant;

use self::content::Emptied;
use super::agent::Agent;
use super::metadata::is_deleting;
use super::queue::{Queue, Requeue};
use crate::follow::{Seen, follow};
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::registry::now;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;
use crate::tasks::{self, Task};

/// The finalizer in the spec of a namespace that keeps it until its content is deleted.
const FINALIZER: &str = "kubernetes";

struct NamespaceController {
    agent: Rc<Agent>,
    namespaces: Arc<Served>,
    queue: Rc<Queue<String>>,
    /// Tasks that watch the remaining content of namespaces; each puts its namespace into the queue when the content
    /// changes.
    watchers: RefCell<HashMap<String, Task>>,
    /// When each namespace was removed, until its last search has ended. The next leader does not know this.
    removed: RefCell<HashMap<String, Instant>>,
}

/// Returns whether a namespace exists and is not being deleted.
pub fn is_active(agent: &Agent, name: &str) -> ApiResult<bool> {
    let namespaces = agent.resource("", "namespaces")?;
    Ok(agent.registry.tables.current(&namespaces, "", name).is_some_and(|namespace| !is_deleting(&namespace)))
}

/// Empties and removes namespaces that are deleted.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let namespaces = agent.resource("", "namespaces")?;
    let table = agent.registry.tables.table(&namespaces);
    let queue = Queue::new(measured);
    let controller = NamespaceController {
        agent,
        namespaces,
        queue: Rc::new(queue),
        watchers: RefCell::default(),
        removed: RefCell::default(),
    };
    let queue = &controller.queue;
    tokio::join!(
        follow(&table, Interest::default(), |seen| {
            let name = |object: &flotilla_cluster::Object| object.key().name().to_owned();
            if let Some(namespace) = seen.deleted() {
                controller.removed.borrow_mut().insert(name(namespace), Instant::now());
                queue.add_after(name(namespace), limits::NAMESPACE_SWEEP);
            } else if let Some(namespace) = seen.live().filter(|namespace| is_deleting(namespace)) {
                match seen {
                    Seen::Changed(change) if change.previous().is_some_and(|before| is_deleting(before)) => {}
                    _ => queue.put_off(name(namespace), limits::NAMESPACE_SETTLE),
                }
            }
        }),
        queue.work(limits::NAMESPACES_EMPTIED, |name| controller.attempt(name)),
    );
    Ok(())
}

impl NamespaceController {
    async fn attempt(&self, name: String) -> ApiResult<Requeue> {
        drop(self.watchers.borrow_mut().remove(&name));
        let target = Target::object(&self.namespaces, "", &name);
        let Some(namespace) = self.agent.get(target)? else {
            // The namespace is removed: delete objects that were admitted before its deletion and stored after its last
            // check.
            let emptied = content::empty(&self.agent, &name, || Ok(self.agent.get(target)?.is_none())).await?;
            if emptied.is_some_and(|emptied| !emptied.is_complete()) {
                return Ok(Requeue::After(limits::NAMESPACE_RECHECK));
            }
            let mut removed = self.removed.borrow_mut();
            let left = removed.get(&name).and_then(|at| limits::NAMESPACE_LAST_SWEEP.checked_sub(at.elapsed()));
            if left.is_none() {
                removed.remove(&name);
            }
            return Ok(left.map_or(Requeue::Never, Requeue::After));
        };
        self.removed.borrow_mut().remove(&name);
        let deleting = !namespace.at(&["metadata", "deletionTimestamp"]).is_null();
        if !deleting || !has_our_finalizer(&namespace) {
            return Ok(Requeue::Never);
        }
        let uid = namespace.str_at(&["metadata", "uid"]);
        let is_same = || Ok(self.agent.get(target)?.is_some_and(|now| now.str_at(&["metadata", "uid"]) == uid));
        let Some(emptied) = content::empty(&self.agent, &name, is_same).await? else { return Ok(Requeue::Never) };
        let settled = self.settle(target, &namespace, uid, &emptied).await;
        match settled {
            Err(ApiError { code: 404, .. }) => return Ok(Requeue::Never),
            Err(error) => return Err(error),
            Ok(()) if emptied.is_complete() => return Ok(Requeue::Never),
            Ok(()) => {}
        }
        if let Some(why) = emptied.findings.failures.first() {
            return Err(ApiError::internal(why));
        }
        self.watch_content(name, emptied);
        Ok(Requeue::After(limits::NAMESPACE_RECHECK))
    }

    /// Writes the findings into the status, and removes the finalizer of a namespace that is empty.
    async fn settle(&self, target: Target<'_>, namespace: &Value, uid: &str, emptied: &Emptied) -> ApiResult<()> {
        if !conditions::tells(namespace, &emptied.findings) {
            let now = now().to_string();
            let tell = |namespace: &mut Value| conditions::write(namespace, &emptied.findings, &now);
            self.agent.edit(target.with_subresource("status"), uid, tell).await?;
        }
        if !emptied.is_complete() {
            return Ok(());
        }
        let finalize = |namespace: &mut Value| {
            let kept = namespace.list_at(&["spec", "finalizers"]).iter();
            let kept: Vec<Value> = kept.filter(|finalizer| finalizer.as_str() != Some(FINALIZER)).cloned().collect();
            namespace.set_at(&["spec", "finalizers"], kept);
        };
        self.agent.edit(target.with_subresource("finalize"), uid, finalize).await
    }

    /// Puts the namespace into the queue again as soon as any of the remaining content changes.
    fn watch_content(&self, name: String, emptied: Emptied) {
        let followed = emptied.held.into_iter().take(limits::NAMESPACE_FOLLOWED_TABLES);
        let subscribed: Option<Vec<Subscription>> =
            followed.map(|(table, after)| subscribe(&table, &name, after)).collect();
        let Some(mut subscriptions) = subscribed.filter(|subscriptions| !subscriptions.is_empty()) else {
            self.queue.add(name); // the history no longer reaches back, so something has changed
            return;
        };
        let (queue, key) = (Rc::clone(&self.queue), name.clone());
        let watcher = tasks::owned("content of a namespace", async move {
            select_all(subscriptions.iter_mut().map(|subscription| Box::pin(subscription.changed()))).await;
            queue.add(key);
        });
        self.watchers.borrow_mut().insert(name, watcher);
    }
}

fn has_our_finalizer(namespace: &Value) -> bool {
    namespace.list_at(&["spec", "finalizers"]).iter().any(|finalizer| finalizer.as_str() == Some(FINALIZER))
}

fn subscribe(table: &Arc<Table>, namespace: &str, after: Revision) -> Option<Subscription> {
    let interest = Interest { namespace: Some(namespace.into()), ..Interest::default() };
    table.subscribe(interest, after).ok()
}
