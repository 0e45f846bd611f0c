//! Options of admission plugins.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::defaults;
use crate::kinds::admission::LostNodes;

/// Options of admission plugins.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AdmissionOptions {
    /// Admission plugins to use besides those that are on by default: AlwaysDeny, AlwaysPullImages,
    /// DenyServiceExternalIPs, EventRateLimit, ExtendedResourceToleration, ImagePolicyWebhook,
    /// LimitPodHardAntiAffinityTopology, NamespaceAutoProvision, NamespaceExists, NodeRestriction,
    /// OwnerReferencesPermissionEnforcement, PodNodeSelector, PodTolerationRestriction.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[serde(default)]
    pub enable_admission_plugins: Vec<String>,

    /// Admission plugins to turn off that are on by default.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[serde(default)]
    pub disable_admission_plugins: Vec<String>,

    /// Seconds for which pods stay on nodes that are not ready, unless the pods state a time (plugin
    /// DefaultTolerationSeconds).
    #[arg(long, value_name = "SECONDS", default_value_t = LostNodes::default().not_ready, allow_negative_numbers = true)]
    pub default_not_ready_toleration_seconds: i64,

    /// Seconds for which pods stay on nodes that are not reachable, unless the pods state a time (plugin
    /// DefaultTolerationSeconds).
    #[arg(long, value_name = "SECONDS", default_value_t = LostNodes::default().unreachable, allow_negative_numbers = true)]
    pub default_unreachable_toleration_seconds: i64,

    /// File with configurations of admission plugins (AdmissionConfiguration of apiserver.config.k8s.io).
    ///
    /// EventRateLimit, ImagePolicyWebhook, PodNodeSelector, PodSecurity, PodTolerationRestriction, ResourceQuota, and
    /// the credentials of MutatingAdmissionWebhook and ValidatingAdmissionWebhook are configured in it. The server does
    /// not start with settings that it does not support.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_control_config_file: Option<PathBuf>,
}

impl Default for AdmissionOptions {
    fn default() -> Self {
        defaults()
    }
}
