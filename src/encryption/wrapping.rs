//! Encryption of what this server stores.
//!
//! The store makes a key for each of its files. These keys are encrypted with those of the configuration, in the form
//! in which kube-apiserver encrypts objects.

use std::io;
use std::path::Path;

use flotilla_cluster::KeyWrapping;

use super::{ENCRYPTED, EncryptionError, Keys, Provider, SecretKey};

/// What providers authenticate together with the key of a file.
const CONTEXT: &[u8] = b"flotilla file key";
/// Bytes of a digest by which a key that was decrypted with the wrong one is recognized: `aescbc` cannot tell.
const DIGEST_BYTES: usize = 8;

/// The keys that encrypt what this server stores, and those with which it was encrypted before.
pub struct StorageKeys(Keys);

impl StorageKeys {
    /// Reads the keys of a configuration file.
    ///
    /// # Errors
    /// See [`EncryptionError`]. External services (`kms`) are not supported.
    pub fn read(path: &Path) -> Result<Self, EncryptionError> {
        let keys = Keys::read(path)?;
        match keys.asks_service {
            true => {
                let why = "keys of external services (kms) are not supported".to_owned();
                Err(EncryptionError::Invalid { path: path.to_owned(), why })
            }
            false => Ok(Self(keys)),
        }
    }

    fn try_open(&self, wrapped: &[u8]) -> Result<Vec<u8>, String> {
        if !wrapped.starts_with(ENCRYPTED) {
            return Err("in an unknown way".to_owned());
        }
        unchecked(self.0.open(CONTEXT, wrapped.to_vec())?).ok_or_else(|| "by another key of this name".to_owned())
    }
}

impl std::fmt::Debug for StorageKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.0.keys.iter().map(|key| &key.name);
        f.debug_list().entries(names).finish() // the keys themselves are secret
    }
}

impl KeyWrapping for StorageKeys {
    fn wrap(&self, key: &[u8]) -> Option<io::Result<Vec<u8>>> {
        let first = self.0.first.as_ref()?;
        let sealed = first.seal(CONTEXT, &[key, &digest(key)].concat());
        let sealed = sealed.ok_or_else(|| io::Error::other("the system has no random numbers"));
        Some(sealed.map(|sealed| [prefix(first).as_bytes(), &sealed].concat()))
    }

    fn unwrap(&self, wrapped: &[u8]) -> io::Result<Vec<u8>> {
        self.try_open(wrapped).map_err(|how| {
            let text = format!("it is encrypted {how}, which --encryption-provider-config does not have");
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    fn is_current(&self, wrapped: &[u8]) -> bool {
        self.0.first.as_ref().is_some_and(|first| {
            let sealed = wrapped.strip_prefix(prefix(first).as_bytes());
            sealed.and_then(|sealed| unchecked(first.open(CONTEXT, sealed)?)).is_some()
        })
    }
}

/// Returns the beginning of what a key has encrypted.
fn prefix(key: &SecretKey) -> String {
    let name = Provider::ALL.iter().find(|(_, provider)| *provider == key.provider).map_or("", |(name, _)| name);
    format!("{}{name}:v1:{}:", String::from_utf8_lossy(ENCRYPTED), key.name)
}

fn digest(key: &[u8]) -> [u8; DIGEST_BYTES] {
    let digest = ring::digest::digest(&ring::digest::SHA256, key);
    std::array::from_fn(|at| digest.as_ref()[at])
}

/// Returns the key without its digest; `None` if the digest is that of another key.
fn unchecked(mut key: Vec<u8>) -> Option<Vec<u8>> {
    let found = key.split_off(key.len().checked_sub(DIGEST_BYTES)?);
    (found == digest(&key)).then_some(key)
}
