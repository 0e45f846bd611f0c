//! The admission plugins of Kubernetes 1.36 by name: which are here, which of these can be left out, and which were.

/// Whether a plugin is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// On unless it is left out.
    On,
    /// Off unless it is asked for.
    Off,
    /// What it does is always done, or nothing in it could be left out.
    Always,
    /// Not here.
    Absent,
}

/// What keeps nodes to what is theirs.
pub(super) const NODE_RESTRICTION: &str = "NodeRestriction";

const PLUGINS: [(&str, Presence); 41] = [
    ("AlwaysAdmit", Presence::Always),
    ("AlwaysDeny", Presence::Absent),
    ("AlwaysPullImages", Presence::Absent),
    ("CertificateApproval", Presence::On),
    ("CertificateSigning", Presence::On),
    ("CertificateSubjectRestriction", Presence::On),
    ("ClusterTrustBundleAttest", Presence::Always),
    ("DefaultIngressClass", Presence::On),
    ("DefaultStorageClass", Presence::On),
    ("DefaultTolerationSeconds", Presence::On),
    ("DenyServiceExternalIPs", Presence::Absent),
    ("EventRateLimit", Presence::Absent),
    ("ExtendedResourceToleration", Presence::Absent),
    ("ImagePolicyWebhook", Presence::Absent),
    ("JobValidation", Presence::Always),
    ("LimitPodHardAntiAffinityTopology", Presence::Absent),
    ("LimitRanger", Presence::On),
    ("MutatingAdmissionPolicy", Presence::Always),
    ("MutatingAdmissionWebhook", Presence::Always),
    ("NamespaceAutoProvision", Presence::Absent),
    ("NamespaceExists", Presence::Always),
    ("NamespaceLifecycle", Presence::On),
    ("NodeDeclaredFeatureValidator", Presence::On),
    (NODE_RESTRICTION, Presence::Off),
    ("OwnerReferencesPermissionEnforcement", Presence::Absent),
    ("PersistentVolumeClaimResize", Presence::On),
    ("PodGroupProtection", Presence::Always),
    ("PodGroupWorkloadExists", Presence::Always),
    ("PodNodeSelector", Presence::Absent),
    ("PodResizeValidator", Presence::Always),
    ("PodSecurity", Presence::On),
    ("PodTolerationRestriction", Presence::Absent),
    ("PodTopologyLabels", Presence::On),
    ("Priority", Presence::On),
    ("ResourceQuota", Presence::Always),
    ("RuntimeClass", Presence::On),
    ("ServiceAccount", Presence::On),
    ("StorageObjectInUseProtection", Presence::On),
    ("TaintNodesByCondition", Presence::On),
    ("ValidatingAdmissionPolicy", Presence::Always),
    ("ValidatingAdmissionWebhook", Presence::Always),
];

/// Whether a plugin is here; `None` when Kubernetes has none of this name.
pub fn find(name: &str) -> Option<Presence> {
    PLUGINS.iter().find(|(known, _)| *known == name).map(|(_, presence)| *presence)
}

/// Which plugins are used, as configured.
#[derive(Debug, Clone, Default)]
pub struct Plugins {
    off: Vec<String>,
    restricts_nodes: bool,
}

impl Plugins {
    /// Those that are on by default, with some besides and without others.
    pub fn new(enabled: &[String], disabled: &[String]) -> Self {
        Self { off: disabled.to_vec(), restricts_nodes: enabled.iter().any(|name| name == NODE_RESTRICTION) }
    }

    /// Whether a plugin that is on by default is left out.
    pub(super) fn leaves_out(&self, name: &str) -> bool {
        self.off.iter().any(|off| off == name)
    }

    /// Whether nodes are kept to what is theirs.
    pub(super) const fn restricts_nodes(&self) -> bool {
        self.restricts_nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_configured() {
        let plugins = Plugins::new(&["NodeRestriction".into()], &["ServiceAccount".into()]);
        assert!(plugins.restricts_nodes() && plugins.leaves_out("ServiceAccount") && !plugins.leaves_out("Priority"));
        assert!(!Plugins::default().restricts_nodes());
        assert_eq!(find("EventRateLimit"), Some(Presence::Absent));
        assert_eq!(find("NoSuchPlugin"), None);
    }
}
