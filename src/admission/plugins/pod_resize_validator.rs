//! PodResizeValidator: refuses a resize unless the pod's node runs Linux and its allocatable resources suffice for the
//! new requests of the pod (KEP-1287).

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::field::quote;
use crate::kinds::admission::refuse_resize;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("PodResizeValidator", Presence::On).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    is_resize(part, operation).then_some(DecidesBy::Tables)
}

/// Returns whether an operation resizes a pod.
pub(super) fn is_resize(part: ResourcePart<'_>, operation: Operation) -> bool {
    part.name() == ("", "pods", "resize") && operation == Operation::Update
}

/// Returns whether an update of a pod changes its spec, as its generation shows.
pub(super) fn is_spec_changed(pod: &Value, old: &Value) -> bool {
    let generation = |pod: &Value| pod.int_at(&["metadata", "generation"]).unwrap_or(0);
    generation(pod) != generation(old)
}

fn validate(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<()> {
    let node = pod.str_at(&["spec", "nodeName"]);
    if node.is_empty() || !is_spec_changed(pod, write.old.unwrap_or(&Value::Null)) {
        return Ok(());
    }
    let Some(node) = write.admission.tables.look_up("", "nodes", "", node)? else {
        return Err(write.refuse(pod, &format!("node {} not found", quote(node))));
    };
    match refuse_resize(pod, &node) {
        Some((reason, why)) => Err(write.refuse(pod, &why).with_cause(reason, "", "")),
        None => Ok(()),
    }
}
