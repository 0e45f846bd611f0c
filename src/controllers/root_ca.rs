//! The config map `kube-root-ca.crt` of each namespace: by what clients in the cluster know the server.

use std::rc::Rc;

use flotilla_cluster::Interest;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::follow::follow;
use super::metadata::is_deleting;
use super::namespaces::is_active;
use super::queue::{Queue, Then};
use super::service_accounts::unless_namespace_ends;
use crate::registry::Target;
use crate::status::{ApiError, ApiResult};

const NAME: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
/// Told to whoever looks at the config map, as the reference has it.
const DESCRIPTION_TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";
/// Namespaces that are dealt with at a time; the store batches their writes.
const WORKERS: usize = 16;

/// Publishes the bundle in every namespace, and restores what is changed or deleted.
pub async fn run(agent: Rc<Agent>) -> ApiResult<()> {
    let namespaces = agent.registry.table(&*agent.resource("", "namespaces")?);
    let maps = agent.resource("", "configmaps")?;
    let table = agent.registry.table(&maps);
    let queue = Queue::new(&agent.registry.metrics, "root_ca_cert_publisher");
    let of_name = Interest { name: Some(NAME.into()), ..Interest::default() };
    tokio::join!(
        follow(&namespaces, Interest::default(), |seen| {
            if let Some(namespace) = seen.live().filter(|namespace| !is_deleting(namespace)) {
                queue.add(namespace.key().name().to_owned());
            }
        }),
        follow(&table, of_name, |seen| {
            if let Some(namespace) = seen.live().or(seen.deleted()).and_then(|map| map.key().namespace()) {
                queue.add(namespace.to_owned());
            }
        }),
        queue.work(WORKERS, |namespace: String| {
            let target = (Rc::clone(&agent), maps.clone());
            async move {
                let (agent, maps) = target;
                let target = Target { served: &maps, namespace: &namespace, name: NAME, subresource: "" };
                publish(&agent, target).await
            }
        }),
    );
    Ok(())
}

async fn publish(agent: &Agent, target: Target<'_>) -> ApiResult<Then> {
    if !is_active(agent, target.namespace)? {
        return Ok(Then::Rest);
    }
    let data = value!({"ca.crt": (agent.settings.root_ca.as_str())});
    let Some(current) = agent.get(target)? else {
        let mut object = value!({"metadata": {"name": NAME, "namespace": (target.namespace)}});
        object.set_at(&["metadata", "annotations", DESCRIPTION], DESCRIPTION_TEXT);
        object.set_at(&["data"], data);
        unless_namespace_ends(agent.create(Target { name: "", ..target }, object).await)?;
        return Ok(Then::Rest);
    };
    let described = !current.str_at(&["metadata", "annotations", DESCRIPTION]).is_empty();
    if described && *current.at(&["data"]) == data {
        return Ok(Then::Rest);
    }
    let restore = |object: &mut Value| {
        object.set_at(&["metadata", "annotations", DESCRIPTION], DESCRIPTION_TEXT);
        object.set_at(&["data"], data.clone());
    };
    match agent.edit(target, current.str_at(&["metadata", "uid"]), restore).await {
        // Deleted meanwhile: its deletion brings the namespace back into the queue.
        Err(ApiError { code: 404, .. }) | Ok(()) => Ok(Then::Rest),
        Err(error) => Err(error),
    }
}
