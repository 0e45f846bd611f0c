//! Certificates with which members of a cluster authenticate each other.

use std::path::Path;
use std::sync::Arc;

use flotilla_cluster::PeerTls;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::pki_types::CertificateDer;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::serving::{certified, provider};
use super::{Authority, Leaf, LeafSpec, PkiError, ServingCertificate, Usage, files};

/// The certificate of a member. Its authority issues no other certificates, so that only members can connect to the
/// port on which members listen for each other. It is issued at every start and kept in memory only.
#[derive(Debug)]
pub struct PeerPki {
    authority: Authority,
    name: String,
    certificate: Arc<ServingCertificate>,
}

impl PeerPki {
    /// Loads the authority from a directory that the members share, or creates it, and issues a certificate for this
    /// member.
    ///
    /// # Errors
    /// When a file cannot be read or written, or holds something other than it should.
    pub fn open(dir: &Path, name: &str) -> Result<Self, PkiError> {
        files::make_dir(dir)?;
        let authority = Authority::open(dir, "peer-ca", "flotilla-peer-ca")?;
        let certificate = Arc::new(ServingCertificate::new(issue(&authority, name)?));
        Ok(Self { authority, name: name.to_owned(), certificate })
    }

    /// Issues a new certificate; new connections use it.
    ///
    /// # Errors
    /// If it cannot be issued; the one in use stays.
    pub fn refresh(&self) -> Result<(), PkiError> {
        self.certificate.replace(issue(&self.authority, &self.name)?);
        Ok(())
    }

    /// Returns the TLS configuration of connections between members: TLS 1.3, both sides verified against the
    /// authority.
    ///
    /// # Errors
    /// If the cryptography provider does not support a setting.
    pub fn tls(&self) -> Result<PeerTls, PkiError> {
        let failed = |error: &dyn std::fmt::Display| PkiError::Tls(error.to_string());
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.certificate().clone()).map_err(|e| failed(&e))?;
        let roots = Arc::new(roots);
        let members = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider());
        let mut server = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(|e| failed(&e))?
            .with_client_cert_verifier(members.build().map_err(|e| failed(&e))?)
            .with_cert_resolver(Arc::clone(&self.certificate) as _);
        // No resumption: every connection verifies the present certificates.
        server.send_tls13_tickets = 0;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        let mut client = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(|e| failed(&e))?
            .with_root_certificates(roots)
            .with_client_cert_resolver(Arc::clone(&self.certificate) as _);
        client.resumption = Resumption::disabled();
        Ok(PeerTls { client: Arc::new(client), server: Arc::new(server), name_of })
    }
}

/// Returns the name of the member that a certificate was issued for.
fn name_of(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let name = parsed.subject().iter_common_name().last()?.as_str().ok()?.to_owned();
    Some(name)
}

fn issue(authority: &Authority, name: &str) -> Result<CertifiedKey, PkiError> {
    let names = [PeerTls::SERVER_NAME.to_owned()];
    let spec = LeafSpec { common_name: name, organization: None, names: &names, usage: Usage::Peer };
    let leaf = Leaf::issue(authority, &spec)?;
    certified(vec![leaf.certificate().clone()], &leaf.private_key()).map_err(|e| PkiError::Tls(e.to_string()))
}

impl ResolvesClientCert for ServingCertificate {
    fn resolve(&self, _authorities: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
