//! The serving certificate, which can be replaced while the server runs, and settings of TLS.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, ServerSessionMemoryCache};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, DistinguishedName, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::PkiError;
use super::client::AnyClient;
use super::named::NamedCertificates;
use crate::config::{TlsOptions, TlsVersion};
use crate::limits::TLS_SESSIONS;

/// Returns the cryptography provider of all TLS connections. As in Go, AES with keys of 128 bits comes before AES with
/// 256: it costs less.
pub fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// The serving certificate; it can be replaced while the server runs.
#[derive(Debug)]
pub struct ServingCertificate(RwLock<Arc<CertifiedKey>>);

impl ServingCertificate {
    /// Starts with this certificate.
    pub fn new(key: CertifiedKey) -> Self {
        Self(RwLock::new(Arc::new(key)))
    }

    /// Returns the certificate of new connections.
    pub fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read())
    }

    /// Returns when it expires, in seconds of Unix time.
    pub fn expires(&self) -> Option<i64> {
        let current = self.current();
        let (_, parsed) = X509Certificate::from_der(current.cert.first()?).ok()?;
        Some(parsed.validity().not_after.timestamp())
    }

    /// Replaces the certificate for new connections.
    pub fn replace(&self, key: CertifiedKey) {
        *self.0.write() = Arc::new(key);
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Returns a certificate chain with its key, after checking that they belong together.
pub(super) fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: &PrivateKeyDer<'_>,
) -> Result<CertifiedKey, rustls::Error> {
    CertifiedKey::from_der(chain, key.clone_key(), &provider())
}

pub(super) fn server_config(
    certificates: Arc<NamedCertificates>,
    hints: Vec<DistinguishedName>,
    options: &TlsOptions,
) -> Result<ServerConfig, PkiError> {
    let failed = |error: rustls::Error| PkiError::Tls(error.to_string());
    let provider = with_suites(provider(), &options.tls_cipher_suites)?;
    let provider = with_groups(provider, &options.tls_curve_preferences)?;
    let clients = Arc::new(AnyClient::new(&provider, hints));
    let versions: &[&SupportedProtocolVersion] = match options.tls_min_version {
        TlsVersion::VersionTLS13 => &[&TLS13],
        _ => &[&TLS13, &TLS12],
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(failed)?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    if options.disable_http2_serving {
        config.alpn_protocols.remove(0);
    }
    config.session_storage = ServerSessionMemoryCache::new(TLS_SESSIONS);
    config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(failed)?;
    config.ignore_client_order = true; // some clients name AES with 256 bits first
    // A client opens few connections; each ticket costs it a kilobyte at every handshake.
    config.send_tls13_tickets = 1;
    Ok(config)
}

/// Restricts a provider to the named cipher suites of TLS 1.2, in Go's or IANA's names; those of TLS 1.3 cannot be
/// chosen.
fn with_suites(provider: Arc<CryptoProvider>, names: &[String]) -> Result<Arc<CryptoProvider>, PkiError> {
    if names.is_empty() {
        return Ok(provider);
    }
    let stem = |name: &str| name.trim_end_matches("_SHA256").to_owned();
    let of = |suite: &SupportedCipherSuite| stem(suite.suite().as_str().unwrap_or(""));
    let is_new = |name: &str| name.starts_with("TLS_AES_") || name.starts_with("TLS_CHACHA20_");
    let wanted: Vec<String> = names.iter().filter(|name| !is_new(name)).map(|name| stem(name)).collect();
    let mut chosen = CryptoProvider::clone(&provider);
    chosen.cipher_suites.retain(|suite| suite.tls13().is_some() || wanted.contains(&of(suite)));
    let offered: Vec<String> = chosen.cipher_suites.iter().map(of).collect();
    let missing: Vec<&String> = wanted.iter().filter(|name| !offered.contains(name)).collect();
    if !missing.is_empty() && missing.len() == names.len() {
        return Err(PkiError::Tls(format!("none of these cipher suites is offered here: {}", names.join(", "))));
    }
    if !missing.is_empty() {
        tracing::warn!(suites = ?missing, "cipher suites that are not offered, since they are unsafe or unknown");
    }
    Ok(Arc::new(chosen))
}

/// Restricts a provider to these groups of key exchange, by their numbers (RFC 8446, section 4.2.7).
fn with_groups(provider: Arc<CryptoProvider>, numbers: &[u16]) -> Result<Arc<CryptoProvider>, PkiError> {
    if numbers.is_empty() {
        return Ok(provider);
    }
    let mut chosen = CryptoProvider::clone(&provider);
    chosen.kx_groups.retain(|group| numbers.contains(&u16::from(group.name())));
    if chosen.kx_groups.is_empty() {
        return Err(PkiError::Tls(format!("none of these groups of key exchange is offered here: {numbers:?}")));
    }
    let offered: Vec<u16> = chosen.kx_groups.iter().map(|group| group.name().into()).collect();
    let missing: Vec<&u16> = numbers.iter().filter(|number| !offered.contains(number)).collect();
    if !missing.is_empty() {
        tracing::warn!(groups = ?missing, "groups of key exchange that are not offered");
    }
    Ok(Arc::new(chosen))
}
