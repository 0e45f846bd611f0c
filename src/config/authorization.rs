//! Options of authorization.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{AuthorizationMode, Span, defaults};

/// Options of authorization.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AuthorizationOptions {
    /// Authorizers, which decide what users may do, in order: the first one with an opinion decides.
    #[arg(long, value_name = "MODE,...", value_enum, value_delimiter = ',',
          default_values_t = [AuthorizationMode::Node, AuthorizationMode::Rbac])]
    pub authorization_mode: Vec<AuthorizationMode>,

    /// File that names the authorizers (AuthorizationConfiguration), in place of --authorization-mode. It is read again
    /// when it changes.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_config: Option<PathBuf>,

    /// File with the policies of the mode ABAC, one on each line.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_policy_file: Option<PathBuf>,

    /// Kubeconfig of the webhook that decides in the mode Webhook.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_webhook_config_file: Option<PathBuf>,

    /// Version of the reviews that this webhook gets: v1 or v1beta1.
    #[arg(long, value_name = "VERSION", default_value = "v1beta1")]
    pub authorization_webhook_version: String,

    /// Time for which answers of this webhook that allow a request are kept.
    #[arg(long, value_name = "SPAN", default_value = "5m0s")]
    pub authorization_webhook_cache_authorized_ttl: Span,

    /// Time for which other answers of this webhook are kept.
    #[arg(long, value_name = "SPAN", default_value = "30s")]
    pub authorization_webhook_cache_unauthorized_ttl: Span,
}

impl Default for AuthorizationOptions {
    fn default() -> Self {
        defaults()
    }
}
