//! Reads the files that flags name.
//!
//! They are read before anything else, so that a missing or invalid file is reported as a wrong configuration and the
//! data directory stays unchanged.

use std::error::Error;
use std::sync::Arc;

use crate::access::configured::{Authentication, Authorizers};
use crate::access::tokens::{KeySet, SigningKey};
use crate::access::{Chain, FrontProxy, TokenFile, TokenWebhook};
use crate::admission::Configuration;
use crate::audit::{self, AuditError};
use crate::config::{Config, ConfigError};
use crate::encryption::StorageKeys;
use crate::kinds::admission::LostNodes;
use crate::outbound::{Egress, Outbound};
use crate::pki::{client_authorities, serving_certificate};
use crate::prometheus::Meter;

/// The content of these files. Certificates are read again when they are used, since they may be replaced while a
/// server runs.
#[derive(Debug)]
pub struct FlagFiles {
    /// Static tokens.
    pub tokens: TokenFile,
    /// The front proxies that may name the user of a request.
    pub proxy: Option<Arc<FrontProxy>>,
    /// The key that signs tokens of service accounts.
    pub signing: Option<SigningKey>,
    /// Further keys that verify tokens of service accounts.
    pub keys: KeySet,
    /// The configuration of admission plugins.
    pub admission: Configuration,
    /// The issuers of tokens, and the requests that need no credentials.
    pub authentication: Authentication,
    /// The authorizers as they are configured.
    pub authorizers: Authorizers,
    /// The authorizers in the order in which they are asked.
    pub chain: Chain,
    /// The webhook that is asked about tokens.
    pub token_webhook: Option<TokenWebhook>,
    /// Makes requests to other servers, through the proxies that are configured.
    pub outbound: Outbound,
    /// The keys that encrypt the stored data.
    pub storage_keys: Option<StorageKeys>,
    /// The policy, the log and the webhook of auditing.
    pub audit: Option<audit::Prepared>,
}

impl FlagFiles {
    /// Reads all files. `meter` measures the webhooks that they name.
    ///
    /// # Errors
    /// A file cannot be read, or its content is invalid.
    pub fn read(config: &Config, meter: &Arc<Meter>) -> Result<Self, ConfigError> {
        if let Some((certificate, key)) = config.serving_files() {
            serving_certificate(certificate, key).map_err(wrong("tls-cert-file"))?;
        }
        if let Some((certificate, key)) = config.kubelet_files() {
            serving_certificate(certificate, key).map_err(wrong("kubelet-client-certificate"))?;
        }
        if let Some((certificate, key)) = config.proxy_files() {
            serving_certificate(certificate, key).map_err(wrong("proxy-client-cert-file"))?;
        }
        if let Some(path) = &config.kubelet_certificate_authority {
            client_authorities(path).map_err(wrong("kubelet-certificate-authority"))?;
        }
        if let Some(path) = &config.client_ca_file {
            client_authorities(path).map_err(wrong("client-ca-file"))?;
        }
        let signing = config.tokens.service_account_signing_key_file.as_deref().map(SigningKey::read).transpose();
        let keys = KeySet::read(&config.tokens.service_account_key_file);
        let admission = config.admission.admission_control_config_file.as_deref().map(Configuration::read).transpose();
        let mut admission = admission.map_err(wrong("admission-control-config-file"))?.unwrap_or_default();
        admission.lost_nodes = LostNodes {
            not_ready: config.admission.default_not_ready_toleration_seconds,
            unreachable: config.admission.default_unreachable_toleration_seconds,
        };
        admission.suffices(&config.admission.enable_admission_plugins).map_err(wrong("enable-admission-plugins"))?;
        let storage_keys = config.encryption_provider_config.as_deref().map(StorageKeys::read).transpose();
        let egress = config.egress_selector_config_file.as_deref().map(Egress::read).transpose();
        let egress = egress.map_err(wrong("egress-selector-config-file"))?.unwrap_or_default();
        let outbound = Outbound::through(egress);
        let tokens = config.token_auth_file.as_deref().map(TokenFile::open).transpose();
        let authentication = Authentication::of(config, outbound.clone());
        let token_webhook = TokenWebhook::of(config, &outbound, meter);
        let authorizers = Authorizers::of(config, outbound.clone(), Arc::clone(meter));
        let authorizers = authorizers.map_err(wrong("authorization-config"))?;
        Ok(Self {
            proxy: FrontProxy::from_config(config).map_err(wrong("requestheader-client-ca-file"))?,
            tokens: tokens.map_err(wrong("token-auth-file"))?.unwrap_or_default(),
            signing: signing.map_err(wrong("service-account-signing-key-file"))?,
            keys: keys.map_err(wrong("service-account-key-file"))?,
            admission,
            authentication: authentication.map_err(wrong("authentication-config or oidc-issuer-url"))?,
            chain: authorizers.chain().map_err(wrong("authorization-config or authorization-webhook-config-file"))?,
            authorizers,
            token_webhook: token_webhook.map_err(wrong("authentication-token-webhook-config-file"))?,
            outbound,
            storage_keys: storage_keys.map_err(wrong("encryption-provider-config"))?,
            audit: audit::Prepared::of(&config.audit).map_err(audit_error)?,
        })
    }
}

fn audit_error(error: AuditError) -> ConfigError {
    let option = match error {
        AuditError::Policy(_) => "audit-policy-file",
        AuditError::Log { .. } => "audit-log-path",
        AuditError::Webhook(_) => "audit-webhook-config-file",
    };
    wrong(option)(error)
}

/// Returns a function that makes the error about the file of an option.
fn wrong<E: Into<Box<dyn Error + Send + Sync>>>(option: &'static str) -> impl Fn(E) -> ConfigError {
    move |source| ConfigError::FlagFile { option, source: source.into() }
}
