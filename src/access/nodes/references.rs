//! Finds the objects that pods and volumes refer to by name.

use flotilla_proto::value::{Map, Value};

use super::relations::Related;

/// The annotation of mirror pods. Kubelets create these for static pods; they refer to no object.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Lists of containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// The fields of a persistent volume that name the Secrets which nodes need.
const NODE_SECRETS: [&str; 4] = ["secretRef", "nodeStageSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"];

/// Returns whether a pod uses an object of its namespace.
pub(super) fn uses(pod: &Value, what: Related, name: &str) -> bool {
    if !pod.at(&["metadata", "annotations", MIRROR]).is_null() {
        return false;
    }
    match what {
        Related::Account => pod.str_at(&["spec", "serviceAccountName"]) == name,
        Related::ConfigMap => {
            in_environment(pod, "configMapRef", "configMapKeyRef", name)
                || sources(pod)
                    .any(|source| source.str_at(&["configMap", "name"]) == name || projected(source, "configMap", name))
        }
        Related::Secret => names_secret(pod, name),
        Related::Claim => claims(pod).iter().any(|claim| claim == name),
        Related::ResourceClaim => resource_claims(pod).any(|claim| claim == name),
        Related::Volume | Related::Attachment | Related::Slice | Related::Pod => false,
    }
}

/// Returns whether a pod names a Secret of its namespace.
pub fn names_secret(pod: &Value, name: &str) -> bool {
    named(pod.list_at(&["spec", "imagePullSecrets"]), &[], name)
        || in_environment(pod, "secretRef", "secretKeyRef", name)
        || sources(pod).any(|source| has_secret(source, name) || projected(source, "secret", name))
}

/// Returns the names of a pod's PersistentVolumeClaims.
pub(super) fn claims(pod: &Value) -> Vec<String> {
    let claim = |volume: &Value| match volume.str_at(&["persistentVolumeClaim", "claimName"]) {
        "" if volume.at(&["ephemeral"]).is_null() => None,
        "" => Some(format!("{}-{}", pod.str_at(&["metadata", "name"]), volume.str_at(&["name"]))),
        claim => Some(claim.to_owned()),
    };
    pod.list_at(&["spec", "volumes"]).iter().filter_map(claim).collect()
}

/// Returns whether nodes need a Secret to use a PersistentVolume. A reference without a namespace means the namespace
/// of the claim.
pub(super) fn volume_uses(volume: &Value, namespace: &str, name: &str) -> bool {
    let of_claim = volume.str_at(&["spec", "claimRef", "namespace"]);
    let is = |secret: &str, own: &str| {
        let own = if own.is_empty() { of_claim } else { own };
        secret == name && own == namespace
    };
    volume.map_at(&["spec"]).into_iter().flat_map(Map::iter).any(|(_, source)| {
        is(source.str_at(&["secretName"]), source.str_at(&["secretNamespace"]))
            || NODE_SECRETS
                .iter()
                .any(|field| is(source.str_at(&[field, "name"]), source.str_at(&[field, "namespace"])))
    })
}

fn sources(pod: &Value) -> impl Iterator<Item = &Value> {
    pod.list_at(&["spec", "volumes"]).iter()
}

/// Returns whether a volume uses a Secret. Every type of volume names it in one of these fields.
fn has_secret(volume: &Value, name: &str) -> bool {
    volume.as_object().into_iter().flat_map(Map::iter).any(|(_, source)| {
        source.str_at(&["secretName"]) == name
            || source.str_at(&["secretRef", "name"]) == name
            || source.str_at(&["nodePublishSecretRef", "name"]) == name
    })
}

fn projected(volume: &Value, what: &str, name: &str) -> bool {
    named(volume.list_at(&["projected", "sources"]), &[what], name)
}

fn in_environment(pod: &Value, whole: &str, key: &str, name: &str) -> bool {
    CONTAINERS.iter().flat_map(|list| pod.list_at(&["spec", list])).any(|container| {
        named(container.list_at(&["envFrom"]), &[whole], name)
            || named(container.list_at(&["env"]), &["valueFrom", key], name)
    })
}

fn named(list: &[Value], path: &[&str], name: &str) -> bool {
    list.iter().any(|item| item.at(path).str_at(&["name"]) == name)
}

/// Returns the names of a pod's ResourceClaims: those that the pod names, and those that were created for it.
fn resource_claims(pod: &Value) -> impl Iterator<Item = &str> {
    let stated = pod.list_at(&["spec", "resourceClaims"]).iter().map(|claim| claim.str_at(&["resourceClaimName"]));
    let made = pod.list_at(&["status", "resourceClaimStatuses"]).iter();
    let made = made.map(|claim| claim.str_at(&["resourceClaimName"]));
    let extended = pod.str_at(&["status", "extendedResourceClaimStatus", "resourceClaimName"]);
    stated.chain(made).chain([extended]).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn a_pod_uses_the_objects_that_it_names() {
        let pod = value!({
            "metadata": {"name": "p"},
            "spec": {
                "serviceAccountName": "account",
                "imagePullSecrets": [{"name": "pull"}],
                "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "env"}}}]}],
                "initContainers": [{"envFrom": [{"configMapRef": {"name": "all"}}]}],
                "volumes": [
                    {"name": "a", "secret": {"secretName": "files"}},
                    {"name": "b", "projected": {"sources": [{"configMap": {"name": "part"}}]}},
                    {"name": "c", "ephemeral": {}},
                    {"name": "d", "csi": {"nodePublishSecretRef": {"name": "driver"}}},
                    {"name": "e", "persistentVolumeClaim": {"claimName": "disk"}},
                ],
                "resourceClaims": [{"name": "g", "resourceClaimName": "gpu"}],
            },
        });
        for name in ["pull", "env", "files", "driver"] {
            assert!(uses(&pod, Related::Secret, name), "{name}");
        }
        assert!(uses(&pod, Related::ConfigMap, "all") && uses(&pod, Related::ConfigMap, "part"));
        assert!(!uses(&pod, Related::ConfigMap, "files") && !uses(&pod, Related::Secret, "part"));
        assert_eq!(claims(&pod), ["p-c", "disk"]);
        assert!(uses(&pod, Related::ResourceClaim, "gpu") && uses(&pod, Related::Account, "account"));
        let mut mirror = pod.clone();
        mirror.set_at(&["metadata", "annotations", MIRROR], "x");
        assert!(!uses(&mirror, Related::Secret, "pull"));
    }

    #[test]
    fn nodes_use_only_the_node_secrets_of_a_volume() {
        let volume = value!({"spec": {
            "claimRef": {"namespace": "ns", "name": "c"},
            "csi": {"nodeStageSecretRef": {"name": "a", "namespace": "x"}, "controllerPublishSecretRef": {"name": "b"}},
            "azureFile": {"secretName": "d"},
        }});
        assert!(volume_uses(&volume, "x", "a") && volume_uses(&volume, "ns", "d"));
        assert!(!volume_uses(&volume, "ns", "a") && !volume_uses(&volume, "ns", "b"));
    }
}
