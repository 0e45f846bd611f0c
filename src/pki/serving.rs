//! What connections are accepted with.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, ServerSessionMemoryCache};
use rustls::sign::CertifiedKey;

use super::client::AnyClient;
use super::{ClientRoots, PkiError};
use crate::limits::TLS_SESSIONS;

/// The cryptography of all TLS here.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificate that new connections see; it may be replaced while the server runs.
#[derive(Debug)]
pub struct ServingCertificate(RwLock<Arc<CertifiedKey>>);

impl ServingCertificate {
    /// Starts with this certificate.
    pub fn new(key: CertifiedKey) -> Self {
        Self(RwLock::new(Arc::new(key)))
    }

    /// The certificate that new connections see.
    pub fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read())
    }

    /// Connections from now on see this certificate.
    pub fn replace(&self, key: CertifiedKey) {
        *self.0.write() = Arc::new(key);
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// A certificate chain with its key, checked to belong together.
pub(super) fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: &PrivateKeyDer<'_>,
) -> Result<CertifiedKey, rustls::Error> {
    CertifiedKey::from_der(chain, key.clone_key(), &provider())
}

pub(super) fn server_config(
    certificate: Arc<ServingCertificate>,
    roots: &ClientRoots,
) -> Result<ServerConfig, PkiError> {
    let failed = |error: rustls::Error| PkiError::Tls(error.to_string());
    let provider = provider();
    let clients = Arc::new(AnyClient::new(&provider, roots.subjects()));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.session_storage = ServerSessionMemoryCache::new(TLS_SESSIONS);
    config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(failed)?;
    // A client opens few connections; each ticket costs it a kilobyte at every handshake.
    config.send_tls13_tickets = 1;
    Ok(config)
}
