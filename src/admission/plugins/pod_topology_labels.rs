//! PodTopologyLabels: copies the topology labels of a node to a new pod that names the node.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("PodTopologyLabels", Presence::On).mutating(decides_by, mutate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    (part.name() == ("", "pods", "") && operation == Operation::Create).then_some(DecidesBy::Tables)
}

fn mutate(write: &BuiltInAttributes<'_>, pod: &mut Value) -> ApiResult<()> {
    let node = pod.str_at(&["spec", "nodeName"]);
    if !node.is_empty()
        && let Some(node) = write.admission.tables.look_up("", "nodes", "", node)?
    {
        admission::copy_topology_labels(pod, &node);
    }
    Ok(())
}
