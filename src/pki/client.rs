//! Verification of client certificates. The TLS handshake accepts any certificate, and [`ClientRoots`] verifies it
//! afterwards.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use super::PkiError;
use super::serving::provider;
use crate::limits::CLIENT_CHAIN_CERTIFICATES;

/// The reason why a client certificate is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("client certificate: {0}")]
pub struct Untrusted(pub String);

/// The authorities of client certificates.
#[derive(Debug)]
pub struct ClientRoots {
    certificates: Vec<CertificateDer<'static>>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientRoots {
    /// Returns roots that trust these authorities.
    ///
    /// # Errors
    /// If a certificate cannot be that of an authority.
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> Result<Self, PkiError> {
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|e| PkiError::Tls(e.to_string()))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|e| PkiError::Tls(e.to_string()))?;
        Ok(Self { certificates, verifier })
    }

    /// Returns the authorities in PEM.
    pub fn pem(&self) -> String {
        self.certificates.iter().fold(String::new(), |mut text, certificate| {
            let body = STANDARD.encode(certificate);
            text.push_str("-----BEGIN CERTIFICATE-----\n");
            for line in body.as_bytes().chunks(64) {
                text.push_str(&String::from_utf8_lossy(line));
                text.push('\n');
            }
            text.push_str("-----END CERTIFICATE-----\n");
            text
        })
    }

    /// Verifies a chain, the client's certificate first, against the authorities, at a time.
    ///
    /// # Errors
    /// If no authority issued it, or a certificate has expired or is not for clients.
    pub fn verify(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Untrusted> {
        let refuse = |why: &str| Err(Untrusted(why.to_owned()));
        let Some((leaf, intermediates)) = chain.split_first() else {
            return refuse("no certificate");
        };
        if chain.len() > CLIENT_CHAIN_CERTIFICATES {
            return refuse("the chain is too long");
        }
        match X509Certificate::from_der(leaf) {
            Ok((_, parsed)) if parsed.version() == X509Version::V1 => self.verify_v1(&parsed, now),
            Ok(_) => match self.verifier.verify_client_cert(leaf, intermediates, now) {
                Ok(_) => Ok(()),
                Err(error) => refuse(&error.to_string()),
            },
            Err(error) => refuse(&error.to_string()),
        }
    }

    /// Verifies a certificate of X.509 version 1, which `openssl x509 -req` creates by default. Such certificates do
    /// not state their use, so only those pass that one of these authorities issued directly.
    fn verify_v1(&self, leaf: &X509Certificate<'_>, now: UnixTime) -> Result<(), Untrusted> {
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let validity = leaf.validity();
        if seconds < validity.not_before.timestamp() || validity.not_after.timestamp() < seconds {
            return Err(Untrusted("expired or not valid yet".into()));
        }
        let issued = self.certificates.iter().any(|root| {
            X509Certificate::from_der(root).is_ok_and(|(_, root)| {
                root.validity().not_after.timestamp() >= seconds
                    && root.subject().as_raw() == leaf.issuer().as_raw()
                    && leaf.verify_signature(Some(root.public_key())).is_ok()
            })
        });
        if issued { Ok(()) } else { Err(Untrusted("unknown issuer".into())) }
    }

    pub(super) fn subjects(&self) -> Vec<DistinguishedName> {
        self.verifier.root_hint_subjects().to_vec()
    }
}

/// Accepts any certificate in the handshake, as long as the client has its key.
#[derive(Debug)]
pub(super) struct AnyClient {
    algorithms: WebPkiSupportedAlgorithms,
    hints: Vec<DistinguishedName>,
}

impl AnyClient {
    pub(super) fn new(provider: &CryptoProvider, hints: Vec<DistinguishedName>) -> Self {
        Self { algorithms: provider.signature_verification_algorithms, hints }
    }
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match v1_key(cert)? {
            None => rustls::crypto::verify_tls12_signature(message, cert, dss, &self.algorithms),
            Some(key) => self.verify_with_key(message, &key, dss),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match v1_key(cert)? {
            None => rustls::crypto::verify_tls13_signature(message, cert, dss, &self.algorithms),
            Some(key) => rustls::crypto::verify_tls13_signature_with_raw_key(message, &key, dss, &self.algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl AnyClient {
    /// Verifies a signature of TLS 1.2 with a key that was extracted from a certificate which the TLS library cannot
    /// read.
    fn verify_with_key(
        &self,
        message: &[u8],
        key: &SubjectPublicKeyInfoDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let bad = || Error::InvalidCertificate(CertificateError::BadSignature);
        let (_, info) = x509_parser::x509::SubjectPublicKeyInfo::from_der(key).map_err(|_| bad())?;
        let algorithms = self.algorithms.mapping.iter().filter(|(scheme, _)| *scheme == dss.scheme);
        let valid = algorithms.flat_map(|(_, algorithms)| algorithms.iter()).any(|algorithm| {
            algorithm.verify_signature(&info.subject_public_key.data, message, dss.signature()).is_ok()
        });
        if valid { Ok(HandshakeSignatureValid::assertion()) } else { Err(bad()) }
    }
}

/// Returns the key of a certificate of X.509 version 1, which the TLS library cannot read. Returns `None` for all
/// others.
fn v1_key(cert: &CertificateDer<'_>) -> Result<Option<SubjectPublicKeyInfoDer<'static>>, Error> {
    let (_, parsed) = X509Certificate::from_der(cert).map_err(|_| CertificateError::BadEncoding)?;
    let is_v1 = parsed.version() == X509Version::V1;
    Ok(is_v1.then(|| SubjectPublicKeyInfoDer::from(parsed.public_key().raw.to_vec())))
}
