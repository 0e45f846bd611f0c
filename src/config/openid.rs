//! Options of OpenID Connect: the provider whose tokens the server accepts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::defaults;

/// Options of OpenID Connect: the provider whose tokens the server accepts.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OpenIdOptions {
    /// The OpenID Connect provider whose tokens are accepted: the https URL that they name as their issuer.
    #[arg(long, value_name = "URL")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc_issuer_url: Option<String>,

    /// The audience that tokens of the provider must have.
    #[arg(long, value_name = "ID")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc_client_id: Option<String>,

    /// PEM file with authorities of the provider's certificate; by default those that this machine trusts.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc_ca_file: Option<PathBuf>,

    /// The claim that holds the name of the user.
    #[arg(long, value_name = "CLAIM", default_value = "sub")]
    pub oidc_username_claim: String,

    /// Prefix of the names of users; - for none. By default the issuer and #, but none for the claim email.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc_username_prefix: Option<String>,

    /// The claim that holds the groups of the user: a list of strings, or one string.
    #[arg(long, value_name = "CLAIM", default_value = "")]
    #[serde(default)]
    pub oidc_groups_claim: String,

    /// Prefix of the names of groups.
    #[arg(long, value_name = "TEXT", default_value = "")]
    #[serde(default)]
    pub oidc_groups_prefix: String,

    /// Claims that a token of the provider must have, with their values; may be repeated.
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',')]
    #[serde(default)]
    pub oidc_required_claim: Vec<String>,

    /// Algorithms by which tokens of the provider may be signed: RS256, RS384, RS512, PS256, PS384, PS512, ES256,
    /// ES384.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "RS256")]
    pub oidc_signing_algs: Vec<String>,
}

impl Default for OpenIdOptions {
    fn default() -> Self {
        defaults()
    }
}
