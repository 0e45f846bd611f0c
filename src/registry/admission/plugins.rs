//! Lists the admission plugins of Kubernetes 1.36 by name: which of them this server has, and which can be switched.

/// Whether this server has a plugin, and when it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// On, unless the configuration disables it.
    On,
    /// Off, unless the configuration enables it.
    Off,
    /// Always on: it cannot be disabled, or it has nothing that could be.
    Always,
    /// This server does not have it.
    Absent,
}

/// The plugin that restricts nodes to their own objects.
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

/// Returns whether this server has a plugin; `None` when Kubernetes has none of this name.
pub fn find(name: &str) -> Option<Presence> {
    PLUGINS.iter().find(|(known, _)| *known == name).map(|(_, presence)| *presence)
}

/// Which plugins the configuration switched.
#[derive(Debug, Clone, Default)]
pub struct Plugins {
    off: Vec<String>,
    restricts_nodes: bool,
}

impl Plugins {
    /// Returns the default plugins with `enabled` added and `disabled` removed.
    pub fn new(enabled: &[String], disabled: &[String]) -> Self {
        Self { off: disabled.to_vec(), restricts_nodes: enabled.iter().any(|name| name == NODE_RESTRICTION) }
    }

    /// Returns whether the configuration disables a plugin that is on by default.
    pub(super) fn leaves_out(&self, name: &str) -> bool {
        self.off.iter().any(|off| off == name)
    }

    /// Returns whether NodeRestriction is on.
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
