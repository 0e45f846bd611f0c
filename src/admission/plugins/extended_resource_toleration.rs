//! ExtendedResourceToleration: lets pods that request an extended resource tolerate the taint of its nodes.

use std::collections::BTreeSet;

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::rules::resources::is_extended;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("ExtendedResourceToleration", Presence::Off).mutating(decides_by, mutate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    part.is_written(operation, ("", "pods")).then_some(DecidesBy::Object)
}

fn mutate(_: &BuiltInAttributes<'_>, pod: &mut Value) -> ApiResult<()> {
    tolerate(pod);
    Ok(())
}

fn tolerate(pod: &mut Value) {
    let containers = ["containers", "initContainers"].iter().flat_map(|list| pod.list_at(&["spec", list]));
    let requests = containers.filter_map(|container| container.map_at(&["resources", "requests"]));
    let names = requests.flat_map(Map::iter).map(|(name, _)| name).filter(|name| is_extended(name));
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    if names.is_empty() {
        return;
    }
    let mut tolerations = pod.list_at(&["spec", "tolerations"]).to_vec();
    for name in &names {
        let own = value!({"key": (name.as_str()), "operator": "Exists", "effect": "NoSchedule"});
        let is_same = |other: &Value| ["key", "operator", "effect"].iter().all(|of| other.at(&[of]) == own.at(&[of]));
        match tolerations.iter_mut().find(|other| is_same(other)) {
            Some(known) => *known = own, // a time would have no meaning for this effect
            None => tolerations.push(own),
        }
    }
    pod.set_at(&["spec", "tolerations"], tolerations);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_extended_resource_is_tolerated_once() {
        let mut pod = value!({"spec": {
            "containers": [{"resources": {"requests": {"cpu": "1", "b.example/gpu": "1"}}}],
            "initContainers": [{"resources": {"requests": {"a.example/nic": "1", "b.example/gpu": "1"}}}],
            "tolerations": [{"key": "x", "operator": "Exists"}]
        }});
        tolerate(&mut pod);
        let once = pod.clone();
        let keys = pod.list_at(&["spec", "tolerations"]).iter().map(|toleration| toleration.str_at(&["key"]));
        assert_eq!(keys.collect::<Vec<_>>(), ["x", "a.example/nic", "b.example/gpu"]);
        tolerate(&mut pod);
        assert_eq!(pod, once);
    }
}
