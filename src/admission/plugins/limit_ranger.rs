//! LimitRanger: gives new pods the default resources of their namespace, and refuses pods and claims that exceed its
//! limits.

use flotilla_proto::value::Value;

use super::pod_resize_validator::is_resize;
use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("LimitRanger", Presence::On)
    .mutating(mutating_decides_by, set_default_resources)
    .validating(validating_decides_by, check_limits);

fn mutating_decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    brings_resources(part, operation).then_some(DecidesBy::Tables)
}

/// Returns whether an operation states the resources of a pod. Only a create and a resize state them.
fn brings_resources(part: ResourcePart<'_>, operation: Operation) -> bool {
    (part.name() == ("", "pods", "") && operation == Operation::Create) || is_resize(part, operation)
}

/// Returns whether the object is being deleted.
fn is_deleted(write: &BuiltInAttributes<'_>) -> bool {
    write.old.is_some_and(|old| !old.at(&["metadata", "deletionTimestamp"]).is_null())
}

fn validating_decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    match (part.name(), operation) {
        _ if brings_resources(part, operation) => Some(DecidesBy::Tables),
        (("", "persistentvolumeclaims", ""), Operation::Create | Operation::Update) => Some(DecidesBy::Tables),
        _ => None,
    }
}

fn set_default_resources(write: &BuiltInAttributes<'_>, pod: &mut Value) -> ApiResult<()> {
    if !is_deleted(write) {
        write.limit_ranges()?.iter().for_each(|range| admission::set_default_resources(pod, range));
    }
    Ok(())
}

fn check_limits(write: &BuiltInAttributes<'_>, object: &Value) -> ApiResult<()> {
    let is_pod = write.target.served.resource.name == "pods";
    if is_deleted(write) {
        return Ok(());
    }
    let check = if is_pod { admission::check_pod_limits } else { admission::check_claim_limits };
    let checked = write.limit_ranges()?.iter().try_for_each(|range| check(object, range));
    checked.map_err(|why| write.refuse(object, &why))
}
