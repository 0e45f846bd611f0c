//! Defaults of pods and of the pod templates that other kinds hold.

use flotilla_proto::value::{Map, Value};

use super::containers::image;
use super::resources::pod_level;
use crate::rules::defaulting::{items, object, object_or_new, objects, plain, pointer};
use crate::rules::resources;

/// Annotations that held init containers in old versions; they are always dropped.
const INIT_CONTAINER_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// Sets the defaults of a `Pod`.
pub fn pod(pod: &mut Value) {
    let Some(pod) = pod.as_object_mut() else { return };
    if let Some(metadata) = object(pod, "metadata") {
        drop_init_container_annotations(metadata);
    }
    if let Some(spec) = object_or_new(pod, "spec") {
        requests_from_limits(spec);
        pod_level::set_defaults(spec);
        pointer(spec, "enableServiceLinks", true);
        if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
            host_ports(spec);
        }
        pod_spec(spec);
        // A negative grace period means the shortest one.
        if spec.get("terminationGracePeriodSeconds").and_then(Value::as_int).is_some_and(|seconds| seconds < 0) {
            spec.insert("terminationGracePeriodSeconds", 1);
        }
    }
    if let Some(status) = object(pod, "status") {
        pod_status(status);
    }
}

/// Sets the defaults of a `PodTemplateSpec`.
pub fn template(template: &mut Value) {
    let Some(template) = template.as_object_mut() else { return };
    if let Some(metadata) = object_or_new(template, "metadata") {
        drop_init_container_annotations(metadata);
    }
    if let Some(spec) = object_or_new(template, "spec") {
        pod_spec(spec);
    }
}

fn drop_init_container_annotations(metadata: &mut Map) {
    let Some(annotations) = object(metadata, "annotations") else { return };
    if INIT_CONTAINER_ANNOTATIONS.iter().any(|key| annotations.contains_key(key)) {
        annotations.retain(|key, _| !INIT_CONTAINER_ANNOTATIONS.contains(&key));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

/// Sets the request of each resource that a container limits but does not request to the limit.
fn requests_from_limits(spec: &mut Map) {
    for list in ["containers", "initContainers"] {
        for container in objects(spec, list) {
            let Some(resources) = object(container, "resources") else { continue };
            let Some(limits) = resources.get("limits").and_then(Value::as_object) else { continue };
            let requests = resources.get("requests").and_then(Value::as_object);
            let missing: Vec<_> = limits
                .iter()
                .filter(|(name, _)| !requests.is_some_and(|requests| requests.contains_key(name)))
                .map(|(name, value)| (name.to_owned(), value.clone()))
                .collect();
            if let (false, Some(requests)) = (missing.is_empty(), object_or_new(resources, "requests")) {
                for (name, value) in missing {
                    requests.insert(name, value);
                }
                requests.sort();
            }
        }
    }
}

/// Sets `hostPort` of each port to the container's port, in a pod that uses the host's network.
fn host_ports(spec: &mut Map) {
    for list in ["containers", "initContainers"] {
        for container in objects(spec, list) {
            for port in objects(container, "ports") {
                if let Some(number) = port.get("containerPort").and_then(Value::as_int).filter(|number| *number != 0) {
                    plain(port, "hostPort", number);
                }
            }
        }
    }
}

/// Sets the defaults that pods and templates share.
fn pod_spec(spec: &mut Map) {
    plain(spec, "dnsPolicy", "ClusterFirst");
    plain(spec, "restartPolicy", "Always");
    pointer(spec, "securityContext", Value::object());
    pointer(spec, "terminationGracePeriodSeconds", 30);
    plain(spec, "schedulerName", "default-scheduler");
    service_account_alias(spec);
    for volume in objects(spec, "volumes") {
        self::volume(volume);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in objects(spec, list) {
            self::container(container);
        }
    }
    round(spec, "overhead");
    round_resources(spec);
}

/// Copies `serviceAccountName` to `serviceAccount`, its old name.
fn service_account_alias(spec: &mut Map) {
    let text = |key: &str| spec.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let name = text("serviceAccountName").or(text("serviceAccount")).map(Value::from);
    for key in ["serviceAccountName", "serviceAccount"] {
        match &name {
            Some(name) => _ = spec.insert(key, name.clone()),
            None => _ = spec.remove(key),
        }
    }
}

fn pull_policy(image: &str) -> &'static str {
    if image::is_latest(image) { "Always" } else { "IfNotPresent" }
}

fn container(container: &mut Map) {
    if container.get("imagePullPolicy").and_then(Value::as_str).is_none_or(str::is_empty) {
        let image = container.get("image").and_then(Value::as_str).unwrap_or("");
        let policy = pull_policy(image);
        container.insert("imagePullPolicy", policy);
    }
    plain(container, "terminationMessagePath", "/dev/termination-log");
    plain(container, "terminationMessagePolicy", "File");
    for port in objects(container, "ports") {
        plain(port, "protocol", "TCP");
    }
    for variable in objects(container, "env") {
        let Some(source) = object(variable, "valueFrom") else { continue };
        field_ref(source);
        if let Some(file) = object(source, "fileKeyRef") {
            pointer(file, "optional", false);
        }
    }
    round_resources(container);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = object(container, probe) {
            self::probe(probe);
        }
    }
    if let Some(lifecycle) = object(container, "lifecycle") {
        for handler in ["postStart", "preStop"] {
            if let Some(handler) = object(lifecycle, handler) {
                http_get(handler);
            }
        }
    }
}

fn probe(probe: &mut Map) {
    plain(probe, "timeoutSeconds", 1);
    plain(probe, "periodSeconds", 10);
    plain(probe, "successThreshold", 1);
    plain(probe, "failureThreshold", 3);
    http_get(probe);
    if let Some(grpc) = object(probe, "grpc") {
        pointer(grpc, "service", "");
    }
}

fn http_get(handler: &mut Map) {
    if let Some(http) = object(handler, "httpGet") {
        plain(http, "path", "/");
        plain(http, "scheme", "HTTP");
    }
}

fn field_ref(source: &mut Map) {
    if let Some(reference) = object(source, "fieldRef") {
        plain(reference, "apiVersion", "v1");
    }
}

fn volume(volume: &mut Map) {
    if !volume.iter().any(|(key, value)| key != "name" && !value.is_null()) {
        volume.insert("emptyDir", Value::object());
        return;
    }
    for key in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = object(volume, key) {
            pointer(source, "defaultMode", 0o644);
        }
    }
    if let Some(source) = object(volume, "downwardAPI") {
        objects(source, "items").for_each(field_ref);
    }
    if let Some(projected) = object(volume, "projected") {
        for source in objects(projected, "sources") {
            if let Some(downward) = object(source, "downwardAPI") {
                objects(downward, "items").for_each(field_ref);
            }
            if let Some(token) = object(source, "serviceAccountToken") {
                pointer(token, "expirationSeconds", 3600);
            }
        }
    }
    if let Some(image) = object(volume, "image")
        && image.get("pullPolicy").and_then(Value::as_str).is_none_or(str::is_empty)
    {
        let policy = pull_policy(image.get("reference").and_then(Value::as_str).unwrap_or(""));
        image.insert("pullPolicy", policy);
    }
    if let Some(host_path) = object(volume, "hostPath") {
        pointer(host_path, "type", "");
    }
    if let Some(template) = object(volume, "ephemeral").and_then(|source| object(source, "volumeClaimTemplate")) {
        claim_spec(template);
    }
    legacy_volume(volume);
}

/// Sets the defaults of older types of volumes: network storage and disks of clouds.
fn legacy_volume(volume: &mut Map) {
    if let Some(iscsi) = object(volume, "iscsi") {
        plain(iscsi, "iscsiInterface", "default");
    }
    if let Some(rbd) = object(volume, "rbd") {
        plain(rbd, "pool", "rbd");
        plain(rbd, "user", "admin");
        plain(rbd, "keyring", "/etc/ceph/keyring");
    }
    if let Some(disk) = object(volume, "azureDisk") {
        pointer(disk, "cachingMode", "ReadWrite");
        pointer(disk, "fsType", "ext4");
        pointer(disk, "readOnly", false);
        pointer(disk, "kind", "Shared");
    }
    if let Some(scale_io) = object(volume, "scaleIO") {
        plain(scale_io, "storageMode", "ThinProvisioned");
        plain(scale_io, "fsType", "xfs");
    }
}

/// Sets the defaults of the `spec` of a claim or of a claim's template.
pub fn claim_spec(claim: &mut Map) {
    if let Some(spec) = object_or_new(claim, "spec") {
        pointer(spec, "volumeMode", "Filesystem");
        round_resources(spec);
    }
}

fn pod_status(status: &mut Map) {
    pod_ips(status);
    for list in ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] {
        for container in objects(status, list) {
            round(container, "allocatedResources");
            round_resources(container);
        }
    }
    round(status, "allocatedResources");
    round_resources(status);
}

/// Makes `podIP` the first of `podIPs`. If both are sent and differ, `podIP` wins, for the sake of old kubelets.
fn pod_ips(status: &mut Map) {
    let single = status.get("podIP").and_then(Value::as_str).filter(|ip| !ip.is_empty()).map(Value::from);
    let first = items(status, "podIPs").first().and_then(|entry| entry.get("ip")).cloned();
    match (single, first) {
        (Some(single), first) if first.as_ref() != Some(&single) => {
            let mut entry = Map::new();
            entry.insert("ip", single);
            status.insert("podIPs", vec![Value::Object(entry)]);
        }
        (None, Some(first)) if first.as_str().is_some_and(|ip| !ip.is_empty()) => _ = status.insert("podIP", first),
        _ => {}
    }
}

/// Rounds the quantities in `resources` of a container, a claim or a pod.
fn round_resources(holder: &mut Map) {
    if let Some(needs) = object(holder, "resources") {
        round(needs, "limits");
        round(needs, "requests");
    }
}

fn round(holder: &mut Map, key: &str) {
    resources::round_up(holder.get_mut(key));
}
