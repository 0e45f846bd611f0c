//! Certificate authorities.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::CertificateDer;
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::files::{PRIVATE, PUBLIC, publish_new, read_existing, replace};
use super::{PkiError, certificates};
use crate::limits;
use crate::wall_clock;

/// A certificate authority with its key.
#[derive(Debug)]
pub struct Authority {
    pem: String,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    not_after: OffsetDateTime,
}

impl Authority {
    /// Loads `NAME.crt` and `NAME.key` from a directory, and creates missing ones. Several servers may do so at once.
    ///
    /// # Errors
    /// If a file cannot be read or written or is damaged, if the certificate exists without its key, or if it belongs
    /// to another key.
    pub fn open(dir: &Path, name: &str, common_name: &str) -> Result<Self, PkiError> {
        let path = dir.join(format!("{name}.crt"));
        let existing = read_existing(&path)?;
        let key_path = dir.join(format!("{name}.key"));
        if existing.is_some() && read_existing(&key_path)?.is_none() {
            return Err(PkiError::damaged(&key_path, format!("missing, though {name}.crt is there")));
        }
        let key = open_key(&key_path)?;
        let pem = match existing {
            Some(pem) => pem,
            None => publish_new(&path, &self_sign(common_name, &key)?, PUBLIC)?,
        };
        let authority = Self::parse(&path, pem, key)?;
        if authority.not_after - OffsetDateTime::from(wall_clock::now()) > limits::AUTHORITY_RENEWAL {
            return Ok(authority);
        }
        // The renewed certificate has the same name and key, so that issued certificates stay valid, and servers that
        // trust the old one trust the new one.
        let key = open_key(&key_path)?;
        let pem = self_sign(common_name, &key)?;
        replace(&path, pem.as_bytes(), PUBLIC)?;
        Self::parse(&path, pem, key)
    }

    fn parse(path: &Path, pem: String, key: KeyPair) -> Result<Self, PkiError> {
        let certificate = certificates(path, &pem)?.swap_remove(0);
        let (_, parsed) = X509Certificate::from_der(&certificate).map_err(|e| PkiError::damaged(path, e))?;
        if !has_key(&parsed, &key) {
            return Err(PkiError::damaged(path, "does not belong to the key beside it"));
        }
        let not_after = parsed.validity().not_after.to_datetime();
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|e| PkiError::damaged(path, e))?;
        Ok(Self { pem, issuer, not_after, certificate })
    }

    /// Returns its certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns its certificate.
    pub const fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Returns when its certificate expires.
    pub const fn not_after(&self) -> OffsetDateTime {
        self.not_after
    }

    /// Returns its key.
    pub(super) fn key(&self) -> &KeyPair {
        self.issuer.key()
    }

    /// Issues a certificate for a key, in PEM.
    pub(super) fn sign(&self, params: &CertificateParams, key: &KeyPair) -> Result<String, rcgen::Error> {
        params.signed_by(key, &self.issuer).map(|certificate| certificate.pem())
    }

    /// Returns whether it issued the certificate.
    pub(super) fn issued(&self, certificate: &X509Certificate<'_>) -> bool {
        X509Certificate::from_der(&self.certificate).is_ok_and(|(_, own)| {
            certificate.issuer().as_raw() == own.subject().as_raw()
                && certificate.verify_signature(Some(own.public_key())).is_ok()
        })
    }
}

/// Loads a private key, or creates one: EC P-256, PKCS #8 in PEM.
pub(super) fn open_key(path: &Path) -> Result<KeyPair, PkiError> {
    let pem = match read_existing(path)? {
        Some(pem) => pem,
        None => {
            let key = KeyPair::generate().map_err(|e| PkiError::Generate(path.display().to_string(), e))?;
            publish_new(path, &key.serialize_pem(), PRIVATE)?
        }
    };
    KeyPair::from_pem(&pem).map_err(|e| PkiError::damaged(path, e))
}

/// Returns whether a certificate is for the key.
pub(super) fn has_key(certificate: &X509Certificate<'_>, key: &KeyPair) -> bool {
    use rcgen::PublicKeyData;
    certificate.public_key().raw == key.subject_public_key_info()
}

/// Returns the parameters of a certificate: its name, and its validity, which begins `PKI_CLOCK_SKEW` before now.
pub(super) fn params(common_name: &str, validity: std::time::Duration) -> CertificateParams {
    let now = OffsetDateTime::from(wall_clock::now());
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = now - limits::PKI_CLOCK_SKEW;
    params.not_after = now + validity;
    params
}

fn self_sign(common_name: &str, key: &KeyPair) -> Result<String, PkiError> {
    let mut params = params(common_name, limits::AUTHORITY_VALIDITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let certificate = params.self_signed(key).map_err(|e| PkiError::Generate(common_name.into(), e))?;
    Ok(certificate.pem())
}
