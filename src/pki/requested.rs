//! Issues certificates that others request, for keys of their own.

use std::time::{Duration, SystemTime};

use rcgen::{KeyPair, SigningKey};
use ring::rand::{SecureRandom, SystemRandom};
use x509_cert::Certificate;
use x509_cert::certificate::{TbsCertificate, Version};
use x509_cert::der::asn1::{Any, BitString, GeneralizedTime, UtcTime};
use x509_cert::der::flagset::FlagSet;
use x509_cert::der::oid::db::rfc5280::{ID_KP_CLIENT_AUTH, ID_KP_SERVER_AUTH};
use x509_cert::der::oid::{AssociatedOid, ObjectIdentifier};
use x509_cert::der::pem::LineEnding;
use x509_cert::der::{Decode, Encode, EncodePem};
use x509_cert::ext::pkix::name::{GeneralName, GeneralNames};
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectAltName,
    SubjectKeyIdentifier,
};
use x509_cert::ext::{AsExtension, Extension};
use x509_cert::request::{CertReq, CertReqInfo, ExtensionReq};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_cert::time::{Time, Validity};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

use super::Authority;
use crate::limits;
use crate::wall_clock;

/// Length of serial numbers in bytes.
const SERIAL_BYTES: usize = 16;

/// The reason why a request for a certificate is refused.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The request is not a certificate request in DER, or asks for something that cannot be encoded.
    #[error("the request cannot be parsed")]
    Malformed(#[from] x509_cert::der::Error),
    /// Its signature was not made by its key, or cannot be read.
    #[error("the request is not signed by the key that it is for")]
    Unsigned,
    /// The authority's own certificate has expired.
    #[error("the authority's certificate has expired")]
    AuthorityExpired,
    /// The authority's key has an algorithm that is not supported here.
    #[error("the authority's key cannot sign requested certificates")]
    Algorithm,
    /// The signature or the serial number cannot be made.
    #[error("the certificate cannot be signed")]
    Signing,
}

impl Authority {
    /// Issues the certificate that a request asks for, in PEM: with its subject, key and alternative names (DNS,
    /// email, IP, URI), and without anything else that it asks for. `usages` are names as in a
    /// CertificateSigningRequest; names that Kubernetes' own signers do not allow are left out. The certificate is
    /// valid for `valid`, and not longer than the authority's.
    ///
    /// # Errors
    /// If the request is not signed by its key, or the certificate cannot be made.
    pub fn issue_requested(&self, request: &[u8], usages: &[&str], valid: Duration) -> Result<String, RequestError> {
        let info = CertReq::from_der(request)?.info;
        let (_, parsed) = X509CertificationRequest::from_der(request).map_err(|_| RequestError::Unsigned)?;
        parsed.verify_signature().map_err(|_| RequestError::Unsigned)?;
        let own = Certificate::from_der(self.certificate())?.tbs_certificate;
        let algorithm = algorithm(self.key()).ok_or(RequestError::Algorithm)?;
        let certificate = TbsCertificate {
            version: Version::V3,
            serial_number: serial()?,
            signature: algorithm.clone(),
            issuer: own.subject.clone(),
            validity: validity(wall_clock::now(), valid, own.validity.not_after.to_system_time())?,
            extensions: Some(extensions(&info, usages, &own)?),
            subject: info.subject,
            subject_public_key_info: info.public_key,
            issuer_unique_id: None,
            subject_unique_id: None,
        };
        let signature = self.key().sign(&certificate.to_der()?).map_err(|_| RequestError::Signing)?;
        let signed = Certificate {
            tbs_certificate: certificate,
            signature_algorithm: algorithm,
            signature: BitString::from_bytes(&signature)?,
        };
        Ok(signed.to_pem(LineEnding::LF)?)
    }
}

/// Returns the identifier of the algorithm by which a key signs. Returns `None` if it is not one of those that
/// authorities usually have.
fn algorithm(key: &KeyPair) -> Option<AlgorithmIdentifierOwned> {
    // RFC 5758, section 3.2; RFC 8410, section 3; RFC 4055, section 5.
    let known = [
        (&rcgen::PKCS_ECDSA_P256_SHA256, "1.2.840.10045.4.3.2", None),
        (&rcgen::PKCS_ECDSA_P384_SHA384, "1.2.840.10045.4.3.3", None),
        (&rcgen::PKCS_ED25519, "1.3.101.112", None),
        (&rcgen::PKCS_RSA_SHA256, "1.2.840.113549.1.1.11", Some(Any::null())),
    ];
    let (_, oid, parameters) = known.into_iter().find(|(algorithm, ..)| *algorithm == key.algorithm())?;
    Some(AlgorithmIdentifierOwned { oid: ObjectIdentifier::new_unwrap(oid), parameters })
}

/// Draws a serial number.
fn serial() -> Result<SerialNumber, RequestError> {
    let mut bytes = [0; SERIAL_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| RequestError::Signing)?;
    bytes[0] = bytes[0] & 0x7f | 0x40; // positive, and never shorter
    Ok(SerialNumber::new(&bytes)?)
}

/// Returns the validity of a certificate that is issued now.
fn validity(now: SystemTime, valid: Duration, not_after_max: SystemTime) -> Result<Validity, RequestError> {
    if not_after_max <= now {
        return Err(RequestError::AuthorityExpired);
    }
    let begin = now - limits::REQUESTED_BACKDATE;
    let end = if valid < limits::REQUESTED_SHORT { now + valid } else { begin + valid };
    Ok(Validity { not_before: time(begin)?, not_after: time(end.min(not_after_max))? })
}

/// Encodes a time as RFC 5280, section 4.1.2.5 demands: with four digits of the year from 2050 on.
fn time(at: SystemTime) -> Result<Time, RequestError> {
    match UtcTime::from_system_time(at) {
        Ok(time) => Ok(Time::UtcTime(time)),
        Err(_) => Ok(Time::GeneralTime(GeneralizedTime::from_system_time(at)?)),
    }
}

/// Returns the extensions of a certificate: its usages, its issuer, and its alternative names.
fn extensions(info: &CertReqInfo, usages: &[&str], own: &TbsCertificate) -> Result<Vec<Extension>, RequestError> {
    let mut all = Vec::new();
    let subject = &info.subject;
    let mut usage = KeyUsage(FlagSet::default());
    let mut purposes = Vec::new();
    for name in usages {
        match *name {
            "digital signature" => usage.0 |= KeyUsages::DigitalSignature,
            "key encipherment" => usage.0 |= KeyUsages::KeyEncipherment,
            "client auth" => purposes.push(ID_KP_CLIENT_AUTH),
            "server auth" => purposes.push(ID_KP_SERVER_AUTH),
            _ => {}
        }
    }
    if !usage.0.is_empty() {
        all.push(usage.to_extension(subject, &[])?);
    }
    if !purposes.is_empty() {
        all.push(ExtendedKeyUsage(purposes).to_extension(subject, &[])?);
    }
    let no_authority = BasicConstraints { ca: false, path_len_constraint: None };
    all.push(Extension { critical: true, ..no_authority.to_extension(subject, &[])? });
    if let Some((_, id)) = own.get::<SubjectKeyIdentifier>()? {
        let of = AuthorityKeyIdentifier { key_identifier: Some(id.0), ..AuthorityKeyIdentifier::default() };
        all.push(of.to_extension(subject, &[])?);
    }
    let names = alternative_names(info)?;
    if !names.is_empty() {
        all.push(SubjectAltName(names).to_extension(subject, &[])?);
    }
    Ok(all)
}

/// Returns the alternative names that a request asks for, of the sorts that certificates get.
fn alternative_names(info: &CertReqInfo) -> Result<GeneralNames, RequestError> {
    let mut names = GeneralNames::new();
    for value in info.attributes.iter().filter(|attribute| attribute.oid == ExtensionReq::OID) {
        for value in value.values.iter() {
            let extensions: ExtensionReq = value.decode_as()?;
            for extension in extensions.0.iter().filter(|extension| extension.extn_id == SubjectAltName::OID) {
                names.extend(SubjectAltName::from_der(extension.extn_value.as_bytes())?.0);
            }
        }
    }
    names.retain(|name| {
        matches!(
            name,
            GeneralName::DnsName(_)
                | GeneralName::Rfc822Name(_)
                | GeneralName::IpAddress(_)
                | GeneralName::UniformResourceIdentifier(_)
        )
    });
    Ok(names)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, PublicKeyData as _};
    use x509_parser::prelude::X509Certificate;

    use super::*;
    use crate::scratch::Scratch;

    /// Returns a request of `CN=ann, O=staff` with two alternative names. It asks for the certificate of an authority.
    fn request(key: &KeyPair) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["node.example".into(), "192.0.2.1".into()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "ann");
        params.distinguished_name.push(DnType::OrganizationName, "staff");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.serialize_request(key).unwrap().der().to_vec()
    }

    #[test]
    fn a_certificate_has_the_requested_content_and_no_further_rights() {
        let dir = Scratch::new();
        let authority = Authority::open(&dir, "ca", "test-ca").unwrap();
        let key = KeyPair::generate().unwrap();
        let day = Duration::from_secs(86_400);
        let pem = authority.issue_requested(&request(&key), &["client auth", "digital signature"], day).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        let (rest, parsed) = X509Certificate::from_der(&pem.contents).unwrap();
        assert!(rest.is_empty() && authority.issued(&parsed), "the authority's signature is valid");
        assert_eq!(parsed.subject().to_string(), "CN=ann, O=staff");
        assert_eq!(parsed.public_key().raw, key.subject_public_key_info());
        assert!(!parsed.is_ca());
        let names = parsed.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names.len(), 2);
        let purposes = parsed.extended_key_usage().unwrap().unwrap().value;
        assert!(purposes.client_auth && !purposes.server_auth);
        let usage = parsed.key_usage().unwrap().unwrap();
        assert!(usage.critical && usage.value.digital_signature() && !usage.value.key_cert_sign());
        let validity = parsed.validity();
        assert_eq!(validity.not_after.timestamp() - validity.not_before.timestamp(), 86_400);
    }

    #[test]
    fn a_request_of_another_key_is_refused() {
        let dir = Scratch::new();
        let authority = Authority::open(&dir, "ca", "test-ca").unwrap();
        let mut forged = request(&KeyPair::generate().unwrap());
        let last = forged.len() - 1;
        forged[last] ^= 1;
        let issued = authority.issue_requested(&forged, &["client auth"], Duration::from_secs(600));
        assert!(matches!(issued, Err(RequestError::Unsigned)), "{issued:?}");
        let issued = authority.issue_requested(b"0", &[], Duration::from_secs(600));
        assert!(matches!(issued, Err(RequestError::Malformed(_))), "{issued:?}");
    }

    #[test]
    fn a_certificate_is_never_valid_longer_than_its_authority() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let after = |seconds| now + Duration::from_secs(seconds);
        let end = |valid, authority| validity(now, Duration::from_secs(valid), after(authority)).unwrap().not_after;
        assert_eq!(end(600, 1_000_000).to_system_time(), after(600), "short ones keep all of their time");
        assert_eq!(end(86_400, 1_000_000).to_system_time(), after(86_400 - 300));
        assert_eq!(end(86_400, 1_000).to_system_time(), after(1_000));
        assert!(matches!(validity(now, limits::REQUESTED_BACKDATE, now), Err(RequestError::AuthorityExpired)));
    }
}
