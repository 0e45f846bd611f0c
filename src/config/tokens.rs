//! Options of the tokens of service accounts.

use serde::{Deserialize, Serialize};

use super::defaults;

/// Options of the tokens of service accounts.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TokenOptions {
    /// Longest validity, in seconds, of a requested service account token; 0 for no limit.
    ///
    /// From an hour to 2^32 seconds. A request for more gets a token with this validity, and a warning.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub service_account_max_token_expiration_seconds: i64,

    /// Let the tokens of pods, which kubelets renew each hour, be valid for a year, for programs that read theirs once.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub service_account_extend_token_expiration: bool,
}

impl Default for TokenOptions {
    fn default() -> Self {
        defaults()
    }
}
