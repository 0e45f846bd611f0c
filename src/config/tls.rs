//! Options of TLS.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{TlsVersion, defaults};
use crate::text_options::as_text;

/// Options of TLS.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TlsOptions {
    /// PEM file with the serving certificate, followed by its intermediates. By default the server makes one.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert_file: Option<PathBuf>,

    /// PEM file with the key of --tls-cert-file.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_private_key_file: Option<PathBuf>,

    /// Directory of the serving certificate and its key, `apiserver.crt` and `apiserver.key`, without --tls-cert-file.
    ///
    /// The server makes missing files. By default the directory `pki` in the data directory.
    #[arg(long, value_name = "DIR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_dir: Option<PathBuf>,

    /// Oldest version of TLS to accept; never older than 1.2.
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = TlsVersion::VersionTLS12)]
    pub tls_min_version: TlsVersion,

    /// Cipher suites of TLS 1.2 to offer, by their names; by default all safe ones.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[serde(default)]
    pub tls_cipher_suites: Vec<String>,

    /// Groups of key exchange to offer, by Go's numbers (23 is P-256, 24 P-384, 29 X25519); by default all.
    #[arg(long, value_name = "NUMBER,...", value_delimiter = ',')]
    #[serde(default)]
    pub tls_curve_preferences: Vec<u16>,

    /// Further certificate and key for clients that ask for other names; may be repeated.
    ///
    /// As `a.crt,a.key`, for the names in the certificate, or `a.crt,a.key:example.com,*.example` for these names. If
    /// several fit, an exact name comes before one with `*`, and an earlier flag before a later one.
    #[arg(long, value_name = "CERT,KEY[:NAME,...]")]
    #[serde(default)]
    pub tls_sni_cert_key: Vec<NamedKey>,

    /// Serve HTTP/1.1 only.
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub disable_http2_serving: bool,

    /// Further name or address for the certificate that the server makes for itself; may be repeated.
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub tls_san: Vec<String>,
}

impl Default for TlsOptions {
    fn default() -> Self {
        defaults()
    }
}

/// The files of a certificate and its key, and the host names for which the server presents the certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NamedKey {
    /// PEM file with the certificate, followed by its intermediates.
    pub certificate: PathBuf,
    /// PEM file with its key.
    pub key: PathBuf,
    /// Host names, in which `*` may stand for the first label. An empty list means the names in the certificate.
    pub names: Vec<String>,
}

/// The reason why a text does not name a certificate, its key and names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NamedKeyError {
    /// The part before the names is not two paths.
    #[error("expected comma separated certificate and key file paths")]
    Files,
    /// A colon with nothing behind it.
    #[error("empty names list is not allowed")]
    Names,
}

impl FromStr for NamedKey {
    type Err = NamedKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (files, names) = match text.split_once(':') {
            Some((_, names)) if names.trim().is_empty() => return Err(NamedKeyError::Names),
            Some((files, names)) => (files, names.split(',').map(|name| name.trim().to_owned()).collect()),
            None => (text, Vec::new()),
        };
        match files.split(',').collect::<Vec<_>>()[..] {
            [certificate, key] => Ok(Self { certificate: certificate.trim().into(), key: key.trim().into(), names }),
            _ => Err(NamedKeyError::Files),
        }
    }
}

impl fmt::Display for NamedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.certificate.display(), self.key.display())?;
        if self.names.is_empty() { Ok(()) } else { write!(f, ":{}", self.names.join(",")) }
    }
}

as_text!(NamedKey);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_keys_are_two_files_and_names() {
        let parsed: NamedKey = "a.crt, a.key : x.example,*.y ".parse().unwrap();
        assert_eq!(parsed.names, ["x.example", "*.y"]);
        assert_eq!(parsed.to_string(), "a.crt,a.key:x.example,*.y");
        assert_eq!("a,b".parse::<NamedKey>().unwrap().names, [""; 0]);
        assert_eq!("a".parse::<NamedKey>(), Err(NamedKeyError::Files));
        assert_eq!("a,b,c:d".parse::<NamedKey>(), Err(NamedKeyError::Files));
        assert_eq!("a,b:".parse::<NamedKey>(), Err(NamedKeyError::Names));
    }
}
