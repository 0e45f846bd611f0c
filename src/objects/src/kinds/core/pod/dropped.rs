//! Drops the fields of features that are off in Kubernetes 1.36, without an error, unless the stored object uses them
//! already.

use flotilla_proto::value::{Map, Value};

use crate::rules::defaulting::{object, objects};

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
const CONTAINER_STATUSES: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// Drops these fields from the pod spec at `path` (`["spec"]` in a pod, `["spec", "template", "spec"]` in a
/// Deployment).
pub fn drop_from_spec(object: &mut Value, old: Option<&Value>, path: &[&str]) {
    let old = old.map(|old| old.at(path));
    if old.is_some_and(|old| object.at(path).is_same(old)) {
        return;
    }
    let Some(spec) = at_mut(object, path) else { return };
    for source in ["clusterTrustBundle", "podCertificate"] {
        if projects(spec, source) && !old.is_some_and(|old| old.as_object().is_some_and(|old| projects(old, source))) {
            drop_projection(spec, source);
        }
    }
    if spec.contains_key("schedulingGroup") && old.is_none_or(|old| old.get("schedulingGroup").is_none()) {
        spec.remove("schedulingGroup");
    }
    if !old.is_some_and(has_stop_signal) {
        CONTAINERS.iter().for_each(|list| objects(spec, list).for_each(drop_stop_signal));
    }
}

/// Drops these fields from a pod's status.
pub fn drop_from_status(pod: &mut Value, old: &Value) {
    let Some(status) = at_mut(pod, &["status"]) else { return };
    if old.list_at(&["status", "nodeAllocatableResourceClaimStatuses"]).is_empty() {
        status.remove("nodeAllocatableResourceClaimStatuses");
    }
    let digest_in_use = CONTAINER_STATUSES.iter().any(|list| {
        let mounts = old.list_at(&["status", list]).iter().flat_map(|container| container.list_at(&["volumeMounts"]));
        mounts.into_iter().any(|mount| mount.get("volumeStatus").is_some())
    });
    if digest_in_use {
        return;
    }
    for list in CONTAINER_STATUSES {
        for container in objects(status, list) {
            for mount in objects(container, "volumeMounts") {
                mount.remove("volumeStatus");
            }
        }
    }
}

fn at_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map> {
    path.iter().try_fold(value, |value, key| value.get_mut(key))?.as_object_mut()
}

fn projects(spec: &Map, source: &str) -> bool {
    let volumes = spec.get("volumes").and_then(Value::as_array).unwrap_or(&[]);
    volumes
        .iter()
        .flat_map(|volume| volume.list_at(&["projected", "sources"]))
        .any(|projection| projection.get(source).is_some())
}

fn drop_projection(spec: &mut Map, source: &str) {
    for volume in objects(spec, "volumes") {
        let Some(projected) = object(volume, "projected") else { continue };
        for projection in objects(projected, "sources") {
            projection.remove(source);
        }
    }
}

fn has_stop_signal(spec: &Value) -> bool {
    let signal = |container: &Value| !container.at(&["lifecycle", "stopSignal"]).is_null();
    CONTAINERS.iter().any(|list| spec.list_at(&[list]).iter().any(signal))
}

fn drop_stop_signal(container: &mut Map) {
    let Some(lifecycle) = object(container, "lifecycle") else { return };
    if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
        container.remove("lifecycle");
    }
}
