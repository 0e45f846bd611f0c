//! Checks whether a certificate and a private key, both in PEM, belong together. The error messages are those of Go's
//! TLS library.

mod private_key;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair,
};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use self::private_key::{EC, ED25519, PrivateKey, RSA};

/// The reason why a certificate and a key are no pair.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The certificate input contains no PEM.
    #[error("tls: failed to find any PEM data in certificate input")]
    NoCertificatePem,
    /// The certificate input contains a key.
    #[error(
        "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched"
    )]
    Switched,
    /// The certificate input contains other PEM.
    #[error(
        "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{0}]"
    )]
    OtherCertificatePem(String),
    /// The key input contains no PEM.
    #[error("tls: failed to find any PEM data in key input")]
    NoKeyPem,
    /// The key input contains a certificate.
    #[error("tls: found a certificate rather than a key in the PEM for the private key")]
    CertificateAsKey,
    /// The key input contains other PEM.
    #[error(
        "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{0}]"
    )]
    OtherKeyPem(String),
    /// The certificate is not DER.
    #[error("x509: malformed certificate")]
    MalformedCertificate,
    /// The DER of the certificate does not have the structure of a certificate.
    #[error("x509: malformed tbs certificate")]
    MalformedContent,
    /// The certificate is for a key of a curve that TLS does not know.
    #[error("x509: unsupported elliptic curve")]
    UnsupportedCurve,
    /// The certificate is for a key of a sort that TLS does not know.
    #[error("tls: unknown public key algorithm")]
    UnknownAlgorithm,
    /// The key is not DER.
    #[error("tls: failed to parse private key")]
    MalformedKey,
    /// The certificate is for a key of another type.
    #[error("tls: private key type does not match public key type")]
    OtherSort,
    /// The certificate is for another key.
    #[error("tls: private key does not match public key")]
    OtherKey,
}

/// A block of PEM (RFC 7468).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pem {
    /// The label after `BEGIN`, which names the content.
    pub label: String,
    /// Whether headers stand before the data.
    pub headers: bool,
    /// The decoded content.
    pub der: Vec<u8>,
}

/// Returns all PEM blocks in a text; skips the text between them.
pub fn pem_blocks(text: &[u8]) -> Vec<Pem> {
    let text = String::from_utf8_lossy(text);
    let mut blocks = Vec::new();
    let mut rest = &*text;
    while let Some(start) = rest.find("-----BEGIN ") {
        let at_line_start = start == 0 || rest.as_bytes()[start - 1] == b'\n';
        let after = &rest[start + "-----BEGIN ".len()..];
        rest = after;
        let Some((label, body)) = after.split_once("-----") else { break };
        if !at_line_start || label.contains('\n') {
            continue;
        }
        let Some((body, tail)) = body.split_once(&format!("-----END {label}-----")) else { continue };
        let headers = body.contains(": ");
        let data = if headers { body.split_once("\n\n").map_or("", |(_, data)| data) } else { body };
        let data: String = data.split_ascii_whitespace().collect();
        if let Ok(der) = STANDARD.decode(data) {
            blocks.push(Pem { label: label.to_owned(), headers, der });
            rest = tail;
        }
    }
    blocks
}

/// Returns whether bytes are exactly one DER sequence.
pub fn is_sequence(der: &[u8]) -> bool {
    let Some((&[tag, first], rest)) = der.split_first_chunk::<2>() else { return false };
    let (length, body) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 || rest.len() < count {
            return false;
        }
        (rest[..count].iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), &rest[count..])
    };
    tag == 0x30 && body.len() == length
}

/// Checks that a certificate and a key can be parsed and belong together.
pub fn check(certificate: &[u8], key: &[u8]) -> Result<(), Error> {
    let labels = |blocks: &[Pem]| blocks.iter().map(|block| block.label.as_str()).collect::<Vec<_>>().join(" ");
    let blocks = pem_blocks(certificate);
    let Some(first) = blocks.iter().find(|block| block.label == "CERTIFICATE") else {
        return Err(match &blocks[..] {
            [] => Error::NoCertificatePem,
            [only] if only.label.ends_with("PRIVATE KEY") => Error::Switched,
            _ => Error::OtherCertificatePem(labels(&blocks)),
        });
    };
    let blocks = pem_blocks(key);
    let is_key = |block: &&Pem| block.label == "PRIVATE KEY" || block.label.ends_with(" PRIVATE KEY");
    let Some(key) = blocks.iter().find(is_key) else {
        return Err(match &blocks[..] {
            [] => Error::NoKeyPem,
            [only] if only.label == "CERTIFICATE" => Error::CertificateAsKey,
            _ => Error::OtherKeyPem(labels(&blocks)),
        });
    };
    if !is_sequence(&first.der) {
        return Err(Error::MalformedCertificate);
    }
    let (_, certificate) = x509_parser::parse_x509_certificate(&first.der).map_err(|_| Error::MalformedContent)?;
    match_key(certificate.public_key(), &key.der)
}

/// Checks that a certificate is for a key.
fn match_key(of: &SubjectPublicKeyInfo<'_>, key: &[u8]) -> Result<(), Error> {
    let algorithm = of.algorithm.algorithm.to_id_string();
    let public = of.subject_public_key.data.as_ref();
    if algorithm == EC && curve(of).is_none() {
        return Err(Error::UnsupportedCurve);
    }
    let key = PrivateKey::parse(key).ok_or(Error::MalformedKey)?;
    let is_its = match (&*algorithm, key) {
        (RSA, PrivateKey::Rsa { modulus }) => match of.parsed() {
            Ok(PublicKey::RSA(own)) => without_zeros(own.modulus) == without_zeros(&modulus),
            _ => false,
        },
        (EC, PrivateKey::Ec { secret, public: stated }) => match curve(of).flatten() {
            Some(signing) => {
                let random = ring::rand::SystemRandom::new();
                EcdsaKeyPair::from_private_key_and_public_key(signing, &secret, public, &random).is_ok()
            }
            // For other curves the public key cannot be computed. It can be compared if the private key states it.
            None => stated.is_none_or(|stated| stated == public),
        },
        (ED25519, PrivateKey::Ed25519 { seed }) => Ed25519KeyPair::from_seed_and_public_key(&seed, public).is_ok(),
        (RSA | EC | ED25519, _) => return Err(Error::OtherSort),
        _ => return Err(Error::UnknownAlgorithm),
    };
    if is_its { Ok(()) } else { Err(Error::OtherKey) }
}

/// Returns the signing algorithm for the curve of a key. `None` if TLS does not know the curve; `Some(None)` if TLS
/// knows it and this server cannot compute with it.
fn curve(of: &SubjectPublicKeyInfo<'_>) -> Option<Option<&'static EcdsaSigningAlgorithm>> {
    let parameters = of.algorithm.parameters.as_ref()?.as_oid().ok()?;
    match &*parameters.to_id_string() {
        "1.2.840.10045.3.1.7" => Some(Some(&ECDSA_P256_SHA256_ASN1_SIGNING)),
        "1.3.132.0.34" => Some(Some(&ECDSA_P384_SHA384_ASN1_SIGNING)),
        "1.3.132.0.33" | "1.3.132.0.35" => Some(None),
        _ => None,
    }
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_that_are_no_pair_are_refused() {
        let pem = |label: &str, data: &str| format!("x\n-----BEGIN {label}-----\n{data}\n-----END {label}-----\n");
        let (certificate, key) = (pem("CERTIFICATE", "MAA="), pem("EC PRIVATE KEY", "MAA="));
        assert_eq!(check(b"", b""), Err(Error::NoCertificatePem));
        assert_eq!(check(key.as_bytes(), b""), Err(Error::Switched));
        assert_eq!(check(certificate.as_bytes(), b""), Err(Error::NoKeyPem));
        assert_eq!(check(certificate.as_bytes(), certificate.as_bytes()), Err(Error::CertificateAsKey));
        assert_eq!(check(certificate.as_bytes(), key.as_bytes()), Err(Error::MalformedContent));
        assert_eq!(check(pem("CERTIFICATE", "AAAA").as_bytes(), key.as_bytes()), Err(Error::MalformedCertificate));
        assert_eq!(check(pem("X", "AAAA").as_bytes(), b""), Err(Error::OtherCertificatePem("X".into())));
    }

    #[test]
    fn a_certificate_is_for_one_key() {
        let algorithms = [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519];
        let pair = |algorithm| {
            let key = rcgen::KeyPair::generate_for(algorithm).unwrap();
            let certificate = rcgen::CertificateParams::new(vec!["x".to_owned()]).unwrap().self_signed(&key).unwrap();
            (certificate.pem(), key.serialize_pem())
        };
        for algorithm in algorithms {
            let ((certificate, key), (_, other)) = (pair(algorithm), pair(algorithm));
            assert_eq!(check(certificate.as_bytes(), key.as_bytes()), Ok(()));
            assert_eq!(check(certificate.as_bytes(), other.as_bytes()), Err(Error::OtherKey));
        }
        let ((certificate, _), (_, key)) = (pair(algorithms[0]), pair(algorithms[2]));
        assert_eq!(check(certificate.as_bytes(), key.as_bytes()), Err(Error::OtherSort));
        let broken = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
        assert_eq!(check(certificate.as_bytes(), broken.as_bytes()), Err(Error::MalformedKey));
    }
}
