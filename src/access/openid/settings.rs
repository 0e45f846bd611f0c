//! Which tokens of a provider are accepted, and how their claims become a user: the flags `--oidc-*`.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::keys::Algorithm;
use crate::config::Config;
use crate::pki::{PkiError, read_credential};

/// The claim of an address of mail. Unlike others it identifies a user beyond the provider, and has no prefix.
const EMAIL: &str = "email";
/// The prefix that means no prefix.
const NO_PREFIX: &str = "-";

/// Why the flags cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// One of the two is given without the other.
    #[error("--oidc-issuer-url and --oidc-client-id must be given together")]
    Incomplete,
    /// The issuer is not the URL of a server that can be trusted.
    #[error("--oidc-issuer-url {0:?} must be an https URL without query and fragment")]
    Issuer(String),
    /// An algorithm is not supported.
    #[error("--oidc-signing-algs: {0:?} is not supported; supported are {1}")]
    Algorithm(String, String),
    /// A required claim is not written as `KEY=VALUE`.
    #[error("--oidc-required-claim {0:?} must be KEY=VALUE")]
    RequiredClaim(String),
    /// The file of authorities cannot be read.
    #[error(transparent)]
    Authorities(#[from] PkiError),
}

/// The settings of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenIdSettings {
    /// The URL that tokens name as their issuer.
    pub issuer: String,
    /// The audience that tokens must have.
    pub client: String,
    /// The authorities of the provider's certificate, in PEM. Empty for those that this machine trusts.
    pub authorities: Bytes,
    /// The claim with the name of the user.
    pub username_claim: String,
    /// The text before names of users.
    pub username_prefix: String,
    /// The claim with the groups. `None` if no claim has them.
    pub groups_claim: Option<String>,
    /// The text before names of groups.
    pub groups_prefix: String,
    /// Claims that a token must have, with their values.
    pub required: BTreeMap<String, String>,
    /// The algorithms by which tokens may be signed.
    pub algorithms: Vec<Algorithm>,
}

impl OpenIdSettings {
    /// Reads the flags. `None` if no provider is configured.
    ///
    /// # Errors
    /// The flags contradict each other, or the file of authorities cannot be read.
    pub fn of(config: &Config) -> Result<Option<Self>, SettingsError> {
        let (Some(issuer), Some(client)) = (&config.oidc_issuer_url, &config.oidc_client_id) else {
            let neither = config.oidc_issuer_url.is_none() && config.oidc_client_id.is_none();
            return if neither { Ok(None) } else { Err(SettingsError::Incomplete) };
        };
        let is_url = issuer.strip_prefix("https://").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
        if !is_url || issuer.contains(['?', '#']) {
            return Err(SettingsError::Issuer(issuer.clone()));
        }
        let claim = &config.oidc_username_claim;
        let username_prefix = match config.oidc_username_prefix.as_deref() {
            Some(NO_PREFIX) => String::new(),
            Some(prefix) if !prefix.is_empty() => prefix.to_owned(),
            _ if claim == EMAIL => String::new(),
            _ => format!("{issuer}#"),
        };
        let pair = |text: &String| match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            _ => Err(SettingsError::RequiredClaim(text.clone())),
        };
        let algorithm = |name: &String| {
            Algorithm::named(name).ok_or_else(|| SettingsError::Algorithm(name.clone(), Algorithm::names()))
        };
        Ok(Some(Self {
            issuer: issuer.clone(),
            client: client.clone(),
            authorities: config.oidc_ca_file.as_deref().map(read_credential).transpose()?.unwrap_or_default().into(),
            username_claim: claim.clone(),
            username_prefix,
            groups_claim: Some(config.oidc_groups_claim.clone()).filter(|claim| !claim.is_empty()),
            groups_prefix: config.oidc_groups_prefix.clone(),
            required: config.oidc_required_claim.iter().map(pair).collect::<Result<_, _>>()?,
            algorithms: config.oidc_signing_algs.iter().map(algorithm).collect::<Result<_, _>>()?,
        }))
    }
}
