//! Options of requests and their answers.

use serde::{Deserialize, Serialize};

use super::defaults;

/// Options of requests and their answers.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RequestOptions {
    /// Seconds that a request other than a watch may take; after that it gets 504.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub request_timeout_seconds: u64,

    /// Shortest duration, in seconds, of a watch without `timeoutSeconds`; the longest is twice that.
    ///
    /// With 0 such a watch lasts as long as its client wants.
    #[arg(long, value_name = "SECONDS", default_value_t = 1_800)]
    pub min_request_timeout: u64,

    /// Part of the requests of an HTTP/2 client after which it is asked to connect anew: from 0 (never) to 0.02.
    ///
    /// The client finishes its requests, and its next connection may reach another member behind a load balancer.
    #[arg(long, value_name = "PART", default_value_t = 0.0)]
    pub goaway_chance: f64,

    /// Regular expressions of the origins whose scripts may read answers in browsers (CORS); by default none may.
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    #[serde(default)]
    pub cors_allowed_origins: Vec<String>,

    /// Directives of the header `Strict-Transport-Security` (RFC 6797); by default it is not sent.
    #[arg(long, value_name = "DIRECTIVE,...", value_delimiter = ',')]
    #[serde(default)]
    pub strict_transport_security_directives: Vec<String>,
}

impl Default for RequestOptions {
    fn default() -> Self {
        defaults()
    }
}
