//! The rules by which tokens of an issuer are accepted and their claims become a user (KEP-3331). The flags `--oidc-*`
//! or an AuthenticationConfiguration state these rules.

use std::collections::BTreeMap;

use bytes::Bytes;
use flotilla_cel::access::Expression;

use super::keys::Algorithm;
use crate::config::Config;
use crate::outbound::Network;
use crate::pki::{PkiError, read_credential};

/// The claim of an email address. Unlike other claims, it identifies a user beyond the provider and gets no prefix by
/// default.
const EMAIL: &str = "email";
/// The value of `--oidc-username-prefix` that means no prefix.
const NO_PREFIX: &str = "-";

/// The reason why the flags cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Only one of the two flags is given.
    #[error("--oidc-issuer-url and --oidc-client-id must be given together")]
    Incomplete,
    /// The issuer is not the URL of a server that can be trusted.
    #[error("--oidc-issuer-url {0:?} must be an https URL without query and fragment")]
    Issuer(String),
    /// The issuer issues the tokens of service accounts.
    #[error("--oidc-issuer-url {0:?} is the issuer of service account tokens")]
    OwnIssuer(String),
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

/// The source of a part of a user.
#[derive(Debug)]
pub enum Mapping {
    /// The value of a claim, after a prefix.
    Claim {
        /// The claim.
        claim: String,
        /// The text before it; may be empty.
        prefix: String,
    },
    /// The value of an expression of the claims.
    Expression(Expression),
}

/// A rule that must hold for the claims or for the user.
#[derive(Debug)]
pub struct ValidationRule {
    /// The expression.
    pub expression: Expression,
    /// The text of the refusal; may be empty.
    pub message: String,
}

/// The settings of an issuer.
#[derive(Debug)]
pub struct IssuerSettings {
    /// The URL that tokens name as their issuer.
    pub url: String,
    /// The URL of its discovery document. `None` if it follows from the issuer's URL.
    pub discovery_url: Option<String>,
    /// The accepted audiences: a token must have one of them.
    pub audiences: Vec<String>,
    /// The authorities of the provider's certificate, in PEM. Empty for those that this machine trusts.
    pub authorities: Bytes,
    /// The network of the provider.
    pub network: Network,
    /// The algorithms by which tokens may be signed.
    pub algorithms: Vec<Algorithm>,
    /// The name of the user.
    pub username: Mapping,
    /// The groups of the user. `None` if the user gets none.
    pub groups: Option<Mapping>,
    /// The UID of the user. `None` if the user gets none.
    pub uid: Option<Mapping>,
    /// The extra values of the user, by key.
    pub extra: Vec<(String, Expression)>,
    /// Claims that a token must have, with their values.
    pub required: BTreeMap<String, String>,
    /// Rules of the claims.
    pub claim_rules: Vec<ValidationRule>,
    /// Rules of the user.
    pub user_rules: Vec<ValidationRule>,
}

impl IssuerSettings {
    /// Reads the flags. `None` if no issuer is configured.
    ///
    /// # Errors
    /// The flags contradict each other, or the file of authorities cannot be read.
    pub fn of(config: &Config) -> Result<Option<Self>, SettingsError> {
        let (Some(issuer), Some(client)) = (&config.openid.oidc_issuer_url, &config.openid.oidc_client_id) else {
            let neither = config.openid.oidc_issuer_url.is_none() && config.openid.oidc_client_id.is_none();
            return if neither { Ok(None) } else { Err(SettingsError::Incomplete) };
        };
        let is_url = issuer.strip_prefix("https://").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
        if !is_url || issuer.contains(['?', '#']) {
            return Err(SettingsError::Issuer(issuer.clone()));
        }
        if config.tokens.service_account_issuer.contains(issuer) {
            return Err(SettingsError::OwnIssuer(issuer.clone()));
        }
        let claim = &config.openid.oidc_username_claim;
        let prefix = match config.openid.oidc_username_prefix.as_deref() {
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
        let groups = Some(config.openid.oidc_groups_claim.clone()).filter(|claim| !claim.is_empty());
        Ok(Some(Self {
            url: issuer.clone(),
            discovery_url: None,
            audiences: vec![client.clone()],
            authorities: config
                .openid
                .oidc_ca_file
                .as_deref()
                .map(read_credential)
                .transpose()?
                .unwrap_or_default()
                .into(),
            network: Network::Direct,
            algorithms: config.openid.oidc_signing_algs.iter().map(algorithm).collect::<Result<_, _>>()?,
            username: Mapping::Claim { claim: claim.clone(), prefix },
            groups: groups.map(|claim| Mapping::Claim { claim, prefix: config.openid.oidc_groups_prefix.clone() }),
            uid: None,
            extra: Vec::new(),
            required: config.openid.oidc_required_claim.iter().map(pair).collect::<Result<_, _>>()?,
            claim_rules: Vec::new(),
            user_rules: Vec::new(),
        }))
    }
}
