//! Webhooks that authenticate tokens and authorize requests (Kubernetes documentation, "Webhook Token Authentication"
//! and "Webhook Mode"). Kubeconfigs name them.

mod access;
mod asked_once;
pub mod conditions;
mod question;
mod token;

pub use access::{AccessWebhook, AccessWebhookSettings};
pub use token::{TokenAnswer, TokenWebhook};

/// The reason why a webhook cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] crate::pki::KubeconfigError),
    /// The version of the reviews of an authentication webhook is unknown.
    #[error("unsupported authentication webhook version {0:?}, supported versions are \"v1\", \"v1beta1\"")]
    TokenVersion(String),
    /// The version of the reviews of an authorization webhook is unknown.
    #[error("unsupported webhook authorizer version {0:?}, supported versions are \"v1\", \"v1beta1\"")]
    AccessVersion(String),
    /// A match condition does not compile.
    #[error("{0}")]
    Condition(String),
}
