//! LimitRanger: gives new pods the default resources of their namespace, and refuses pods and claims that exceed its
//! limits.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Part, Plugin, Presence};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("LimitRanger", Presence::On)
    .mutating(mutating_decides_by, set_default_resources)
    .validating(validating_decides_by, check_limits);

fn mutating_decides_by(part: Part<'_>, operation: Operation) -> Option<DecidesBy> {
    (part.name() == ("", "pods", "") && operation == Operation::Create).then_some(DecidesBy::Tables)
}

fn validating_decides_by(part: Part<'_>, operation: Operation) -> Option<DecidesBy> {
    match (part.name(), operation) {
        // The resources of a pod are fixed once it is created, except by a resize.
        (("", "pods", ""), Operation::Create) => Some(DecidesBy::Tables),
        (("", "persistentvolumeclaims", ""), Operation::Create | Operation::Update) => Some(DecidesBy::Tables),
        _ => None,
    }
}

fn set_default_resources(write: &BuiltInAttributes<'_>, pod: &mut Value) -> ApiResult<()> {
    write.limit_ranges()?.iter().for_each(|range| admission::set_default_resources(pod, range));
    Ok(())
}

fn check_limits(write: &BuiltInAttributes<'_>, object: &Value) -> ApiResult<()> {
    let is_pod = write.target.served.resource.name == "pods";
    if !is_pod && !object.at(&["metadata", "deletionTimestamp"]).is_null() {
        return Ok(());
    }
    let check = if is_pod { admission::check_pod_limits } else { admission::check_claim_limits };
    let checked = write.limit_ranges()?.iter().try_for_each(|range| check(object, range));
    checked.map_err(|why| write.refuse(object, &why))
}
