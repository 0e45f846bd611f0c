//! Encryption of what this server stores.
//!
//! The store makes a key for each of its files. These keys are encrypted with those of the configuration, in the form
//! in which kube-apiserver encrypts objects; by a service of keys, in a form of its own with the same beginning.

use std::io;
use std::path::Path;

use flotilla_cluster::KeyWrapping;

use super::{ENCRYPTED, Encrypting, EncryptionError, Keys, Provider, parts};

/// What providers authenticate together with the key of a file.
const CONTEXT: &[u8] = b"flotilla file key";
/// Bytes of a digest by which a key that was decrypted with the wrong one is recognized: `aescbc` cannot tell.
const DIGEST_BYTES: usize = 8;
/// The provider and the version of what a service of keys has encrypted.
const SERVICE_SCHEME: &str = "kms:v2";

/// The keys that encrypt what this server stores, and those with which it was encrypted before.
pub struct StorageKeys(pub(super) Keys);

impl StorageKeys {
    /// Reads the keys of a configuration file.
    ///
    /// # Errors
    /// See [`EncryptionError`].
    pub fn read(path: &Path) -> Result<Self, EncryptionError> {
        Keys::read(path).map(Self)
    }

    /// Returns what encrypts, as in `k8s:enc:aescbc:v1:NAME:`; `None` if nothing is encrypted any more.
    pub fn encrypting(&self) -> Option<String> {
        self.0.first.as_ref().map(prefix)
    }

    /// Decrypts the key of a file. The error says how it is encrypted, or why the service does not decrypt it.
    fn try_open(&self, wrapped: &[u8]) -> Result<Vec<u8>, String> {
        let lacking = |how: &str| format!("it is encrypted {how}, which --encryption-provider-config does not have");
        let (scheme, name, sealed) = parts(wrapped).ok_or_else(|| lacking("in an unknown way"))?;
        if scheme != SERVICE_SCHEME {
            let opened = self.0.open(CONTEXT, wrapped.to_vec()).map_err(|how| lacking(&how))?;
            return without_digest(opened).ok_or_else(|| lacking(&format!("by another key than {name:?}")));
        }
        let services = self.0.services.iter().filter(|service| service.name == name);
        let mut failure = lacking(&format!("by the service of keys {name:?}"));
        for service in services {
            match service.open(CONTEXT, sealed) {
                Ok(opened) => match opened.and_then(without_digest) {
                    Some(key) => return Ok(key),
                    None => failure = lacking(&format!("by another service than {name:?}")),
                },
                Err(why) => failure = why,
            }
        }
        Err(failure)
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
        let plain = [key, &digest(key)].concat();
        let sealed = match first {
            Encrypting::Key(key) => {
                key.seal(CONTEXT, &plain).ok_or_else(|| "the system has no random numbers".to_owned())
            }
            Encrypting::Service(service) => service.seal(CONTEXT, &plain),
        };
        Some(sealed.map(|sealed| [prefix(first).as_bytes(), &sealed].concat()).map_err(io::Error::other))
    }

    fn unwrap(&self, wrapped: &[u8]) -> io::Result<Vec<u8>> {
        self.try_open(wrapped).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
    }

    fn is_current(&self, wrapped: &[u8]) -> bool {
        let Some(first) = &self.0.first else { return false };
        let Some(sealed) = wrapped.strip_prefix(prefix(first).as_bytes()) else { return false };
        match first {
            Encrypting::Key(key) => key.open(CONTEXT, sealed).and_then(without_digest).is_some(),
            Encrypting::Service(service) => service.is_current(sealed),
        }
    }
}

/// Returns the beginning of what is encrypted so.
fn prefix(by: &Encrypting) -> String {
    let beginning = String::from_utf8_lossy(ENCRYPTED);
    match by {
        Encrypting::Service(service) => format!("{beginning}{SERVICE_SCHEME}:{}:", service.name),
        Encrypting::Key(key) => {
            let known = Provider::ALL.iter().find(|(_, provider)| *provider == key.provider);
            format!("{beginning}{}:v1:{}:", known.map_or("", |(name, _)| name), key.name)
        }
    }
}

fn digest(key: &[u8]) -> [u8; DIGEST_BYTES] {
    let digest = ring::digest::digest(&ring::digest::SHA256, key);
    std::array::from_fn(|at| digest.as_ref()[at])
}

/// Returns the key that comes before its digest; `None` if the digest is that of another key.
fn without_digest(mut key: Vec<u8>) -> Option<Vec<u8>> {
    let found = key.split_off(key.len().checked_sub(DIGEST_BYTES)?);
    (found == digest(&key)).then_some(key)
}
