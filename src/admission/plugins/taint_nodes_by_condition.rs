//! TaintNodesByCondition: taints new nodes. No pod is scheduled to them until they are ready.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("TaintNodesByCondition", Presence::On).mutating(decides_by, mutate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    (part.name() == ("", "nodes", "") && operation == Operation::Create).then_some(DecidesBy::Object)
}

fn mutate(_: &BuiltInAttributes<'_>, node: &mut Value) -> ApiResult<()> {
    admission::taint_new_node(node);
    Ok(())
}
