//! Deletes the content of a namespace: pods first, and all else once they are gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use flotilla_cluster::{Key, Object, Revision, Scope, Selection, Table};
use futures_util::{StreamExt, stream};

use super::conditions::Findings;
use crate::controllers::agent::Agent;
use crate::controllers::metadata::{is_deleting, metadata, uid};
use crate::limits;
use crate::request::{DeleteOptions, Propagation};
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;
use crate::unreadable::skip_unreadable;

/// The result of one attempt to empty a namespace.
#[derive(Default)]
pub struct Emptied {
    /// The findings for the status.
    pub findings: Findings,
    /// Tables in which objects remain, each with the revision of the snapshot that has them.
    pub held: Vec<(Arc<Table>, Revision)>,
}

impl Emptied {
    /// Returns whether nothing remains.
    pub fn is_complete(&self) -> bool {
        self.findings.remaining.is_empty() && self.findings.failures.is_empty()
    }
}

/// Deletes the objects of a namespace, as long as `still_wanted` returns true. It is called after this replica has
/// caught up with all acknowledged writes. Returns `None` if `still_wanted` has returned false.
pub async fn empty(
    agent: &Agent,
    namespace: &str,
    still_wanted: impl Fn() -> ApiResult<bool>,
) -> ApiResult<Option<Emptied>> {
    let mut emptied = Emptied::default();
    let resources = agent.registry.tables.resources.stored();
    let mut groups = BTreeSet::new();
    let deletable = |served: &&Arc<Served>| {
        served.resource.namespaced && served.has_verb("list") && served.has_verb("deletecollection")
    };
    let is_pods = |served: &Served| served.group().is_empty() && served.resource.name == "pods";
    let (pods, others): (Vec<_>, Vec<_>) = resources.iter().filter(deletable).partition(|served| is_pods(served));
    for served in pods.iter().chain(&others) {
        // This replica must see every acknowledged write; one read point serves all tables of a group.
        let table = agent.registry.tables.table(served);
        let of: Vec<String> = table.groups().collect();
        if of.len() > 1 || groups.insert(of) {
            agent.registry.tables.barrier(&table).await?;
        }
    }
    if !still_wanted()? {
        return Ok(None);
    }
    for served in pods {
        if !empty_table(agent, served, namespace, &still_wanted, &mut emptied).await? {
            return Ok(None);
        }
    }
    if !emptied.is_complete() {
        return Ok(Some(emptied));
    }
    for served in others {
        if !empty_table(agent, served, namespace, &still_wanted, &mut emptied).await? {
            return Ok(None);
        }
    }
    Ok(Some(emptied))
}

/// Deletes the objects of one table, and records those that remain. Returns false if `still_wanted` has returned false.
async fn empty_table(
    agent: &Agent,
    served: &Arc<Served>,
    namespace: &str,
    still_wanted: &impl Fn() -> ApiResult<bool>,
    into: &mut Emptied,
) -> ApiResult<bool> {
    let table = agent.registry.tables.table(served);
    let Some(objects) = objects_of(&table, namespace).await? else { return Ok(true) };
    // A namespace of the same name that is created after this check had no objects when the list was made.
    let namespaces = agent.resource("", "namespaces")?;
    agent.registry.tables.catch_up_with(&namespaces, "", namespace).await?;
    if !still_wanted()? {
        return Ok(false);
    }
    delete_all(agent, served, namespace, objects, into).await;
    let qualified = format!("{}.{}", served.resource.name, served.group());
    let mut remaining = 0;
    let revision = each(&table, namespace, &mut |object| {
        remaining += 1;
        // If metadata cannot be decoded, the deletion of the object fails and is reported.
        for finalizer in skip_unreadable(metadata(object)).unwrap_or_default().list_at(&["finalizers"]) {
            *into.findings.finalizers.entry(finalizer.as_str().unwrap_or("").to_owned()).or_default() += 1;
        }
        Ok(())
    })
    .await?;
    if remaining > 0 {
        into.findings.remaining.insert(qualified, remaining);
        into.held.push((table, revision));
    }
    Ok(true)
}

/// The key and UID of an object.
type ObjectIdentity = (Key, Option<String>);

/// Returns the objects of a namespace that are not being deleted yet. `None` if the namespace has no objects.
async fn objects_of(table: &Table, namespace: &str) -> ApiResult<Option<Vec<ObjectIdentity>>> {
    let (mut found, mut objects) = (false, Vec::new());
    each(table, namespace, &mut |object| {
        found = true;
        if !is_deleting(object) {
            objects.push((object.key().clone(), uid(object).map(str::to_owned)));
        }
        Ok(())
    })
    .await?;
    Ok(found.then_some(objects))
}

async fn delete_all(agent: &Agent, served: &Served, namespace: &str, objects: Vec<ObjectIdentity>, into: &mut Emptied) {
    let mut deletions = stream::iter(objects)
        .map(|(key, uid)| async move {
            let propagation = Some(Propagation::Background);
            let options = DeleteOptions { propagation, uid, ..DeleteOptions::default() };
            agent.delete(Target::object(served, namespace, key.name()), &options).await
        })
        .buffer_unordered(limits::NAMESPACE_DELETIONS);
    while let Some(deleted) = deletions.next().await {
        if let Err(error) = deleted {
            into.findings.failures.push(error.message);
        }
    }
    into.findings.failures.sort();
    into.findings.failures.dedup();
}

/// Calls `see` for every object of a namespace in a snapshot. Returns the revision of the snapshot.
async fn each(table: &Table, namespace: &str, see: &mut dyn FnMut(&Object) -> ApiResult<()>) -> ApiResult<Revision> {
    let snapshot = table.snapshot();
    let selection = Selection { scope: Scope::namespace(namespace), ..Selection::default() };
    if snapshot.count(&selection.scope).map_err(ApiError::internal)? == 0 {
        return Ok(snapshot.revision());
    }
    let mut chunks = scan(&snapshot, selection);
    while let Some(objects) = chunks.next_yielding().await {
        for object in objects.map_err(ApiError::internal)? {
            see(&object)?;
        }
    }
    Ok(snapshot.revision())
}
