//! Encryption of the data that this server stores.
//!
//! The store makes a key for each of its files. These keys are encrypted with those of the configuration, in the form
//! in which kube-apiserver encrypts objects. Keys that a KMS plugin encrypts have a form of their own, with the same
//! prefix.

use std::io;
use std::path::Path;

use flotilla_cluster::KeyWrapping;

use super::{Encrypting, EncryptionError, Keys, described};

/// The context that providers authenticate together with the key of a file.
const CONTEXT: &[u8] = b"flotilla file key";
/// Bytes of the digest after a key. The digest shows whether the key was decrypted correctly, which `aescbc` cannot
/// always tell.
const DIGEST_BYTES: usize = 8;

/// The keys for the data that this server stores: the present one, and former ones.
pub struct StorageKeys(pub(super) Keys);

impl StorageKeys {
    /// Reads the keys of a configuration file.
    ///
    /// # Errors
    /// See [`EncryptionError`].
    pub fn read(path: &Path) -> Result<Self, EncryptionError> {
        Keys::read_checked(path).map(Self)
    }

    /// Returns the prefix that names the provider and the key that encrypt new data, as in `k8s:enc:aescbc:v1:NAME:`.
    /// `None` if new data is not encrypted.
    pub fn encrypting(&self) -> Option<String> {
        self.0.current.as_ref().map(Encrypting::prefix)
    }

    /// Decrypts the key of a file. The error names the key that encrypted it, or says why the plugin does not decrypt
    /// it.
    fn decrypt(&self, wrapped: &[u8]) -> Result<Vec<u8>, String> {
        for plugin in &self.0.plugins {
            if let Some(encrypted) = wrapped.strip_prefix(plugin.prefix().as_bytes()) {
                let key = without_digest(plugin.decrypt(CONTEXT, encrypted)?);
                return key.ok_or_else(|| "the key of the file does not match its digest".to_owned());
            }
        }
        self.0.decrypt(CONTEXT, wrapped, without_digest).ok_or_else(|| {
            format!("it is encrypted {}: --encryption-provider-config has no such key", described(wrapped))
        })
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
        let current = self.0.current.as_ref()?;
        let plain = [key, &digest(key)].concat();
        let encrypted = match current {
            Encrypting::Key(key) => {
                key.encrypt(CONTEXT, &plain).ok_or_else(|| "the system has no random numbers".to_owned())
            }
            Encrypting::Plugin(plugin) => plugin.encrypt(CONTEXT, &plain),
        };
        let wrapped = encrypted.map(|encrypted| [current.prefix().as_bytes(), &encrypted].concat());
        Some(wrapped.map_err(io::Error::other))
    }

    fn unwrap(&self, wrapped: &[u8]) -> io::Result<Vec<u8>> {
        self.decrypt(wrapped).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
    }

    fn is_current(&self, wrapped: &[u8]) -> bool {
        let Some(current) = &self.0.current else { return false };
        let Some(encrypted) = wrapped.strip_prefix(current.prefix().as_bytes()) else { return false };
        match current {
            Encrypting::Key(key) => key.decrypt(CONTEXT, encrypted).and_then(without_digest).is_some(),
            Encrypting::Plugin(plugin) => plugin.is_current(encrypted),
        }
    }
}

fn digest(key: &[u8]) -> [u8; DIGEST_BYTES] {
    let digest = ring::digest::digest(&ring::digest::SHA256, key);
    std::array::from_fn(|at| digest.as_ref()[at])
}

/// Returns the key that comes before its digest. `None` if the digest is missing, or is that of another key.
fn without_digest(mut key: Vec<u8>) -> Option<Vec<u8>> {
    let found = key.split_off(key.len().checked_sub(DIGEST_BYTES)?);
    (found == digest(&key)).then_some(key)
}
