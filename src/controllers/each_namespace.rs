//! Keeps an object of one name in every namespace.

use flotilla_cluster::Interest;

use super::agent::Agent;
use super::metadata::is_deleting;
use super::namespaces::is_active;
use super::queue::{Queue, Requeue};
use crate::follow::follow;
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;

/// The object to keep: a resource of the core group, and a name.
pub struct Kept {
    /// The resource, as in `configmaps`.
    pub resource: &'static str,
    /// The object's name.
    pub name: &'static str,
}

/// Calls `settle` for a namespace whenever it appears and whenever its object is changed or deleted, unless the
/// namespace is being deleted.
///
/// # Errors
/// The resource is not served.
pub async fn keep<F>(agent: &Agent, kept: Kept, measured: QueueMetrics, settle: F) -> ApiResult<()>
where
    F: AsyncFn(&Agent, Target<'_>) -> ApiResult<()>,
{
    let Kept { resource, name } = kept;
    let namespaces = agent.registry.tables.table(&*agent.resource("", "namespaces")?);
    let served = agent.resource("", resource)?;
    let table = agent.registry.tables.table(&served);
    let queue = Queue::new(measured);
    let of_name = Interest { name: Some(name.into()), ..Interest::default() };
    tokio::join!(
        follow(&namespaces, Interest::default(), |seen| {
            if let Some(namespace) = seen.live().filter(|namespace| !is_deleting(namespace)) {
                queue.add(namespace.key().name().to_owned());
            }
        }),
        follow(&table, of_name, |seen| {
            if let Some(namespace) = seen.live().or(seen.deleted()).and_then(|object| object.key().namespace()) {
                queue.add(namespace.to_owned());
            }
        }),
        queue.work(limits::EACH_NAMESPACE_WORKERS, |namespace: String| {
            let (served, settle) = (&served, &settle);
            async move {
                if is_active(agent, &namespace)? {
                    settle(agent, Target::object(served, &namespace, name)).await?;
                }
                Ok(Requeue::Never)
            }
        }),
    );
    Ok(())
}

/// Ignores the failure of a create in a namespace that is being deleted, or is gone.
pub fn unless_namespace_ends(created: ApiResult<bool>) -> ApiResult<()> {
    match created {
        Err(ApiError { code: 404, .. }) => Ok(()),
        Err(error) if is_terminating(&error) => Ok(()),
        other => other.map(drop),
    }
}

fn is_terminating(error: &ApiError) -> bool {
    let causes = error.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}
