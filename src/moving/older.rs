//! Reads objects that an older server has stored in versions that this server never serves.
//!
//! Most of these versions have the same protobuf messages as their successors, and differ only in name. Versions with
//! other messages are not read.

use flotilla_proto::catalogue;
use flotilla_proto::schema::Kind;
use flotilla_proto::value;
use flotilla_proto::value::Value;

/// Versions of kinds that the catalogue lacks, and whose message is that of `v1`: group, versions, kinds. Each was
/// compared field by field with the messages of k8s.io/api 0.36.
const SAME: &[(&str, &[&str], &[&str])] = &[
    (
        "admissionregistration.k8s.io",
        &["v1alpha1", "v1beta1"],
        &["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
    ),
    ("admissionregistration.k8s.io", &["v1beta1"], &["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]),
    ("apps", &["v1beta1", "v1beta2"], &["StatefulSet", "ControllerRevision"]),
    ("apps", &["v1beta2"], &["Deployment", "DaemonSet", "ReplicaSet"]),
    ("batch", &["v1beta1"], &["CronJob"]),
    ("certificates.k8s.io", &["v1beta1"], &["CertificateSigningRequest"]),
    ("coordination.k8s.io", &["v1beta1"], &["Lease"]),
    ("events.k8s.io", &["v1beta1"], &["Event"]),
    ("flowcontrol.apiserver.k8s.io", &["v1beta1", "v1beta2", "v1beta3"], &["FlowSchema"]),
    ("flowcontrol.apiserver.k8s.io", &["v1beta3"], &["PriorityLevelConfiguration"]),
    ("networking.k8s.io", &["v1beta1"], &["IngressClass"]),
    ("node.k8s.io", &["v1beta1"], &["RuntimeClass"]),
    ("policy", &["v1beta1"], &["PodDisruptionBudget"]),
    ("rbac.authorization.k8s.io", &["v1beta1"], &["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]),
    ("scheduling.k8s.io", &["v1beta1"], &["PriorityClass"]),
    ("storage.k8s.io", &["v1alpha1", "v1beta1"], &["VolumeAttachment", "CSIStorageCapacity"]),
    ("storage.k8s.io", &["v1alpha1"], &["VolumeAttributesClass"]),
    ("storage.k8s.io", &["v1beta1"], &["StorageClass", "CSIDriver", "CSINode"]),
];

/// Returns the kind that can decode objects of a version: the kind itself, or one with the same message.
pub(super) fn kind(group: &str, version: &str, name: &str) -> Option<&'static Kind> {
    if let Some(kind) = catalogue::kind(group, version, name) {
        return Some(kind);
    }
    let is_same = |(of, versions, kinds): &&(&str, &[&str], &[&str])| {
        *of == group && versions.contains(&version) && kinds.contains(&name)
    };
    SAME.iter().find(is_same)?;
    catalogue::kind(group, "v1", name)
}

/// Writes defaults explicitly that readers of an older version assumed.
pub(super) fn make_explicit(object: &mut Value) {
    // An empty selector selects nothing in this version, and everything in its successor.
    let is_older = object.str_at(&["apiVersion"]) == "policy/v1beta1";
    if is_older && object.map_at(&["spec", "selector"]).is_some_and(|map| map.is_empty()) {
        let key = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";
        object.set_at(&["spec", "selector"], value!({"matchExpressions": [{"key": key, "operator": "Exists"}]}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_older_version_names_an_existing_kind() {
        for (group, versions, kinds) in SAME {
            for (version, name) in versions.iter().flat_map(|version| kinds.iter().map(move |name| (version, name))) {
                assert!(kind(group, version, name).is_some(), "{group}/{version} {name}");
                assert!(catalogue::kind(group, version, name).is_none(), "the catalogue has {group}/{version} {name}");
            }
        }
        assert!(kind("networking.k8s.io", "v1beta1", "Ingress").is_none());
        assert!(kind("", "v1", "Pod").is_some());
    }
}
