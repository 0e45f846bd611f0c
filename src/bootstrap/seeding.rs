//! Creates and reconciles the bootstrap objects, at every start.

use flotilla_proto::conform;
use flotilla_proto::value::Value;
use futures_util::StreamExt;

use super::{BootstrapInput, BootstrapObject, Renewal, cluster, objects};
use crate::embedded::TextError;
use crate::limits;
use crate::registry::{Incoming, Registry};
use crate::request::{Caller, DeleteOptions, WriteOptions};
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_value};
use crate::unreadable::skip_unreadable;

/// Resources that are written first, since the others need them: namespaces, and the ranges of service addresses.
const FIRST: [&str; 2] = ["namespaces", "servicecidrs"];
/// The resource whose objects are written last. Clients cannot delete these objects, so their existence proves that
/// everything was created once.
pub(super) const LAST: &str = "priorityclasses";

/// The reason why the bootstrap objects could not all be written.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// The embedded tables do not parse.
    #[error(transparent)]
    Text(#[from] TextError),
    /// An object was refused.
    #[error("{resource} {name}: {source}")]
    Refused {
        /// Resource of the object.
        resource: &'static str,
        /// Its name.
        name: String,
        /// Why.
        source: ApiError,
    },
}

/// Creates missing objects and reconciles the others.
pub async fn seed(registry: &Registry, input: &BootstrapInput) -> Result<(), SeedError> {
    let (first, others): (Vec<BootstrapObject>, Vec<BootstrapObject>) =
        objects(input)?.into_iter().partition(|desired| FIRST.contains(&desired.resource));
    let (last, others): (Vec<BootstrapObject>, Vec<BootstrapObject>) =
        others.into_iter().partition(|desired| desired.resource == LAST);
    for objects in [first, others, last] {
        let mut written = futures_util::stream::iter(objects)
            .map(|desired| async move {
                let refused = |source| SeedError::Refused {
                    resource: desired.resource,
                    name: desired.object.str_at(&["metadata", "name"]).to_owned(),
                    source,
                };
                ensure(registry, &desired).await.map_err(refused)
            })
            .buffered(limits::SEEDED_OBJECTS);
        while let Some(result) = written.next().await {
            result?;
        }
    }
    Ok(())
}

/// Creates those of these objects that are missing, and reconciles the others. Returns those that could not be written.
pub async fn renew(registry: &Registry, objects: Vec<BootstrapObject>) -> Vec<BootstrapObject> {
    let renewed = futures_util::stream::iter(objects).map(|desired| async move {
        let renewed = ensure(registry, &desired).await;
        let name = desired.object.str_at(&["metadata", "name"]);
        renewed.err().inspect(
            |error| tracing::debug!(%error, resource = desired.resource, name, "cannot renew a bootstrap object yet"),
        )?;
        Some(desired)
    });
    renewed.buffered(limits::SEEDED_OBJECTS).filter_map(std::future::ready).collect().await
}

/// Returns whether all bootstrap objects have been created once, as far as this replica knows; clients may have deleted
/// others than the last of them since. Until it is true, no server accepts writes of clients.
pub fn was_seeded(registry: &Registry) -> bool {
    cluster::priority_classes().into_iter().all(|desired| exists(registry, &desired))
}

fn exists(registry: &Registry, desired: &BootstrapObject) -> bool {
    let metadata = |field| desired.object.str_at(&["metadata", field]);
    let served = registry.tables.resources.find(desired.group, desired.version, desired.resource);
    served.is_some_and(|served| registry.tables.current(&served, metadata("namespace"), metadata("name")).is_some())
}

/// Creates an object if it is missing, or reconciles it.
///
/// # Errors
/// If it cannot be written. A conflict with another writer is worth a retry.
pub async fn ensure(registry: &Registry, desired: &BootstrapObject) -> ApiResult<()> {
    let served = registry.tables.resources.find(desired.group, desired.version, desired.resource);
    let served = served.ok_or_else(ApiError::no_such_path)?;
    let namespace = desired.object.str_at(&["metadata", "namespace"]);
    let name = desired.object.str_at(&["metadata", "name"]);
    let target = Target::object(&served, namespace, name);
    let options = WriteOptions { manager: desired.manager.to_owned(), ..WriteOptions::default() };
    let mut caller = Caller::server(desired.manager);
    if let Some(existing) = registry.tables.current(&served, namespace, name) {
        // An object that cannot be decoded must not prevent the start; an administrator has to remove it.
        let Some(stored) = skip_unreadable(stored_value(&existing)) else { return Ok(()) };
        match desired.renewal(&stored) {
            Renewal::Unchanged => return Ok(()),
            Renewal::Apply => return apply(registry, desired, target).await,
            Renewal::Update(object) => {
                let incoming = decoded(&served, object)?;
                return registry.replace(target, incoming, &options, &mut caller).await.map(drop);
            }
            Renewal::Replace => {
                registry.delete(target, &DeleteOptions::default(), &mut caller).await?;
            }
        }
    }
    let incoming = decoded(&served, desired.object.clone())?;
    registry.create(target, incoming, &options, &mut caller).await?;
    apply(registry, desired, target).await
}

/// Applies the fields that a second manager owns.
async fn apply(registry: &Registry, desired: &BootstrapObject, target: Target<'_>) -> ApiResult<()> {
    let Some(applied) = &desired.applied else { return Ok(()) };
    let mut configuration = applied.fields.clone();
    configuration.set_at(&["kind"], &*target.served.kind().name);
    configuration.set_at(&["apiVersion"], target.served.api_version());
    configuration.set_at(&["metadata", "name"], target.name);
    let target = target.with_subresource(applied.subresource);
    let options = WriteOptions { manager: applied.manager.to_owned(), force: true, ..WriteOptions::default() };
    let mut caller = Caller::server(desired.manager);
    registry.apply_value(target, configuration, &options, &mut caller).await.map(drop)
}

fn decoded(served: &crate::served::Served, mut object: Value) -> ApiResult<Incoming> {
    object.set_at(&["kind"], &*served.kind().name);
    object.set_at(&["apiVersion"], served.api_version());
    conform::conform(served.of(), &mut object).map_err(ApiError::internal)?;
    Ok(Incoming { value: object, ..Incoming::default() })
}
