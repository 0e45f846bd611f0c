//! Resources that are not known here yet: a client may have been told by another member that they are defined.

use super::Gateway;
use super::routing::{self, RequestInfo, Routed};
use crate::custom::{self, Definition};
use crate::limits;
use crate::registry;

/// Looks again whether somebody has objects like these, where a definition of them is stored.
pub(super) async fn look_again(gateway: &Gateway, info: RequestInfo, method: &str, watch: bool) -> Routed {
    if !is_defined(gateway, &info).await {
        return Routed::Unserved(info);
    }
    let resources = &gateway.registry.resources;
    let find = || resources.find(&info.of.group, &info.of.version, &info.of.resource);
    let mut changes = resources.changes();
    let mut known = find();
    let _ = tokio::time::timeout(limits::DEFINITION_WAIT, async {
        while known.is_none() && changes.changed().await.is_ok() {
            known = find();
        }
    })
    .await;
    routing::objects(known, info.of, method, watch)
}

/// Whether a definition is stored that serves what a request names.
async fn is_defined(gateway: &Gateway, info: &RequestInfo) -> bool {
    let registry = &gateway.registry;
    let Some(served) = registry.resources.of_resource(custom::GROUP, custom::RESOURCE) else { return false };
    let name = format!("{}.{}", info.of.resource, info.of.group);
    let stored = registry.get(&served, "", &name, None).await.ok();
    let tree = stored.and_then(|object| registry::stored_value(&object).ok());
    tree.as_ref().and_then(Definition::of).is_some_and(|definition| definition.served(&info.of.version).is_some())
}
