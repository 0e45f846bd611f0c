//! The service account `default` of each namespace.

use std::rc::Rc;

use flotilla_cluster::Interest;
use flotilla_proto::value;

use super::agent::Agent;
use super::follow::follow;
use super::metadata::is_deleting;
use super::namespaces::is_active;
use super::queue::{Queue, Then};
use crate::registry::Target;
use crate::status::{ApiError, ApiResult};

/// The account that pods without one of their own run as.
const NAME: &str = "default";
/// Namespaces that are dealt with at a time; the store batches their writes.
const WORKERS: usize = 16;

/// Creates what is missing, now and whenever it is deleted.
pub async fn run(agent: Rc<Agent>) -> ApiResult<()> {
    let namespaces = agent.registry.table(&*agent.resource("", "namespaces")?);
    let accounts = agent.resource("", "serviceaccounts")?;
    let table = agent.registry.table(&accounts);
    let queue = Queue::new(&agent.registry.metrics, "serviceaccount");
    let of_name = Interest { name: Some(NAME.into()), ..Interest::default() };
    tokio::join!(
        follow(&namespaces, Interest::default(), |seen| {
            if let Some(namespace) = seen.live().filter(|namespace| !is_deleting(namespace)) {
                queue.add(namespace.key().name().to_owned());
            }
        }),
        follow(&table, of_name, |seen| {
            if let Some(namespace) = seen.deleted().and_then(|account| account.key().namespace()) {
                queue.add(namespace.to_owned());
            }
        }),
        queue.work(WORKERS, |namespace: String| {
            let (agent, accounts) = (&agent, &accounts);
            async move {
                let target = Target { served: accounts, namespace: &namespace, name: "", subresource: "" };
                let missing = agent.registry.current(accounts, &namespace, NAME).is_none();
                if missing && is_active(agent, &namespace)? {
                    let object = value!({"metadata": {"name": NAME, "namespace": (namespace.as_str())}});
                    unless_namespace_ends(agent.create(target, object).await)?;
                }
                Ok(Then::Rest)
            }
        }),
    );
    Ok(())
}

/// A namespace that ends meanwhile needs nothing any more.
pub fn unless_namespace_ends(created: ApiResult<bool>) -> ApiResult<bool> {
    match created {
        Err(ApiError { code: 404, .. }) => Ok(false),
        Err(error) if is_terminating(&error) => Ok(false),
        other => other,
    }
}

fn is_terminating(error: &ApiError) -> bool {
    let causes = error.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}
