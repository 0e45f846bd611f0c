//! Kubeconfig files: the address of the server and the credentials of the client.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// The reason why a kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is not a kubeconfig.
    #[error("invalid kubeconfig: {0}")]
    Yaml(#[from] serde_norway::Error),
    /// The file refers to an entry that it does not have.
    #[error("the kubeconfig has no {kind} {name:?}")]
    Missing {
        /// The kind of the entry: context, cluster or user.
        kind: &'static str,
        /// The name of the entry.
        name: String,
    },
    /// A value is not base64.
    #[error("invalid base64 in {0}")]
    Base64(&'static str),
    /// The form of the server's address is not supported.
    #[error("the server's address {0:?} is not http(s)://HOST[:PORT]")]
    Address(String),
}

/// The address of the server and the credentials of the client.
#[derive(Debug, Clone)]
pub struct Target {
    /// Whether the server uses TLS.
    pub tls: bool,
    /// Host name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// PEM certificates of the authority that must have signed the server's certificate. `None` if it is not checked.
    pub ca: Option<Vec<u8>>,
    /// The PEM certificate chain and the PEM key of the client.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The bearer token of the client.
    pub token: Option<String>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    clusters: Vec<Named<Cluster>>,
    #[serde(default)]
    users: Vec<Named<User>>,
    #[serde(default)]
    contexts: Vec<Named<Context>>,
    #[serde(default, rename = "current-context")]
    current: String,
}

#[derive(Deserialize)]
struct Named<T> {
    name: String,
    #[serde(alias = "cluster", alias = "user", alias = "context")]
    value: T,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::Read { path: path.into(), source })
}

/// Returns the inline data or else the contents of the file. A relative path starts at the kubeconfig's directory.
fn data(
    inline: Option<&str>,
    path: Option<&Path>,
    directory: &Path,
    what: &'static str,
) -> Result<Option<Vec<u8>>, Error> {
    match (inline, path) {
        (Some(text), _) => STANDARD.decode(text.trim()).map(Some).map_err(|_| Error::Base64(what)),
        (None, Some(path)) => read(&directory.join(path)).map(Some),
        (None, None) => Ok(None),
    }
}

fn find<T>(items: Vec<Named<T>>, kind: &'static str, name: &str) -> Result<T, Error> {
    let found = items.into_iter().find(|item| item.name == name);
    found.map(|item| item.value).ok_or_else(|| Error::Missing { kind, name: name.into() })
}

/// Splits `https://host:port` into TLS, host and port. `None` if the text has another form.
fn address(server: &str) -> Option<(bool, String, u16)> {
    let (tls, rest) = match server.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, server.strip_prefix("http://")?),
    };
    let authority = rest.trim_end_matches('/');
    if authority.contains('/') {
        return None;
    }
    let default = if tls { 443 } else { 80 };
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            Some((tls, host.trim_matches(['[', ']']).into(), port.parse().ok()?))
        }
        _ => Some((tls, authority.trim_matches(['[', ']']).into(), default)),
    }
}

/// Reads the current context of a kubeconfig file.
///
/// # Errors
/// Fails if the file cannot be read, or is not a usable kubeconfig.
pub fn load(path: &Path) -> Result<Target, Error> {
    let text = read(path)?;
    parse(&text, path.parent().unwrap_or(Path::new(".")))
}

fn parse(text: &[u8], directory: &Path) -> Result<Target, Error> {
    let file: File = serde_norway::from_slice(text)?;
    let context = find(file.contexts, "context", &file.current)?;
    let cluster = find(file.clusters, "cluster", &context.cluster)?;
    let user = find(file.users, "user", &context.user)?;
    let (tls, host, port) = address(&cluster.server).ok_or(Error::Address(cluster.server))?;
    let ca = data(
        cluster.certificate_authority_data.as_deref(),
        cluster.certificate_authority.as_deref(),
        directory,
        "certificate-authority-data",
    )?;
    let certificate = data(
        user.client_certificate_data.as_deref(),
        user.client_certificate.as_deref(),
        directory,
        "client-certificate-data",
    )?;
    let key = data(user.client_key_data.as_deref(), user.client_key.as_deref(), directory, "client-key-data")?;
    let token = match (user.token, user.token_file) {
        (None, Some(path)) => Some(String::from_utf8_lossy(&read(&directory.join(path))?).trim().to_owned()),
        (token, _) => token,
    };
    Ok(Target {
        tls,
        host,
        port,
        ca: ca.filter(|_| !cluster.insecure_skip_tls_verify),
        identity: certificate.zip(key),
        token,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_context_is_read() {
        let text = br#"
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: Y2E=}}]
users:
- name: u
  user: {client-certificate-data: Y3J0, client-key-data: a2V5}
- {name: t, user: {token: secret}}
contexts: [{name: x, context: {cluster: c, user: u}}, {name: y, context: {cluster: c, user: t}}]
current-context: x
"#;
        let target = parse(text, Path::new(".")).unwrap();
        assert_eq!((target.tls, target.host.as_str(), target.port), (true, "127.0.0.1", 6443));
        assert_eq!(target.ca.as_deref(), Some(&b"ca"[..]));
        assert_eq!(target.identity, Some((b"crt".to_vec(), b"key".to_vec())));
        let other = String::from_utf8_lossy(text).replace("current-context: x", "current-context: y");
        assert_eq!(parse(other.as_bytes(), Path::new(".")).unwrap().token.as_deref(), Some("secret"));
        let none = String::from_utf8_lossy(text).replace("current-context: x", "current-context: z");
        assert!(matches!(parse(none.as_bytes(), Path::new(".")), Err(Error::Missing { kind: "context", .. })));
    }

    #[test]
    fn addresses_are_split() {
        for (text, want) in [
            ("https://a.example", Some((true, "a.example".to_owned(), 443))),
            ("http://[::1]:80/", Some((false, "::1".to_owned(), 80))),
            ("https://[fd00::1]", Some((true, "fd00::1".to_owned(), 443))),
            ("ftp://a", None),
            ("https://a/prefix", None),
        ] {
            assert_eq!(address(text), want, "{text}");
        }
    }
}
