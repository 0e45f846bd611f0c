//! Certificates and keys: created on first start, stored in the data directory, renewed before they expire.
//!
//! Several servers may share authorities with their keys and the key of service accounts. These files are created
//! atomically, so that the first writer wins and all others use its file: any number of servers may start on one
//! directory at once. A key is created once and stays; a certificate can always be issued again from its key.

mod authority;
mod client;
mod files;
mod kubeconfig;
mod kubeconfig_file;
mod leaf;
mod named;
mod peer;
mod requested;
mod serving;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::config::{Config, NamedKey};
use crate::rules::names::MASTERS;

pub use authority::Authority;
pub use client::{ClientRoots, Untrusted};
pub use files::{publish_new, read_credential, replace};
pub use kubeconfig::kubeconfig;
pub use kubeconfig_file::{CurrentContext, KubeconfigError, KubeconfigFile};
pub use leaf::{Leaf, LeafSpec, Usage};
pub use named::NamedCertificates;
pub use peer::PeerPki;
pub use requested::RequestError;
pub use serving::{ServingCertificate, provider};

/// File name of the serving certificate and its key, without extension.
const SERVING: &str = "apiserver";

/// User of the administrator's kubeconfig.
pub const ADMIN_USER: &str = "kubernetes-admin";

/// The user of this server in its client certificate when it forwards requests.
pub const PROXY_USER: &str = "front-proxy";

/// The reason why certificates cannot be loaded or created.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file cannot be read or written.
    #[error("cannot use {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The failure.
        source: std::io::Error,
    },
    /// A file has the wrong content; nothing is overwritten.
    #[error("{path}: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A certificate could not be issued.
    #[error("cannot make the certificate of {0:?}")]
    Generate(String, #[source] rcgen::Error),
    /// The TLS library refuses a certificate, a key or a setting.
    #[error("tls: {0}")]
    Tls(String),
}

impl PkiError {
    fn damaged(path: &Path, why: impl std::fmt::Display) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.to_string() }
    }
}

/// Which certificates to create, and which ones are configured.
#[derive(Debug, Clone)]
pub struct PkiOptions {
    /// Directory of authorities, which several servers may share.
    pub dir: PathBuf,
    /// Directory of the certificates that are this server's own.
    pub own_dir: PathBuf,
    /// Names and addresses under which the server is reached.
    pub names: Vec<String>,
    /// Directory of the serving certificate. `None` means `own_dir`.
    pub serving_dir: Option<PathBuf>,
    /// Configured serving certificate and key, instead of created ones.
    pub serving: Option<(PathBuf, PathBuf)>,
    /// Configured serving certificates for other names.
    pub named: Vec<NamedKey>,
    /// Further authorities of client certificates.
    pub client_ca_file: Option<PathBuf>,
}

impl PkiOptions {
    /// Returns the options of a server that creates everything in one directory.
    pub fn in_one(dir: &Path, names: &[&str]) -> Self {
        let names = names.iter().copied().map(String::from).collect();
        let (dir, own_dir) = (dir.to_owned(), dir.to_owned());
        Self { dir, own_dir, names, serving_dir: None, serving: None, named: Vec::new(), client_ca_file: None }
    }

    /// Returns the options of a configuration for a server that listens on `listen`.
    pub fn from_config(config: &Config, listen: IpAddr) -> Self {
        let mut names: Vec<String> = [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ]
        .map(String::from)
        .into();
        names.extend(host_name());
        let service_addresses = config.service_cluster_ip_range.iter().filter_map(|range| range.nth(1));
        let loopback = [IpAddr::from([127, 0, 0, 1]), IpAddr::from(std::net::Ipv6Addr::LOCALHOST)];
        let own = [listen, config.advertised()].into_iter().filter(|ip| !ip.is_unspecified());
        names.extend(loopback.into_iter().chain(own).chain(service_addresses).map(|ip| ip.to_string()));
        names.extend(config.tls.tls_san.iter().cloned());
        names.sort();
        names.dedup();
        let serving = config.serving_files().map(|(cert, key)| (cert.to_owned(), key.to_owned()));
        let (dir, own_dir) = (config.pki_dir(), config.own_pki_dir());
        let serving_dir = config.tls.cert_dir.clone();
        let (named, client_ca_file) = (config.tls.tls_sni_cert_key.clone(), config.client_ca_file.clone());
        Self { dir, own_dir, names, serving_dir, serving, named, client_ca_file }
    }
}

/// The files of authorities that the servers of a cluster share, besides the key of service accounts.
pub const SHARED_FILES: [&str; 6] =
    ["ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "peer-ca.crt", "peer-ca.key"];

/// Creates the authorities that the servers of a cluster share, if they are missing, and a kubeconfig with all rights
/// for a server at a URL.
///
/// # Errors
/// When a file cannot be read or written, or holds something other than it should.
pub fn make_shared(dir: &Path, kubeconfig: &Path, server: &str) -> Result<(), PkiError> {
    let options = PkiOptions::in_one(dir, &[]);
    PeerPki::open(dir, "")?;
    Authority::open(dir, "front-proxy-ca", "flotilla-front-proxy-ca")?;
    let authority = Authority::open(dir, "ca", "flotilla-ca")?;
    write_admin_kubeconfig(&options, &authority, kubeconfig, server)
}

fn write_admin_kubeconfig(
    options: &PkiOptions,
    authority: &Authority,
    path: &Path,
    server: &str,
) -> Result<(), PkiError> {
    let spec = LeafSpec { common_name: ADMIN_USER, organization: Some(MASTERS), names: &[], usage: Usage::Client };
    let leaf = Leaf::open(&options.own_dir, "admin", authority, &spec)?;
    let trusted = match &options.serving {
        // Any authority may have issued a configured certificate: trust its chain besides our own authority.
        Some((cert, _)) => format!("{}{}", authority.pem(), read_credential(cert)?),
        None => authority.pem().to_owned(),
    };
    let text = kubeconfig("flotilla", server, &trusted, ADMIN_USER, &leaf);
    files::replace_if_changed(path, text.as_bytes(), files::PRIVATE)
}

/// Returns the name of this machine. Returns `None` if it cannot be part of a certificate.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_lowercase();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (!name.is_empty() && name.len() <= 253 && name.chars().all(fits)).then_some(name)
}

/// The certificates of a server.
#[derive(Debug)]
pub struct Pki {
    options: PkiOptions,
    authority: Arc<Authority>,
    proxy_authority: Authority,
    serving: Arc<ServingCertificate>,
    named: Arc<NamedCertificates>,
    roots: Arc<ClientRoots>,
}

impl Pki {
    /// Loads the existing certificates, and creates those that are missing or about to expire.
    ///
    /// # Errors
    /// When a file cannot be read or written, or holds something other than it should.
    pub fn open(mut options: PkiOptions) -> Result<Self, PkiError> {
        files::make_dir(&options.dir)?;
        files::make_dir(&options.own_dir)?;
        let authority = Arc::new(Authority::open(&options.dir, "ca", "flotilla-ca")?);
        let proxy_authority = Authority::open(&options.dir, "front-proxy-ca", "flotilla-front-proxy-ca")?;
        options.serving = options.serving.take().or_else(|| foreign(options.serving_dir.as_deref()?, &authority));
        let mut trusted = vec![authority.certificate().clone()];
        if let Some(path) = &options.client_ca_file {
            trusted.extend(client_authorities(path)?);
        }
        let roots = Arc::new(ClientRoots::new(trusted)?);
        let serving = Arc::new(ServingCertificate::new(Self::serving_key(&options, &authority)?));
        let named = Arc::new(NamedCertificates::read(Arc::clone(&serving), &options.named)?);
        Ok(Self { options, authority, proxy_authority, serving, named, roots })
    }

    fn serving_key(options: &PkiOptions, authority: &Authority) -> Result<rustls::sign::CertifiedKey, PkiError> {
        if let Some((cert, key)) = &options.serving {
            return serving_certificate(cert, key);
        }
        let spec =
            LeafSpec { common_name: "kube-apiserver", organization: None, names: &options.names, usage: Usage::Server };
        let dir = options.serving_dir.as_deref().unwrap_or(&options.own_dir);
        files::make_dir(dir)?;
        let leaf = Leaf::open(dir, SERVING, authority, &spec)?;
        serving::certified(vec![leaf.certificate().clone()], &leaf.private_key())
            .map_err(|e| PkiError::Tls(e.to_string()))
    }

    /// Returns the TLS configuration of the server: TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, optional client certificates,
    /// resumption of sessions. The handshake accepts any client certificate; [`ClientRoots`] verifies it afterwards, so
    /// that an untrusted one is answered with 401 as in the reference. The handshake names the authorities of clients
    /// and of proxies.
    ///
    /// # Errors
    /// If the cryptography provider does not support a setting.
    pub fn server_config(&self, proxies: Option<&ClientRoots>, config: &Config) -> Result<ServerConfig, PkiError> {
        let mut hints = self.roots.subjects();
        hints.extend(proxies.map(ClientRoots::subjects).unwrap_or_default());
        serving::server_config(Arc::clone(&self.named), hints, &config.tls)
    }

    /// Returns the authorities of client certificates.
    pub fn client_roots(&self) -> Arc<ClientRoots> {
        Arc::clone(&self.roots)
    }

    /// Returns the authority of this cluster.
    pub fn authority(&self) -> Arc<Authority> {
        Arc::clone(&self.authority)
    }

    /// Returns the certificate of the authority that issued the serving certificate, in PEM: clients must trust it.
    pub fn authority_pem(&self) -> &str {
        self.authority.pem()
    }

    /// Returns the authorities of client certificates in PEM, for other servers that verify them.
    pub fn client_authorities_pem(&self) -> String {
        self.roots.pem()
    }

    /// Returns the certificate of the authority behind the client certificate for aggregated API servers, in PEM.
    pub fn proxy_authority_pem(&self) -> &str {
        self.proxy_authority.pem()
    }

    /// Returns the client certificate with which this server forwards requests to an aggregated API server.
    ///
    /// # Errors
    /// When a file cannot be read or written, or holds something other than it should.
    pub fn proxy_client(&self) -> Result<Leaf, PkiError> {
        let spec = LeafSpec { common_name: PROXY_USER, organization: None, names: &[], usage: Usage::Client };
        Leaf::open(&self.options.own_dir, "front-proxy-client", &self.proxy_authority, &spec)
    }

    /// Writes the administrator's kubeconfig with a certificate of group [`MASTERS`].
    ///
    /// `server` is the URL of the API, as `https://127.0.0.1:6443`.
    ///
    /// # Errors
    /// When a file cannot be read or written, or holds something other than it should.
    pub fn write_admin_kubeconfig(&self, path: &Path, server: &str) -> Result<(), PkiError> {
        write_admin_kubeconfig(&self.options, &self.authority, path, server)
    }

    /// Reads configured certificates again and renews created ones; new connections use the result.
    ///
    /// # Errors
    /// As [`Pki::open`]; the certificate in use stays.
    pub fn refresh(&self) -> Result<(), PkiError> {
        self.serving.replace(Self::serving_key(&self.options, &self.authority)?);
        self.named.refresh(&self.options.named)
    }

    /// Returns when each certificate expires, in seconds of Unix time, with its purpose.
    pub fn expirations(&self) -> impl Iterator<Item = (&'static str, i64)> {
        let authorities = [("authority", &*self.authority), ("front-proxy-authority", &self.proxy_authority)];
        let authorities = authorities.map(|(name, authority)| (name, authority.not_after().unix_timestamp()));
        self.serving.expires().map(|at| ("serving", at)).into_iter().chain(authorities)
    }

    /// Returns the directory of authorities.
    pub fn dir(&self) -> &Path {
        &self.options.dir
    }
}

/// Returns the files of a serving certificate in a directory and of its key, if another authority issued the
/// certificate. Returns `None` otherwise.
fn foreign(dir: &Path, authority: &Authority) -> Option<(PathBuf, PathBuf)> {
    let file = |kind| dir.join(format!("{SERVING}.{kind}"));
    let path = file("crt");
    let pem = files::read_existing(&path).ok()??;
    let own = certificates(&path, &pem).ok().is_some_and(|chain| {
        X509Certificate::from_der(&chain[0]).is_ok_and(|(_, certificate)| authority.issued(&certificate))
    });
    (!own).then(|| (path, file("key")))
}

/// Reads a certificate with its intermediates from one file, and its key from another.
///
/// # Errors
/// If a file cannot be read or has the wrong content, or the two do not belong together.
pub fn serving_certificate(cert: &Path, key: &Path) -> Result<rustls::sign::CertifiedKey, PkiError> {
    let chain = certificates(cert, &read_credential(cert)?)?;
    let pem = read_credential(key)?;
    let parsed = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|e| PkiError::damaged(key, e))?;
    serving::certified(chain, &parsed).map_err(|e| PkiError::damaged(cert, e))
}

/// Reads the certificates of authorities in a file.
///
/// # Errors
/// If the file cannot be read, or a certificate in it cannot be that of an authority.
pub fn client_authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, PkiError> {
    let authorities = certificates(path, &read_credential(path)?)?;
    ClientRoots::new(authorities.clone()).map_err(|error| PkiError::damaged(path, error))?;
    Ok(authorities)
}

/// Returns all certificates in a PEM text. Fails if there is none.
fn certificates(path: &Path, pem: &str) -> Result<Vec<CertificateDer<'static>>, PkiError> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match parsed {
        Ok(list) if list.is_empty() => Err(PkiError::damaged(path, "no certificate in it")),
        Ok(list) => Ok(list),
        Err(error) => Err(PkiError::damaged(path, error)),
    }
}

#[cfg(test)]
#[path = "pki_tests.rs"]
mod tests;
