//! Certificates of servers and users.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::authority::{has_key, open_key, params};
use super::files::{PUBLIC, read_existing, replace};
use super::{Authority, PkiError, certificates};
use crate::limits;
use crate::wall_clock;

/// The use of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// It authenticates a server.
    Server,
    /// It authenticates a client.
    Client,
    /// It authenticates a member of a cluster, as server and client.
    Peer,
}

/// The content of a certificate.
#[derive(Debug, Clone, Copy)]
pub struct LeafSpec<'a> {
    /// Common name: the user, for a client.
    pub common_name: &'a str,
    /// Organization: the group, for a client.
    pub organization: Option<&'a str>,
    /// DNS names and IP addresses of a server.
    pub names: &'a [String],
    /// Its use.
    pub usage: Usage,
}

/// A certificate with its key.
#[derive(Debug)]
pub struct Leaf {
    pem: String,
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Leaf {
    /// Loads `NAME.crt` and `NAME.key` from a directory, and creates missing ones. Issues the certificate again if it
    /// is about to expire, differs from `spec`, or comes from another authority. The key stays.
    ///
    /// # Errors
    /// If a file cannot be read or written, or the key is damaged.
    pub fn open(dir: &Path, name: &str, authority: &Authority, spec: &LeafSpec<'_>) -> Result<Self, PkiError> {
        let key = open_key(&dir.join(format!("{name}.key")))?;
        let path = dir.join(format!("{name}.crt"));
        if let Some(pem) = read_existing(&path)?
            && let Some(certificate) = usable(&path, &pem, authority, &key, spec)
        {
            return Ok(Self { pem, certificate, key });
        }
        let leaf = Self::sign(authority, spec, key)?;
        replace(&path, leaf.pem.as_bytes(), PUBLIC)?;
        Ok(leaf)
    }

    /// Issues a certificate with a new key, without storing them in files.
    ///
    /// # Errors
    /// If it cannot be issued.
    pub fn issue(authority: &Authority, spec: &LeafSpec<'_>) -> Result<Self, PkiError> {
        let key = KeyPair::generate().map_err(|error| PkiError::Generate(spec.common_name.into(), error))?;
        Self::sign(authority, spec, key)
    }

    fn sign(authority: &Authority, spec: &LeafSpec<'_>, key: KeyPair) -> Result<Self, PkiError> {
        let failed = |error| PkiError::Generate(spec.common_name.into(), error);
        let request = spec.params(authority.not_after()).map_err(failed)?;
        let pem = authority.sign(&request, &key).map_err(failed)?;
        let certificate = certificates(Path::new(spec.common_name), &pem)?.swap_remove(0);
        Ok(Self { pem, certificate, key })
    }

    /// Returns the certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the certificate.
    pub const fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Returns the key in PEM.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Returns the key.
    pub fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }
}

impl LeafSpec<'_> {
    fn params(&self, not_after_max: OffsetDateTime) -> Result<CertificateParams, rcgen::Error> {
        let mut params = params(self.common_name, limits::LEAF_VALIDITY);
        params.not_after = params.not_after.min(not_after_max);
        if let Some(organization) = self.organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        for name in self.names {
            params.subject_alt_names.push(match name.parse::<IpAddr>() {
                Ok(ip) => SanType::IpAddress(ip),
                Err(_) => SanType::DnsName(name.as_str().try_into()?),
            });
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match self.usage {
            Usage::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Usage::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            Usage::Peer => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
        };
        params.use_authority_key_identifier_extension = true;
        Ok(params)
    }
}

/// Returns the certificate in a PEM text if it has the wanted content and stays valid long enough. Returns `None`
/// otherwise.
fn usable(
    path: &Path,
    pem: &str,
    authority: &Authority,
    key: &KeyPair,
    spec: &LeafSpec<'_>,
) -> Option<CertificateDer<'static>> {
    let der = certificates(path, pem).ok()?.swap_remove(0);
    let (_, parsed) = X509Certificate::from_der(&der).ok()?;
    let text = |mut values: Box<dyn Iterator<Item = &x509_parser::x509::AttributeTypeAndValue<'_>> + '_>| {
        values.next().and_then(|value| value.as_str().ok()).map(str::to_owned)
    };
    let names: BTreeSet<String> = match parsed.subject_alternative_name() {
        Ok(Some(extension)) => extension.value.general_names.iter().filter_map(name_of).collect(),
        _ => BTreeSet::new(),
    };
    let now = OffsetDateTime::from(wall_clock::now());
    let good = parsed.validity().not_before.to_datetime() <= now
        && parsed.validity().not_after.to_datetime() - now > limits::LEAF_RENEWAL
        && text(Box::new(parsed.subject().iter_common_name())).as_deref() == Some(spec.common_name)
        && text(Box::new(parsed.subject().iter_organization())).as_deref() == spec.organization
        && names.iter().eq(spec.names.iter().collect::<BTreeSet<_>>())
        && has_key(&parsed, key)
        && authority.issued(&parsed);
    good.then_some(der)
}

fn name_of(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = || <[u8; 4]>::try_from(*bytes).ok().map(IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(*bytes).ok().map(IpAddr::from);
            v4().or_else(v6).map(|ip| ip.to_string())
        }
        _ => None,
    }
}
