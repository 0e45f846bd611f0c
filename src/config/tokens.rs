//! Options of the tokens of service accounts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{DEFAULT_ISSUER, defaults};

/// Options of the tokens of service accounts.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TokenOptions {
    /// PEM file with the private key (EC P-256 or RSA) that signs service account tokens. By default the server makes
    /// one.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_signing_key_file: Option<PathBuf>,

    /// PEM file with further keys (public or private) that service account tokens may be signed with; may be repeated.
    #[arg(long, value_name = "FILE")]
    #[serde(default)]
    pub service_account_key_file: Vec<PathBuf>,

    /// Issuer that service account tokens name; may be repeated: the first one issues, all are accepted.
    #[arg(long, value_name = "URL", default_values_t = [String::from(DEFAULT_ISSUER)])]
    pub service_account_issuer: Vec<String>,

    /// URL of the keys that the discovery document of the issuer states, instead of one at this server.
    #[arg(long, value_name = "URL")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_jwks_uri: Option<String>,

    /// Audience for which tokens must be issued; may be repeated. By default the issuers.
    #[arg(long, value_name = "AUDIENCE")]
    #[serde(default)]
    pub api_audiences: Vec<String>,

    /// Longest validity, in seconds, of a requested service account token; 0 for no limit.
    ///
    /// From an hour to 2^32 seconds. A request for more gets a token with this validity, and a warning.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub service_account_max_token_expiration_seconds: i64,

    /// Let the tokens of pods be valid for a year, for programs that read theirs once. Kubelets renew the tokens each
    /// hour.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub service_account_extend_token_expiration: bool,
}

impl Default for TokenOptions {
    fn default() -> Self {
        defaults()
    }
}
