//! The public keys of a provider: a JSON Web Key Set (RFC 7517).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;

/// A signature algorithm (RFC 7518, section 3.1). ES512 is missing: the cryptographic library of this server lacks
/// P-521.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the standard")]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
}

const ALGORITHMS: [(Algorithm, &str); 8] = [
    (Algorithm::Rs256, "RS256"),
    (Algorithm::Rs384, "RS384"),
    (Algorithm::Rs512, "RS512"),
    (Algorithm::Ps256, "PS256"),
    (Algorithm::Ps384, "PS384"),
    (Algorithm::Ps512, "PS512"),
    (Algorithm::Es256, "ES256"),
    (Algorithm::Es384, "ES384"),
];

impl Algorithm {
    /// Returns the algorithm of a name. `None` if it is not supported.
    pub fn named(name: &str) -> Option<Self> {
        ALGORITHMS.into_iter().find(|(_, own)| *own == name).map(|(algorithm, _)| algorithm)
    }

    /// Returns the name in headers of tokens.
    pub fn name(self) -> &'static str {
        ALGORITHMS.iter().find(|(own, _)| *own == self).map_or("", |(_, name)| name)
    }

    /// Returns all algorithms.
    pub fn all() -> Vec<Self> {
        ALGORITHMS.map(|(algorithm, _)| algorithm).into()
    }

    /// Returns the names of all algorithms, separated by commas.
    pub fn names() -> String {
        ALGORITHMS.map(|(_, name)| name).join(", ")
    }
}

/// A key of the set.
#[derive(Debug)]
struct PublicKey {
    /// Its id; may be empty.
    id: String,
    /// The only algorithm for which it may be used. `None` if it may be used for each that fits its type.
    algorithm: Option<Algorithm>,
    numbers: Numbers,
}

/// The numbers of a key.
#[derive(Debug)]
enum Numbers {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    /// A point of a curve, uncompressed.
    P256(Vec<u8>),
    P384(Vec<u8>),
}

/// The keys of a provider.
#[derive(Debug)]
pub struct ProviderKeys(Vec<PublicKey>);

#[derive(Deserialize)]
struct Set {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Jwk {
    kty: String,
    kid: String,
    r#use: String,
    alg: String,
    crv: String,
    n: String,
    e: String,
    x: String,
    y: String,
}

impl ProviderKeys {
    /// Reads a set. Leaves out keys that are not for signatures, or not supported.
    ///
    /// # Errors
    /// The text is not a key set.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        let set: Set = serde_json::from_slice(json)?;
        Ok(Self(set.keys.into_iter().filter_map(PublicKey::of).collect()))
    }

    /// Returns whether one of the keys made the signature of a message. An empty `id` means any key.
    pub fn verify(&self, algorithm: Algorithm, id: &str, message: &[u8], signature: &[u8]) -> bool {
        let candidates = self.0.iter().filter(|key| id.is_empty() || key.id == id);
        candidates
            .filter(|key| key.algorithm.is_none_or(|own| own == algorithm))
            .any(|key| key.numbers.verify(algorithm, message, signature))
    }
}

impl PublicKey {
    fn of(jwk: Jwk) -> Option<Self> {
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        let point = |bytes: usize| {
            let (x, y) = (decode(&jwk.x)?, decode(&jwk.y)?);
            (x.len() == bytes && y.len() == bytes).then(|| [vec![4], x, y].concat())
        };
        let numbers = match (&*jwk.kty, &*jwk.crv) {
            ("RSA", _) => Numbers::Rsa(RsaPublicKeyComponents { n: decode(&jwk.n)?, e: decode(&jwk.e)? }),
            ("EC", "P-256") => Numbers::P256(point(32)?),
            ("EC", "P-384") => Numbers::P384(point(48)?),
            _ => return None,
        };
        let is_meant = matches!(&*jwk.r#use, "" | "sig");
        let algorithm = if jwk.alg.is_empty() { None } else { Some(Algorithm::named(&jwk.alg)?) };
        is_meant.then_some(Self { id: jwk.kid, algorithm, numbers })
    }
}

impl Numbers {
    fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let rsa = |parameters: &RsaParameters| match self {
            Self::Rsa(key) => key.verify(parameters, message, signature).is_ok(),
            Self::P256(_) | Self::P384(_) => false,
        };
        let point = |algorithm: &'static dyn VerificationAlgorithm, point: &[u8]| {
            UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok()
        };
        match (algorithm, self) {
            (Algorithm::Rs256, _) => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            (Algorithm::Rs384, _) => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            (Algorithm::Rs512, _) => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            (Algorithm::Ps256, _) => rsa(&signature::RSA_PSS_2048_8192_SHA256),
            (Algorithm::Ps384, _) => rsa(&signature::RSA_PSS_2048_8192_SHA384),
            (Algorithm::Ps512, _) => rsa(&signature::RSA_PSS_2048_8192_SHA512),
            (Algorithm::Es256, Self::P256(key)) => point(&signature::ECDSA_P256_SHA256_FIXED, key),
            (Algorithm::Es384, Self::P384(key)) => point(&signature::ECDSA_P384_SHA384_FIXED, key),
            (Algorithm::Es256 | Algorithm::Es384, _) => false,
        }
    }
}
