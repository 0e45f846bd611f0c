//! Parses private keys in DER, as far as needed to find the certificates that belong to them (RFC 5208, RFC 5915, RFC
//! 8017, RFC 8410).

/// Object identifiers of algorithms.
pub(super) const RSA: &str = "1.2.840.113549.1.1.1";
pub(super) const EC: &str = "1.2.840.10045.2.1";
pub(super) const ED25519: &str = "1.3.101.112";

/// The object identifiers in DER, without tag and length.
const OIDS: [(&str, &[u8]); 3] = [
    (RSA, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01]),
    (EC, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01]),
    (ED25519, &[0x2b, 0x65, 0x70]),
];

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const BITS: u8 = 0x03;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// The tag of the public half in a key of an elliptic curve.
const PUBLIC: u8 = 0xa1;

/// A private key.
pub(super) enum PrivateKey {
    Rsa { modulus: Vec<u8> },
    Ec { secret: Vec<u8>, public: Option<Vec<u8>> },
    Ed25519 { seed: Vec<u8> },
}

impl PrivateKey {
    /// Parses a key in any of these forms. `None` if it has none of them.
    pub(super) fn parse(der: &[u8]) -> Option<Self> {
        rsa(der).or_else(|| wrapped(der)).or_else(|| ec(der))
    }
}

/// Parses PKCS #1.
fn rsa(der: &[u8]) -> Option<PrivateKey> {
    let mut members = Der(only(der, SEQUENCE)?);
    members.member(INTEGER)?;
    let modulus = members.member(INTEGER)?.to_vec();
    // Skips the exponents, the primes and the numbers that follow from them.
    (0..7).try_for_each(|_| members.member(INTEGER).map(drop))?;
    Some(PrivateKey::Rsa { modulus })
}

/// Parses PKCS #8.
fn wrapped(der: &[u8]) -> Option<PrivateKey> {
    let mut members = Der(only(der, SEQUENCE)?);
    members.member(INTEGER)?;
    let algorithm = Der(members.member(SEQUENCE)?).member(OID)?;
    let key = members.member(OCTETS)?;
    match OIDS.iter().find(|(_, oid)| *oid == algorithm)?.0 {
        RSA => rsa(key),
        EC => ec(key),
        _ => Some(PrivateKey::Ed25519 { seed: only(key, OCTETS)?.to_vec() }),
    }
}

/// Parses SEC 1.
fn ec(der: &[u8]) -> Option<PrivateKey> {
    let mut members = Der(only(der, SEQUENCE)?);
    members.member(INTEGER)?;
    let secret = members.member(OCTETS)?.to_vec();
    let mut public = None;
    for (tag, content) in members {
        if tag == PUBLIC {
            // The first byte is the number of unused bits in the last byte.
            public = Some(only(content, BITS)?.get(1..)?.to_vec());
        }
    }
    Some(PrivateKey::Ec { secret, public })
}

/// Returns the content of the only element in `der`. Returns `None` if it has another tag or is not the only one.
fn only(der: &[u8], tag: u8) -> Option<&[u8]> {
    let mut reader = Der(der);
    let content = reader.member(tag)?;
    reader.0.is_empty().then_some(content)
}

/// A reader of DER elements in sequence.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    fn member(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }
}

impl<'a> Iterator for Der<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (length, rest) = match first {
            0..0x80 => (usize::from(first), rest),
            _ => {
                let count = usize::from(first & 0x7f);
                let (length, rest) = rest.split_at_checked(count).filter(|_| (1..=4).contains(&count))?;
                (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }
}
