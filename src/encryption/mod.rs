//! The keys of an `EncryptionConfiguration` (Kubernetes documentation, "Encrypting Confidential Data at Rest"): those
//! that encrypt what this server stores ([`wrapping`]), and those of a kube-apiserver whose data moves in.
//!
//! An encrypted value begins with `k8s:enc:PROVIDER:VERSION:KEY:`. The resources that a configuration names are
//! ignored. To decrypt, the name of the key suffices, and keys of the same name are tried in turn. This server encrypts
//! its whole log and its snapshots, or nothing.

mod secret_key;
mod service;
mod wrapping;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_proto::value::Value;
use flotilla_proto::yaml;

use self::secret_key::{Provider, SecretKey};
use self::service::Service;
pub use self::wrapping::StorageKeys;
use crate::pki::{PkiError, read_credential};

/// The beginning of every encrypted value.
pub const ENCRYPTED: &[u8] = b"k8s:enc:";
/// The provider that does not encrypt.
const IDENTITY: &str = "identity";
/// The provider that asks an external service.
const SERVICE: &str = "kms";

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

/// The keys of the configuration.
#[derive(Default)]
pub struct Keys {
    keys: Vec<SecretKey>,
    services: Vec<Arc<Service>>,
    /// What encrypts: of the providers that come first for a resource, the first one that does; `None` if none does.
    first: Option<Encrypting>,
}

/// What encrypts.
#[derive(Clone)]
enum Encrypting {
    Key(SecretKey),
    Service(Arc<Service>),
}

impl Keys {
    /// Reads the keys of a configuration file.
    ///
    /// # Errors
    /// See [`EncryptionError`].
    pub fn read(path: &Path) -> Result<Self, EncryptionError> {
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
        if root.list_at(&["resources"]).is_empty() {
            return Err("it names no resources".to_owned());
        }
        for (index, rule) in root.list_at(&["resources"]).iter().enumerate() {
            let providers = rule.list_at(&["providers"]);
            if providers.is_empty() {
                return Err(format!("resources[{index}] has no providers"));
            }
            for (position, provider) in providers.iter().enumerate() {
                let added =
                    keys.add(provider).map_err(|why| format!("resources[{index}].providers[{position}] {why}"))?;
                if position == 0 && keys.first.is_none() {
                    keys.first = added;
                }
            }
        }
        Ok(keys)
    }

    /// Adds a provider. Returns what encrypts if it comes first; `None` if it does not encrypt.
    fn add(&mut self, provider: &Value) -> Result<Option<Encrypting>, String> {
        let has = |name: &str| provider.get(name).is_some_and(|value| !value.is_null());
        let known = Provider::ALL.iter().filter(|(name, _)| has(name)).collect::<Vec<_>>();
        let count = known.len() + usize::from(has(IDENTITY)) + usize::from(has(SERVICE));
        if count != 1 {
            return Err("must be one of aescbc, aesgcm, secretbox, identity and kms".to_owned());
        }
        if let Some(service) = provider.get(SERVICE).filter(|_| has(SERVICE)) {
            let service = Arc::new(Service::of(service).map_err(|why| format!("{SERVICE} {why}"))?);
            self.services.push(service.clone());
            return Ok(Some(Encrypting::Service(service)));
        }
        let Some((name, kind)) = known.first() else { return Ok(None) };
        let added = provider.list_at(&[name, "keys"]).iter().map(|key| secret_key(name, *kind, key));
        let added = added.collect::<Result<Vec<_>, _>>()?;
        let first = added.first().cloned().ok_or("has no keys")?;
        self.keys.extend(added);
        Ok(Some(Encrypting::Key(first)))
    }

    /// Returns the value of a key of etcd, decrypted if it is encrypted.
    ///
    /// # Errors
    /// The value cannot be decrypted with these keys. The text names the provider and the key that it needs.
    pub fn open(&self, context: &[u8], value: Vec<u8>) -> Result<Vec<u8>, String> {
        if !value.starts_with(ENCRYPTED) {
            return Ok(value);
        }
        let (scheme, name, sealed) = parts(&value).ok_or("in an unknown way")?;
        let Some((_, provider)) = Provider::ALL.iter().find(|(of, _)| scheme == format!("{of}:v1")) else {
            // What kube-apiserver stores with a service of keys has a form of its own.
            return Err(format!("by {scheme} with {name:?}, which cannot be decrypted here"));
        };
        let mut keys = self.keys.iter().filter(|known| known.provider == *provider && known.name == name);
        let opened = keys.find_map(|known| known.open(context, sealed));
        opened.ok_or_else(|| format!("by {scheme} with the key {name:?}"))
    }
}

/// Reads a key of a provider.
fn secret_key(of: &str, provider: Provider, key: &Value) -> Result<SecretKey, String> {
    let name = key.str_at(&["name"]).to_owned();
    if name.is_empty() || name.contains(':') {
        return Err(format!("has a key with the name {name:?}: a name must not be empty, and has no colon"));
    }
    let secret = STANDARD.decode(key.str_at(&["secret"]));
    let secret = secret.map_err(|_| format!("has the key {name:?} of {of}, which is no base64"))?;
    match provider.takes(secret.len()) {
        true => Ok(SecretKey { provider, name, secret }),
        false => Err(format!("has the key {name:?} of {of}, which has {} bytes", secret.len())),
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

#[cfg(test)]
#[path = "encryption_tests.rs"]
mod tests;
