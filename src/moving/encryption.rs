//! Decrypts values that kube-apiserver has encrypted at rest, with the keys of an `EncryptionConfiguration` (Kubernetes
//! documentation, "Encrypting Confidential Data at Rest").
//!
//! An encrypted value begins with `k8s:enc:PROVIDER:VERSION:KEY:`. The resources of a provider are ignored: the name of
//! the key suffices, and keys of the same name are tried in turn.

use std::path::{Path, PathBuf};

use aes::{Aes128, Aes192, Aes256};
use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{AesGcm, KeyInit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::consts::U12;
use cbc::cipher::{BlockDecryptMut, KeyIvInit};
use crypto_secretbox::XSalsa20Poly1305;
use flotilla_proto::value::Value;
use flotilla_proto::yaml;

use super::stored::ENCRYPTED;
use crate::pki::{PkiError, read_credential};

/// Length of an AES-CBC initialization vector, in bytes.
const VECTOR_BYTES: usize = 16;
/// Length of an AES-GCM nonce, in bytes.
const GCM_NONCE_BYTES: usize = 12;
/// Length of a secretbox nonce, in bytes.
const BOX_NONCE_BYTES: usize = 24;

/// The reason why an `EncryptionConfiguration` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EncryptionError {
    /// The file cannot be read.
    #[error("the encryption configuration cannot be read")]
    Read(#[source] PkiError),
    /// The file is not valid YAML.
    #[error("the encryption configuration {path} is no YAML")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// The YAML error.
        source: yaml::Error,
    },
    /// The content is invalid.
    #[error("the encryption configuration {path} cannot be used: {why}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    AesCbc,
    AesGcm,
    SecretBox,
}

const PROVIDERS: [(&str, Provider); 3] =
    [("aescbc", Provider::AesCbc), ("aesgcm", Provider::AesGcm), ("secretbox", Provider::SecretBox)];

struct Key {
    provider: Provider,
    name: String,
    secret: Vec<u8>,
}

/// The keys of the configuration.
#[derive(Default)]
pub(super) struct Keys(Vec<Key>);

impl Keys {
    /// Reads the keys of a configuration file.
    pub(super) fn read(path: &Path) -> Result<Self, EncryptionError> {
        let text = read_credential(path).map_err(EncryptionError::Read)?;
        let parsed = yaml::parse(text.as_bytes());
        let root = parsed.map_err(|source| EncryptionError::Yaml { path: path.to_owned(), source })?.value;
        Self::of(&root).map_err(|why| EncryptionError::Invalid { path: path.to_owned(), why })
    }

    fn of(root: &Value) -> Result<Self, String> {
        if root.str_at(&["kind"]) != "EncryptionConfiguration" {
            return Err("its kind is not EncryptionConfiguration".to_owned());
        }
        let mut keys = Self::default();
        for provider in root.list_at(&["resources"]).iter().flat_map(|of| of.list_at(&["providers"])) {
            for (name, kind) in PROVIDERS {
                for key in provider.list_at(&[name, "keys"]) {
                    let (key_name, secret) = (key.str_at(&["name"]).to_owned(), key.str_at(&["secret"]));
                    let secret =
                        STANDARD.decode(secret).map_err(|_| format!("key {key_name:?} of {name} is no base64"))?;
                    let fits = match kind {
                        Provider::SecretBox => secret.len() == 32,
                        _ => [16, 24, 32].contains(&secret.len()),
                    };
                    if !fits {
                        return Err(format!("key {key_name:?} of {name} has {} bytes", secret.len()));
                    }
                    keys.0.push(Key { provider: kind, name: key_name, secret });
                }
            }
        }
        Ok(keys)
    }

    /// Returns the value of a key, decrypted if it is encrypted.
    ///
    /// # Errors
    /// The value cannot be decrypted with these keys. The text names the provider and the key that it needs.
    pub(super) fn open(&self, key: &[u8], value: Vec<u8>) -> Result<Vec<u8>, String> {
        if !value.starts_with(ENCRYPTED) {
            return Ok(value);
        }
        let (scheme, name, sealed) = parts(&value).ok_or("in an unknown way")?;
        let Some((_, provider)) = PROVIDERS.iter().find(|(of, _)| scheme == format!("{of}:v1")) else {
            // Only the external service that has encrypted the value can decrypt it.
            return Err(format!("by {scheme} with {name:?}, which cannot be decrypted here"));
        };
        let mut keys = self.0.iter().filter(|known| known.provider == *provider && known.name == name);
        let opened = keys.find_map(|known| known.open(key, sealed));
        opened.ok_or_else(|| format!("by {scheme} with the key {name:?}"))
    }
}

/// Splits an encrypted value into the provider with its version, the name of the key, and the ciphertext.
fn parts(value: &[u8]) -> Option<(String, String, &[u8])> {
    let rest = value.strip_prefix(ENCRYPTED)?;
    let mut colons = rest.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at);
    let (_, second, third) = (colons.next()?, colons.next()?, colons.next()?);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    Some((text(&rest[..second])?, text(&rest[second + 1..third])?, &rest[third + 1..]))
}

impl Key {
    fn open(&self, key: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        match (self.provider, self.secret.len()) {
            (Provider::AesCbc, 16) => cbc_open::<cbc::Decryptor<Aes128>>(&self.secret, sealed),
            (Provider::AesCbc, 24) => cbc_open::<cbc::Decryptor<Aes192>>(&self.secret, sealed),
            (Provider::AesCbc, _) => cbc_open::<cbc::Decryptor<Aes256>>(&self.secret, sealed),
            (Provider::AesGcm, 16) => gcm_open::<AesGcm<Aes128, U12>>(&self.secret, key, sealed),
            (Provider::AesGcm, 24) => gcm_open::<AesGcm<Aes192, U12>>(&self.secret, key, sealed),
            (Provider::AesGcm, _) => gcm_open::<AesGcm<Aes256, U12>>(&self.secret, key, sealed),
            (Provider::SecretBox, _) => {
                let (nonce, sealed) = sealed.split_at_checked(BOX_NONCE_BYTES)?;
                let nonce: [u8; BOX_NONCE_BYTES] = nonce.try_into().ok()?;
                XSalsa20Poly1305::new_from_slice(&self.secret).ok()?.decrypt(&nonce.into(), sealed).ok()
            }
        }
    }
}

fn cbc_open<D: BlockDecryptMut + KeyIvInit>(secret: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (vector, sealed) = sealed.split_at_checked(VECTOR_BYTES)?;
    D::new_from_slices(secret, vector).ok()?.decrypt_padded_vec_mut::<Pkcs7>(sealed).ok()
}

/// The etcd key is authenticated together with the value, so that values cannot be swapped.
fn gcm_open<G: Aead<NonceSize = U12> + KeyInit>(secret: &[u8], key: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_at_checked(GCM_NONCE_BYTES)?;
    let nonce: [u8; GCM_NONCE_BYTES] = nonce.try_into().ok()?;
    let payload = Payload { msg: sealed, aad: key };
    G::new_from_slice(secret).ok()?.decrypt(&nonce.into(), payload).ok()
}

#[cfg(test)]
#[path = "encryption_tests.rs"]
mod tests;
