//! The plugin NodeRestriction: limits a node's writes to its own Node object and its own pods (Kubernetes
//! documentation, "NodeRestriction"). `Err` of these functions is the reason of a refusal.

use std::collections::BTreeSet;

use flotilla_proto::value::{Map, Value};

use crate::field::quote;
use crate::rules::semantic;
use crate::rules::shown;

/// `Ok` if the node may make the write, else the reason why not.
type NodeWriteCheck = Result<(), String>;

/// The annotation of mirror pods, which a node creates for the static pods that it runs.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Labels that a kubelet may set on its node.
const LABELS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// Prefixes of further labels that a kubelet may set.
const LABEL_NAMESPACES: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// Prefix of labels that isolate nodes from each other: a node must not set them.
const RESTRICTED: &str = "node-restriction.kubernetes.io";
/// Lists of containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Checks that a node creates only mirror pods of its own static pods. Returns the UID of the owner that the pod
/// states; the caller compares it with the UID of the node.
///
/// # Errors
/// The reason why the node may not create the pod.
pub fn mirror_pod(node: &str, pod: &Value) -> Result<String, String> {
    let this = quote(node);
    if pod.at(&["metadata", "annotations", MIRROR]).is_null() {
        return Err(format!("pod does not have {} annotation, node {this} can only create mirror pods", quote(MIRROR)));
    }
    if pod.str_at(&["spec", "nodeName"]) != node {
        return Err(format!("node {this} can only create pods with spec.nodeName set to itself"));
    }
    let owner = match pod.list_at(&["metadata", "ownerReferences"]) {
        [] => return Err(format!("node {this} can only create pods with an owner reference set to itself")),
        [owner] => owner,
        _ => return Err(format!("node {this} can only create pods with a single owner reference set to itself")),
    };
    let of = (owner.str_at(&["apiVersion"]), owner.str_at(&["kind"]), owner.str_at(&["name"]));
    if of != ("v1", "Node", node) {
        return Err(format!("node {this} can only create pods with an owner reference set to itself"));
    }
    if !owner.is_true_at(&["controller"]) {
        return Err(format!("node {this} can only create pods with a controller owner reference set to itself"));
    }
    if owner.is_true_at(&["blockOwnerDeletion"]) {
        return Err(format!("node {this} must not set blockOwnerDeletion on an owner reference"));
    }
    Ok(owner.str_at(&["uid"]).to_owned())
}

/// Checks that a mirror pod refers to no other objects of the cluster.
///
/// # Errors
/// The reason, which names the sort of object that the pod refers to.
pub fn refers_to_nothing(node: &str, pod: &Value) -> NodeWriteCheck {
    match referred(pod) {
        Some(what) => Err(format!("node {} can not create pods that reference {what}", quote(node))),
        None => Ok(()),
    }
}

/// Returns the sort of object that a pod refers to; `None` if it refers to none.
fn referred(pod: &Value) -> Option<&'static str> {
    if !pod.str_at(&["spec", "serviceAccountName"]).is_empty() {
        return Some("serviceaccounts");
    }
    let in_containers = |whole: &str, key: &str| {
        CONTAINERS.iter().flat_map(|list| pod.list_at(&["spec", list])).any(|container| {
            container.list_at(&["envFrom"]).iter().any(|from| !from.at(&[whole]).is_null())
                || container.list_at(&["env"]).iter().any(|env| !env.at(&["valueFrom", key]).is_null())
        })
    };
    let volumes = pod.list_at(&["spec", "volumes"]);
    // Several types of volumes refer to a Secret, each by a field of another name.
    let secret_of = |(name, source): (&str, &Value)| match name {
        "azureFile" | "secret" => !source.str_at(&["secretName"]).is_empty(),
        "projected" => source.list_at(&["sources"]).iter().any(|source| !source.at(&["secret"]).is_null()),
        _ => !source.at(&["secretRef"]).is_null() || !source.at(&["nodePublishSecretRef"]).is_null(),
    };
    let has_secret = |volume: &Value| volume.as_object().into_iter().flat_map(Map::iter).any(secret_of);
    if !pod.list_at(&["spec", "imagePullSecrets"]).is_empty()
        || in_containers("secretRef", "secretKeyRef")
        || volumes.iter().any(has_secret)
    {
        return Some("secrets");
    }
    let has_map = |volume: &Value| {
        let of_source = |source: &Value| !source.at(&["configMap"]).is_null();
        of_source(volume) || volume.list_at(&["projected", "sources"]).iter().any(of_source)
    };
    if in_containers("configMapRef", "configMapKeyRef") || volumes.iter().any(has_map) {
        return Some("configmaps");
    }
    if !pod.list_at(&["spec", "resourceClaims"]).is_empty() {
        return Some("resourceclaims");
    }
    volumes.iter().find_map(referred_by_volume)
}

fn referred_by_volume(volume: &Value) -> Option<&'static str> {
    const SORTS: [(&str, &str); 5] = [
        ("csi", "csidrivers (via CSI volumes)"),
        ("glusterfs", "endpoints (via glusterFS volumes)"),
        ("persistentVolumeClaim", "persistentvolumeclaims"),
        ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
        ("azureFile", "secrets (via azureFile volumes)"),
    ];
    const SOURCES: [(&str, &str); 3] = [
        ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
        ("clusterTrustBundle", "clustertrustbundles"),
        ("podCertificate", "podcertificates"),
    ];
    let of = |value: &Value, sorts: &[(&str, &'static str)]| {
        sorts.iter().find(|(name, _)| !value.at(&[name]).is_null()).map(|(_, what)| *what)
    };
    of(volume, &SORTS).or_else(|| volume.list_at(&["projected", "sources"]).iter().find_map(|it| of(it, &SOURCES)))
}

/// Checks a node's write of a pod's status: the pod must run on this node, and the labels and the fields that other
/// writers own must stay the same.
///
/// # Errors
/// The reason why the node may not write the status.
pub fn pod_status(node: &str, pod: &Value, old: &Value) -> NodeWriteCheck {
    let this = quote(node);
    if old.str_at(&["spec", "nodeName"]) != node {
        return Err(format!("node {this} can only update pod status for pods with spec.nodeName set to itself"));
    }
    let same = |path: &[&str]| semantic::equal_at(pod, old, path);
    if !same(&["metadata", "labels"]) {
        return Err(format!("node {this} cannot update labels through pod status"));
    }
    if !same(&["status", "resourceClaimStatuses"]) {
        return Err(format!("node {this} cannot update resource claim statues"));
    }
    if !same(&["status", "extendedResourceClaimStatus"]) {
        return Err(format!("node {this} cannot update extended resource claim status"));
    }
    Ok(())
}

/// Checks a node's write of a claim's status: only the fields that a kubelet sets after a volume was resized may
/// change.
///
/// # Errors
/// The reason why the node may not write the status.
pub fn claim_status(node: &str, claim: &Value, old: &Value) -> NodeWriteCheck {
    let rest = |claim: &Value| {
        let mut rest = claim.clone();
        for path in [
            ["metadata", "resourceVersion"],
            ["metadata", "managedFields"],
            ["status", "capacity"],
            ["status", "conditions"],
            ["status", "allocatedResourceStatuses"],
            ["status", "allocatedResources"],
        ] {
            if let Some(Value::Object(members)) = rest.get_mut(path[0]) {
                members.remove(path[1]);
            }
        }
        rest
    };
    let (old, new) = (rest(old), rest(claim));
    if semantic::equal(&old, &new) {
        return Ok(());
    }
    Err(format!(
        "node {} is not allowed to update fields other than status.quantity and status.conditions: {}",
        quote(node),
        shown::difference("core.PersistentVolumeClaim", &old, &new)
    ))
}

/// Checks a node's creation of its own Node object: it must have no labels that the node may not set.
///
/// # Errors
/// The reason why the node may not create the object.
pub fn new_node(this: &str, node: &Value) -> NodeWriteCheck {
    if !node.at(&["spec", "configSource"]).is_null() {
        return Err(format!("node {} is not allowed to create pods with a non-nil configSource", quote(this)));
    }
    match forbidden_labels(node, &Value::Null) {
        labels if labels.is_empty() => Ok(()),
        labels => Err(format!("node {} is not allowed to set the following labels: {labels}", quote(this))),
    }
}

/// Checks a node's update of its own Node object: taints, owners, and labels that the node may not set must stay the
/// same.
///
/// # Errors
/// The reason why the node may not change the object.
pub fn changed_node(this: &str, node: &Value, old: &Value) -> NodeWriteCheck {
    let same = |path: &[&str]| semantic::equal_at(node, old, path);
    let source = ["spec", "configSource"];
    let refuse = |what: &str| Err(format!("node {} is not allowed to {what}", quote(this)));
    if !node.at(&source).is_null() && !same(&source) {
        return refuse("update configSource to a new non-nil configSource");
    }
    if !same(&["spec", "taints"]) {
        return refuse("modify taints");
    }
    if !same(&["metadata", "ownerReferences"]) {
        return refuse("modify ownerReferences");
    }
    match forbidden_labels(node, old) {
        labels if labels.is_empty() => Ok(()),
        labels => Err(format!("is not allowed to modify labels: {labels}")),
    }
}

/// Returns the changed labels that a node may not set, sorted and joined by commas.
fn forbidden_labels(node: &Value, old: &Value) -> String {
    let path = ["metadata", "labels"];
    let of = |node: &Value| node.map_at(&path).into_iter().flat_map(Map::iter).map(|(key, _)| key.to_owned()).collect();
    let (own, other): (BTreeSet<String>, BTreeSet<String>) = (of(node), of(old));
    let value = |node: &Value, key: &str| node.at(&path).at(&[key]).as_str().map(str::to_owned);
    let differs = |key: &&String| value(node, key) != value(old, key);
    let forbidden = own.union(&other).filter(differs).filter(|key| is_forbidden(key)).map(String::as_str);
    forbidden.collect::<Vec<_>>().join(", ")
}

fn is_forbidden(label: &str) -> bool {
    let namespace = label.split_once('/').map_or("", |(namespace, _)| namespace);
    let lies_in =
        |domain: &str| namespace == domain || namespace.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    let of_kubernetes = lies_in("kubernetes.io") || lies_in("k8s.io");
    let of_kubelet = LABELS.contains(&label) || LABEL_NAMESPACES.iter().any(|domain| lies_in(domain));
    lies_in(RESTRICTED) || of_kubernetes && !of_kubelet
}

#[cfg(test)]
#[path = "node_restriction_tests.rs"]
mod tests;
