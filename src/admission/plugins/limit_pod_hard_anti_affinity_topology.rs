//! LimitPodHardAntiAffinityTopology: refuses pods that keep other pods off more than one node.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::status::ApiResult;

const HOST: &str = "kubernetes.io/hostname";
const REQUIRED: [&str; 4] = ["spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];

/// The plugin.
pub const PLUGIN: Plugin =
    Plugin::new("LimitPodHardAntiAffinityTopology", Presence::Off).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    part.is_written(operation, ("", "pods")).then_some(DecidesBy::Object)
}

fn validate(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<()> {
    let mut keys = pod.list_at(&REQUIRED).iter().map(|term| term.str_at(&["topologyKey"]));
    match keys.find(|key| *key != HOST) {
        Some(key) => {
            let why = format!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOST} is allowed"
            );
            Err(write.refuse(pod, &why))
        }
        None => Ok(()),
    }
}
