//! NodeDeclaredFeatureValidator: refuses a resize when the pod's node does not declare that it supports it, so the node
//! must be known (KEP-5328). It also must have room for the whole pod (KEP-1287).

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Part, Plugin, Presence};
use crate::admission::{BuiltInAttributes, Operation};
use crate::field::quote;
use crate::kinds::admission::beyond_node;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("NodeDeclaredFeatureValidator", Presence::On).validating(decides_by, validate);

/// Lists of containers whose resources a resize can change.
const LISTS: [&str; 2] = ["initContainers", "containers"];

fn decides_by(part: Part<'_>, operation: Operation) -> Option<DecidesBy> {
    (part.name() == ("", "pods", "resize") && operation == Operation::Update).then_some(DecidesBy::Tables)
}

fn validate(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<()> {
    let old = write.old.unwrap_or(&Value::Null);
    let node = old.str_at(&["spec", "nodeName"]);
    let resources = |pod: &Value| -> Vec<Value> {
        LISTS.iter().flat_map(|list| pod.list_at(&["spec", list])).map(|c| c.at(&["resources"]).clone()).collect()
    };
    if node.is_empty() || resources(pod) == resources(old) {
        return Ok(());
    }
    let Some(node) = write.registry.look_up("", "nodes", "", node)? else {
        return Err(write.refuse(pod, &format!("node {} not found", quote(node))));
    };
    match beyond_node(pod, &node) {
        Some(why) => Err(write.refuse(pod, &why).with_cause("NodeCapacity", "", "")),
        None => Ok(()),
    }
}
