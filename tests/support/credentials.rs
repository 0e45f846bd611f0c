//! The contents of an administrator's kubeconfig.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};

/// The address of a server, and the TLS configurations for it.
#[derive(Clone)]
pub struct Credentials {
    pub address: SocketAddr,
    /// Shows the administrator's certificate.
    pub administrator: Arc<ClientConfig>,
    /// Shows no certificate.
    pub anonymous: Arc<ClientConfig>,
    /// The authorities that may have issued the server's certificate.
    pub roots: RootCertStore,
}

impl Credentials {
    /// Reads a kubeconfig in which every needed field has a line of its own, as the server writes it.
    pub fn read(path: &Path) -> Credentials {
        let text = std::fs::read_to_string(path).expect("the kubeconfig can be read");
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_else(|| panic!("no {name} in the kubeconfig")).trim_matches('"').to_owned()
        };
        let pem = |name: &str| STANDARD.decode(field(name)).expect("base64");
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(&pem("certificate-authority-data")) {
            roots.add(root.expect("a certificate")).expect("an authority");
        }
        let certificate = pem("client-certificate-data");
        let chain = CertificateDer::pem_slice_iter(&certificate).map(|one| one.expect("a certificate"));
        let key = PrivateKeyDer::from_pem_slice(&pem("client-key-data")).expect("a key");
        let server = field("server");
        Credentials {
            address: server.strip_prefix("https://").and_then(|text| text.parse().ok()).expect("https://ADDR:PORT"),
            administrator: Arc::new(
                trusting(&roots).with_client_auth_cert(chain.collect(), key).expect("a matching key"),
            ),
            anonymous: Arc::new(trusting(&roots).with_no_client_auth()),
            roots,
        }
    }

    /// Returns a TLS configuration that shows a certificate with its key, both in PEM.
    #[allow(dead_code, reason = "not every test program has certificates issued")]
    pub fn with_certificate(&self, certificate: &[u8], key: &str) -> Arc<ClientConfig> {
        let certificate = CertificateDer::from_pem_slice(certificate).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
        Arc::new(trusting(&self.roots).with_client_auth_cert(vec![certificate], key).expect("a matching key"))
    }
}

fn trusting(roots: &RootCertStore) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    versions.expect("protocol versions").with_root_certificates(roots.clone())
}
