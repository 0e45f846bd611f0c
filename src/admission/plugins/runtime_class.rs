//! RuntimeClass: gives new pods the overhead and the scheduling constraints of their runtime class.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::rules::names;
use crate::status::{ApiError, ApiResult};

/// The plugin.
pub const PLUGIN: Plugin =
    Plugin::new("RuntimeClass", Presence::On).mutating(decides_by, set_class).validating(decides_by, check_overhead);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    // The overhead is fixed once a pod is created.
    (part.name() == ("", "pods", "") && operation == Operation::Create).then_some(DecidesBy::Tables)
}

fn set_class(write: &BuiltInAttributes<'_>, pod: &mut Value) -> ApiResult<()> {
    let class = class_of(write, pod)?;
    admission::set_runtime_class(pod, class.as_ref()).map_err(|why| write.refuse(pod, &why))
}

fn check_overhead(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<()> {
    let class = class_of(write, pod)?;
    admission::check_overhead(pod, class.as_ref()).map_err(|why| write.refuse(pod, &why))
}

fn class_of(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<Option<Value>> {
    match pod.at(&["spec", "runtimeClassName"]).as_str() {
        Some(name) => {
            names::check_resource_name(name).map_err(ApiError::unknown)?;
            write.admission.tables.look_up("node.k8s.io", "runtimeclasses", "", name)
        }
        None => Ok(None),
    }
}
