//! Loads and creates the keys that sign and verify tokens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rsa::pkcs8::{EncodePrivateKey, LineEnding};
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::{PemObject, SectionKind};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::pki::{PkiError, publish_new, read_credential};
use crate::tasks;

/// The file name of the key in a directory of keys.
pub const KEY_FILE: &str = "sa.key";

/// Bits of the RSA keys that this server creates.
const RSA_BITS: usize = 2_048;

/// The reason why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Its file cannot be read or written.
    #[error(transparent)]
    File(#[from] PkiError),
    /// The file contains no key that can sign or verify tokens.
    #[error("{path}: {why}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The mistake.
        why: String,
    },
    /// No key could be generated.
    #[error("cannot make a key for service account tokens: {0}")]
    Generate(String),
}

/// A signature algorithm (RFC 7518, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
}

impl Algorithm {
    /// Returns its name in the header of a token.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
        }
    }

    const fn scheme(self) -> SignatureScheme {
        match self {
            Self::Rs256 => SignatureScheme::RSA_PKCS1_SHA256,
            Self::Es256 => SignatureScheme::ECDSA_NISTP256_SHA256,
            Self::Es384 => SignatureScheme::ECDSA_NISTP384_SHA384,
        }
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Self::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
        }
    }

    /// Returns the bytes of each half of an ECDSA signature; 0 for RSA.
    const fn half(self) -> usize {
        match self {
            Self::Rs256 => 0,
            Self::Es256 => 32,
            Self::Es384 => 48,
        }
    }
}

/// A public key that verifies tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationKey {
    /// Its id in headers of tokens: the digest of its encoding, as in the reference.
    pub id: String,
    /// Its algorithm.
    pub algorithm: Algorithm,
    public: Vec<u8>,
    jwk: serde_json::Value,
}

impl VerificationKey {
    /// Reads a `SubjectPublicKeyInfo` (RFC 5280) in DER.
    fn from_info(der: &[u8]) -> Result<Self, String> {
        let (_, info) = SubjectPublicKeyInfo::from_der(der).map_err(|error| error.to_string())?;
        let id = URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, der));
        let public = info.subject_public_key.data.to_vec();
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (algorithm, parts) = match info.parsed().map_err(|error| error.to_string())? {
            PublicKey::RSA(key) if key.key_size() >= RSA_BITS => {
                let trimmed = |bytes: &[u8]| encode(bytes.strip_prefix(&[0]).unwrap_or(bytes));
                let parts = vec![("kty", "RSA".into()), ("n", trimmed(key.modulus)), ("e", trimmed(key.exponent))];
                (Algorithm::Rs256, parts)
            }
            PublicKey::EC(point) => {
                let (algorithm, curve) = match point.key_size() {
                    256 => (Algorithm::Es256, "P-256"),
                    384 => (Algorithm::Es384, "P-384"),
                    bits => return Err(format!("elliptic curve of {bits} bits")),
                };
                let (x, y) = match point.data() {
                    [4, xy @ ..] if xy.len() == 2 * algorithm.half() => xy.split_at(algorithm.half()),
                    _ => return Err("compressed point".into()),
                };
                (algorithm, vec![("kty", "EC".into()), ("crv", curve.into()), ("x", encode(x)), ("y", encode(y))])
            }
            _ => return Err("neither RSA of at least 2048 bits nor EC on P-256 or P-384".into()),
        };
        let fixed = [("use", "sig".to_owned()), ("kid", id.clone()), ("alg", algorithm.name().to_owned())];
        let jwk = fixed
            .into_iter()
            .chain(parts)
            .map(|(name, text)| (name.to_owned(), serde_json::Value::from(text)))
            .collect();
        Ok(Self { id, algorithm, public, jwk })
    }

    /// Returns whether this key made the signature of a message.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(self.algorithm.verification(), &self.public).verify(message, signature).is_ok()
    }

    /// Returns the key as a JSON Web Key (RFC 7517).
    pub const fn jwk(&self) -> &serde_json::Value {
        &self.jwk
    }
}

/// A private key that tokens are signed with.
#[derive(Debug, Clone)]
pub struct SigningKey {
    key: Arc<dyn rustls::sign::SigningKey>,
    public: VerificationKey,
}

impl SigningKey {
    /// Loads `sa.key` from a directory, or creates it. If several servers do so at once, all get the same key.
    ///
    /// It is an RSA key because every verifier supports RS256, including those of cloud providers.
    ///
    /// # Errors
    /// The file cannot be read or written, or contains no usable key.
    pub fn open(dir: &Path) -> Result<Self, KeyError> {
        SpareKey::prepare(dir).open(dir)
    }

    fn open_with(dir: &Path, spare: impl FnOnce() -> Result<String, KeyError>) -> Result<Self, KeyError> {
        let path = dir.join(KEY_FILE);
        let pem = if path.exists() { read_credential(&path)? } else { publish_new(&path, &spare()?, 0o600)? };
        Self::parse(&pem).map_err(|why| KeyError::Unusable { path, why })
    }

    /// Loads a private key from a file: PKCS #8, PKCS #1 or SEC 1 in PEM.
    ///
    /// # Errors
    /// The file cannot be read, or contains no usable key.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        Self::parse(&read_credential(path)?).map_err(|why| KeyError::Unusable { path: path.to_owned(), why })
    }

    pub(in crate::access) fn parse(pem: &str) -> Result<Self, String> {
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
        let key = rustls::crypto::ring::sign::any_supported_type(&der).map_err(|error| error.to_string())?;
        let info = key.public_key().ok_or("no public key in it")?;
        Ok(Self { public: VerificationKey::from_info(&info)?, key })
    }

    /// Returns the public key.
    pub const fn public(&self) -> &VerificationKey {
        &self.public
    }

    /// Returns the signature of a message in the form of tokens.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let algorithm = self.public.algorithm;
        let signer = self.key.choose_scheme(&[algorithm.scheme()]);
        let signer =
            signer.ok_or_else(|| rustls::Error::General("the key does not support its signature scheme".into()))?;
        let signature = signer.sign(message)?;
        match algorithm.half() {
            0 => Ok(signature),
            half => fixed(&signature, half).ok_or_else(|| rustls::Error::General("malformed signature".into())),
        }
    }
}

/// A key that a thread generates while the server starts, because generating takes a while.
#[derive(Debug, Default)]
pub struct SpareKey(Option<std::thread::JoinHandle<Result<String, KeyError>>>);

impl SpareKey {
    /// Begins to generate a key unless the directory has one. Writes nothing yet.
    pub fn prepare(dir: &Path) -> Self {
        let is_missing = !dir.join(KEY_FILE).exists();
        Self(is_missing.then(|| tasks::thread("signing-key", None, generate).ok()).flatten())
    }

    /// Does the same as [`SigningKey::open`], and uses this key if the directory has none.
    ///
    /// # Errors
    /// As [`SigningKey::open`].
    pub fn open(self, dir: &Path) -> Result<SigningKey, KeyError> {
        SigningKey::open_with(dir, || match self.0 {
            None => generate(),
            Some(thread) => thread.join().unwrap_or_else(|_| Err(KeyError::Generate("the thread ended".into()))),
        })
    }
}

/// Generates an RSA key, as PKCS #8 in PEM.
fn generate() -> Result<String, KeyError> {
    let failed = |error: String| KeyError::Generate(error);
    let key = rsa::PrivateKey::new(&mut getrandom::SysRng, RSA_BITS).map_err(|e| failed(e.to_string()))?;
    Ok(key.to_pkcs8_pem(LineEnding::LF).map_err(|e| failed(e.to_string()))?.to_string())
}

/// Converts an ECDSA signature from ASN.1 to two numbers of fixed size (RFC 7518, section 3.4). `None` if it is
/// malformed.
fn fixed(signature: &[u8], half: usize) -> Option<Vec<u8>> {
    // SEQUENCE { INTEGER r, INTEGER s }; for these curves it is always shorter than 128 bytes.
    let [0x30, length, rest @ ..] = signature else { return None };
    let mut rest = rest;
    if usize::from(*length) != rest.len() {
        return None;
    }
    let mut out = Vec::with_capacity(2 * half);
    for _ in 0..2 {
        let [0x02, length, tail @ ..] = rest else { return None };
        let (number, tail) = tail.split_at_checked(usize::from(*length))?;
        let number = number.strip_prefix(&[0]).unwrap_or(number);
        out.resize(out.len() + half.checked_sub(number.len())?, 0);
        out.extend_from_slice(number);
        rest = tail;
    }
    rest.is_empty().then_some(out)
}

/// The public keys that verify tokens.
#[derive(Debug, Clone, Default)]
pub struct KeySet(Vec<VerificationKey>);

impl KeySet {
    /// Reads the keys in some files.
    ///
    /// # Errors
    /// A file cannot be read, or contains no usable key.
    pub fn read(files: &[PathBuf]) -> Result<Self, KeyError> {
        let mut keys = Vec::new();
        for path in files {
            let found = read_all(&read_credential(path)?);
            let found = found.map_err(|why| KeyError::Unusable { path: path.clone(), why })?;
            if found.is_empty() {
                return Err(KeyError::Unusable { path: path.clone(), why: "no key in it".into() });
            }
            keys.extend(found);
        }
        Ok(Self(keys))
    }

    /// Returns the public key of `signing` and the further keys, each once.
    pub fn new(signing: &SigningKey, further: Self) -> Self {
        let mut keys = vec![signing.public().clone()];
        keys.extend(further.0);
        let mut seen = std::collections::BTreeSet::new();
        keys.retain(|key| seen.insert(key.id.clone()));
        Self(keys)
    }

    /// Returns the keys that may have signed a token with this id in its header; all keys if the id is empty.
    pub fn candidates<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a VerificationKey> {
        self.0.iter().filter(move |key| id.is_empty() || key.id == id)
    }

    /// Returns the keys as a JSON Web Key Set (RFC 7517), for `/openid/v1/jwks`.
    pub fn jwks(&self) -> String {
        serde_json::json!({ "keys": self.0.iter().map(VerificationKey::jwk).collect::<Vec<_>>() }).to_string()
    }

    /// Returns the algorithms of the keys, each once, sorted.
    pub fn algorithms(&self) -> Vec<&'static str> {
        let names: std::collections::BTreeSet<_> = self.0.iter().map(|key| key.algorithm.name()).collect();
        names.into_iter().collect()
    }
}

/// Returns all public keys in a PEM text, including those of private keys and certificates.
fn read_all(pem: &str) -> Result<Vec<VerificationKey>, String> {
    let mut keys = vec![];
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem.as_bytes()) {
        let (kind, der) = section.map_err(|error| error.to_string())?;
        match kind {
            SectionKind::PublicKey => keys.push(VerificationKey::from_info(&der)?),
            SectionKind::Certificate => {
                let (_, certificate) = X509Certificate::from_der(&der).map_err(|error| error.to_string())?;
                keys.push(VerificationKey::from_info(certificate.public_key().raw)?);
            }
            SectionKind::RsaPrivateKey | SectionKind::PrivateKey | SectionKind::EcPrivateKey => {
                let der = PrivateKeyDer::from_pem(kind, der).ok_or("malformed private key")?;
                let key = rustls::crypto::ring::sign::any_supported_type(&der).map_err(|error| error.to_string())?;
                keys.push(VerificationKey::from_info(&key.public_key().ok_or("no public key in it")?)?);
            }
            _ => {}
        }
    }
    Ok(keys)
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
