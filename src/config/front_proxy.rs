//! Options of authenticating proxies, which state the user of a request in headers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::defaults;

/// Options of authenticating proxies, which state the user of a request in headers.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FrontProxyOptions {
    /// PEM file with authorities of the certificates of proxies, which state the user in headers.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requestheader_client_ca_file: Option<PathBuf>,

    /// Common names that the certificates of proxies may have; by default any.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[serde(default)]
    pub requestheader_allowed_names: Vec<String>,

    /// Headers in which proxies state the user's name; the first one with a value counts.
    #[arg(long, value_name = "HEADER,...", value_delimiter = ',')]
    #[serde(default)]
    pub requestheader_username_headers: Vec<String>,

    /// Headers in which proxies state the user's UID; the first one with a value counts.
    #[arg(long, value_name = "HEADER,...", value_delimiter = ',')]
    #[serde(default)]
    pub requestheader_uid_headers: Vec<String>,

    /// Headers in which proxies state the user's groups.
    #[arg(long, value_name = "HEADER,...", value_delimiter = ',')]
    #[serde(default)]
    pub requestheader_group_headers: Vec<String>,

    /// Prefixes of the headers in which proxies state extra attributes of the user.
    #[arg(long, value_name = "PREFIX,...", value_delimiter = ',')]
    #[serde(default)]
    pub requestheader_extra_headers_prefix: Vec<String>,
}

impl Default for FrontProxyOptions {
    fn default() -> Self {
        defaults()
    }
}
