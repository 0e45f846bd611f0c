//! TLS settings for connections to a peer.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::trust::Verifier;
use super::{Error, Identity, Secure, Trust};
use crate::pki::provider;

/// Returns the TLS configuration for a peer, and the name to verify.
///
/// # Errors
/// The name, the trusted certificates or the identity are invalid.
pub fn config(secure: &Secure, http2: bool) -> Result<(Arc<ClientConfig>, ServerName<'static>), Error> {
    let name = ServerName::try_from(secure.server_name.clone())
        .map_err(|_| Error::Setup(format!("tls: invalid server name {:?}", secure.server_name)))?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Setup(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier(&secure.trust)?));
    let mut config = match &secure.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (certificates, key) = parts(identity)?;
            builder.with_client_auth_cert(certificates, key).map_err(|error| Error::Setup(format!("tls: {error}")))?
        }
    };
    config.alpn_protocols = if http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    Ok((Arc::new(config), name))
}

fn parts(identity: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    let certificates = certificates(&identity.certificates);
    if certificates.is_empty() {
        return Err(Error::Setup("tls: failed to find any PEM data in certificate input".into()));
    }
    let key = PrivateKeyDer::from_pem_slice(&identity.key)
        .map_err(|_| Error::Setup("tls: failed to find any PEM data in key input".into()))?;
    Ok((certificates, key))
}

fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect()
}

fn verifier(trust: &Trust) -> Result<Verifier, Error> {
    let algorithms = provider().signature_verification_algorithms;
    let trusted = match trust {
        Trust::Anybody => return Ok(Verifier::new(None, Vec::new(), algorithms)),
        Trust::Bundle(pem) => certificates(pem),
        Trust::System => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted.iter().cloned());
    if roots.is_empty() && matches!(trust, Trust::Bundle(_)) {
        return Err(Error::Setup("unable to load root certificates: unable to parse bytes as PEM block".into()));
    }
    if roots.is_empty() {
        return Err(Error::Setup("x509: failed to load system roots and no roots provided".into()));
    }
    let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    let chains = chains.map_err(|error| Error::Setup(error.to_string()))?;
    let own = if matches!(trust, Trust::Bundle(_)) { trusted } else { Vec::new() };
    Ok(Verifier::new(Some(chains), own, algorithms))
}
