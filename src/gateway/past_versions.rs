//! API versions of kinds that Kubernetes 1.36 can still decode, and that the catalogue does not have.
//!
//! A body that states one of them gets another error than a body that states no known kind.

/// Kinds by API version; their lists are known too.
const KINDS: &[(&str, &[&str])] = &[
    ("admissionregistration.k8s.io/v1alpha1", &["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]),
    (
        "admissionregistration.k8s.io/v1beta1",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apps/v1beta1", &["ControllerRevision", "Deployment", "DeploymentRollback", "Scale", "StatefulSet"]),
    ("apps/v1beta2", &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "Scale", "StatefulSet"]),
    ("authentication.k8s.io/v1alpha1", &["SelfSubjectReview"]),
    ("authentication.k8s.io/v1beta1", &["SelfSubjectReview", "TokenReview"]),
    (
        "authorization.k8s.io/v1beta1",
        &["LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"],
    ),
    ("batch/v1beta1", &["CronJob"]),
    ("certificates.k8s.io/v1alpha1", &["ClusterTrustBundle"]),
    ("certificates.k8s.io/v1beta1", &["CertificateSigningRequest", "ClusterTrustBundle", "PodCertificateRequest"]),
    ("coordination.k8s.io/v1beta1", &["Lease"]),
    ("discovery.k8s.io/v1beta1", &["EndpointSlice"]),
    ("events.k8s.io/v1beta1", &["Event"]),
    (
        "extensions/v1beta1",
        &["DaemonSet", "Deployment", "DeploymentRollback", "Ingress", "NetworkPolicy", "ReplicaSet", "Scale"],
    ),
    ("flowcontrol.apiserver.k8s.io/v1beta1", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("flowcontrol.apiserver.k8s.io/v1beta2", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("flowcontrol.apiserver.k8s.io/v1beta3", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("imagepolicy.k8s.io/v1alpha1", &["ImageReview"]),
    ("networking.k8s.io/v1beta1", &["Ingress", "IngressClass"]),
    ("node.k8s.io/v1alpha1", &["RuntimeClass"]),
    ("node.k8s.io/v1beta1", &["RuntimeClass"]),
    ("policy/v1beta1", &["Eviction", "PodDisruptionBudget"]),
    ("rbac.authorization.k8s.io/v1alpha1", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    ("rbac.authorization.k8s.io/v1beta1", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    ("scheduling.k8s.io/v1alpha2", &["PodGroup", "Workload"]),
    ("scheduling.k8s.io/v1beta1", &["PriorityClass"]),
    ("storage.k8s.io/v1alpha1", &["CSIStorageCapacity", "VolumeAttachment", "VolumeAttributesClass"]),
    ("storage.k8s.io/v1beta1", &["CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"]),
    ("storagemigration.k8s.io/v1beta1", &["StorageVersionMigration"]),
];

/// Kinds that every version of every group has.
const EVERYWHERE: [&str; 4] = ["DeleteOptions", "ListOptions", "Status", "WatchEvent"];

/// Returns whether a kind is known in a version that does not serve it. `served` says whether the version serves any
/// kind.
pub fn is_known(api_version: &str, kind: &str, served: bool) -> bool {
    let past = KINDS.iter().find(|(version, _)| *version == api_version);
    if EVERYWHERE.contains(&kind) {
        return served || past.is_some();
    }
    let single = kind.strip_suffix("List").unwrap_or(kind);
    past.is_some_and(|(_, kinds)| kinds.iter().any(|known| *known == kind || *known == single))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_versions_are_known_with_their_kinds() {
        assert!(is_known("apps/v1beta1", "Deployment", false));
        assert!(is_known("extensions/v1beta1", "IngressList", false));
        assert!(is_known("apps/v1", "Status", true));
        assert!(!is_known("apps/v1beta1", "DaemonSet", false));
        assert!(!is_known("apps/v9", "Status", false));
    }
}
