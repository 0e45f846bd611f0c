//! Resources that this member does not know yet: another member may have told the client that they are defined.

use flotilla_proto::json::Part;
use flotilla_proto::value::Value;

use super::Gateway;
use super::head::Head;
use super::routing::{self, RequestInfo, Routed};
use crate::custom;
use crate::limits;
use crate::rules::conditions::is_true;
use crate::status::{ApiError, ApiResult};
use crate::tables;

/// The parts of a definition that are read. Its schemas, which are most of it, are not.
const READ: Part = Part::only(&[
    ("spec", Part::only(&[("versions", Part::only(&[("name", Part::Whole), ("served", Part::Whole)]))])),
    ("status", Part::only(&[("conditions", Part::Whole)])),
]);

/// Returns whether a definition may serve the resource of this path although routing did not know it. Groups of
/// definitions have a dot.
pub(super) fn may_be_defined(info: &RequestInfo) -> bool {
    info.of.group.contains('.')
}

/// Routes a request again if a stored definition serves its resource.
///
/// # Errors
/// The definition cannot be read now, or this member does not serve its resource in time.
pub(super) async fn look_again(gateway: &Gateway, info: RequestInfo, head: &Head<'_>) -> ApiResult<Routed> {
    let resources = &gateway.registry.tables.resources;
    let find = || resources.find(&info.of.group, &info.of.version, &info.of.resource);
    let mut changes = resources.changes();
    let mut known = find();
    if known.is_none() {
        gateway.beginning.check(&gateway.registry, false)?;
        if !is_defined(gateway, &info).await? {
            return Ok(Routed::Unserved(info));
        }
        known = find();
    }
    let _ = tokio::time::timeout(limits::DEFINITION_WAIT, async {
        while known.is_none() && changes.changed().await.is_ok() {
            known = find();
        }
    })
    .await;
    if known.is_none() {
        return Err(ApiError::unavailable("this server does not serve yet what is defined", 1));
    }
    Ok(routing::objects(known, false, info.of, head.method, head.watches()))
}

/// Returns whether a stored definition serves the resource and version that a request names.
async fn is_defined(gateway: &Gateway, info: &RequestInfo) -> ApiResult<bool> {
    let registry = &gateway.registry;
    let Some(served) = registry.tables.resources.of_resource(custom::GROUP, custom::RESOURCE) else { return Ok(false) };
    let name = format!("{}.{}", info.of.resource, info.of.group);
    let stored = match registry.tables.get(&served, "", &name, None).await {
        Err(ApiError { code: 404, .. }) => return Ok(false),
        stored => tables::stored_part(&*stored?, READ)?,
    };
    let mut versions = stored.list_at(&["spec", "versions"]).iter();
    let is_asked = |version: &Value| version.str_at(&["name"]) == info.of.version && version.is_true_at(&["served"]);
    Ok(is_true(&stored, "Established") && versions.any(is_asked))
}
