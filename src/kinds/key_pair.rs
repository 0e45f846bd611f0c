//! Whether a certificate and a private key, both in PEM, can be used together. The words are those of Go's TLS library.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Why a certificate and a key are no pair.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No PEM at all where a certificate should be.
    #[error("tls: failed to find any PEM data in certificate input")]
    NoCertificatePem,
    /// A key where a certificate should be.
    #[error(
        "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched"
    )]
    Switched,
    /// Other PEM where a certificate should be.
    #[error(
        "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{0}]"
    )]
    OtherCertificatePem(String),
    /// No PEM at all where a key should be.
    #[error("tls: failed to find any PEM data in key input")]
    NoKeyPem,
    /// A certificate where a key should be.
    #[error("tls: found a certificate rather than a key in the PEM for the private key")]
    CertificateAsKey,
    /// Other PEM where a key should be.
    #[error(
        "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{0}]"
    )]
    OtherKeyPem(String),
    /// The certificate is not DER.
    #[error("x509: malformed certificate")]
    MalformedCertificate,
    /// The key is not DER.
    #[error("tls: failed to parse private key")]
    MalformedKey,
}

/// A block of PEM (RFC 7468).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pem {
    /// What the block says that it holds.
    pub label: String,
    /// Whether headers stand before the data.
    pub headers: bool,
    /// What it holds.
    pub der: Vec<u8>,
}

/// All blocks of PEM in a text; what is between them is skipped.
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

/// Whether bytes are one DER sequence and nothing else.
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

/// Checks a certificate and its key.
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
    if is_sequence(&key.der) { Ok(()) } else { Err(Error::MalformedKey) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_told_from_what_is_none() {
        let pem = |label: &str, data: &str| format!("x\n-----BEGIN {label}-----\n{data}\n-----END {label}-----\n");
        let (certificate, key) = (pem("CERTIFICATE", "MAA="), pem("EC PRIVATE KEY", "MAA="));
        assert_eq!(check(b"", b""), Err(Error::NoCertificatePem));
        assert_eq!(check(key.as_bytes(), b""), Err(Error::Switched));
        assert_eq!(check(certificate.as_bytes(), b""), Err(Error::NoKeyPem));
        assert_eq!(check(certificate.as_bytes(), certificate.as_bytes()), Err(Error::CertificateAsKey));
        assert_eq!(check(certificate.as_bytes(), key.as_bytes()), Ok(()));
        assert_eq!(check(pem("CERTIFICATE", "AAAA").as_bytes(), key.as_bytes()), Err(Error::MalformedCertificate));
        assert_eq!(check(pem("X", "AAAA").as_bytes(), b""), Err(Error::OtherCertificatePem("X".into())));
    }
}
