//! The keys of an `EncryptionConfiguration` (Kubernetes documentation, "Encrypting Confidential Data at Rest"): those
//! for the data that this server stores ([`wrapping`]), and those of a kube-apiserver whose data is imported.
//!
//! An encrypted value begins with `k8s:enc:PROVIDER:VERSION:KEY:`. The resources that a configuration names are
//! ignored. To decrypt, the name of the key suffices, and keys of the same name are tried in turn. This server encrypts
//! its whole log and its snapshots, or nothing.

mod checks;
mod kms;
mod secret_key;
mod wrapping;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flotilla_proto::value::Value;
use flotilla_proto::yaml;

use self::kms::KmsPlugin;
use self::secret_key::{Provider, SecretKey};
pub use self::wrapping::StorageKeys;
use crate::pki::{PkiError, read_credential};

/// The beginning of every encrypted value.
pub const ENCRYPTED: &[u8] = b"k8s:enc:";
/// The provider that does not encrypt.
const IDENTITY: &str = "identity";
/// The provider that asks a KMS plugin.
const KMS: &str = "kms";

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
    plugins: Vec<Arc<KmsPlugin>>,
    /// The provider that encrypts new data: of the first providers of all rules, the first one that encrypts. `None` if
    /// none of them does.
    current: Option<Encrypting>,
}

/// A key or a plugin that encrypts.
#[derive(Clone)]
enum Encrypting {
    Key(SecretKey),
    Plugin(Arc<KmsPlugin>),
}

impl Encrypting {
    /// Returns the prefix of data that this has encrypted.
    fn prefix(&self) -> String {
        match self {
            Self::Key(key) => key.prefix(),
            Self::Plugin(plugin) => plugin.prefix(),
        }
    }
}

impl Keys {
    /// Reads the keys of a file by which kube-apiserver encrypts. Plugins and providers without keys are ignored.
    ///
    /// # Errors
    /// See [`EncryptionError`].
    pub fn read(path: &Path) -> Result<Self, EncryptionError> {
        Self::parsed(path, |root, _| Self::of(root, false))
    }

    /// Reads the keys of a file by which this server encrypts. The file must be valid for kube-apiserver.
    fn read_checked(path: &Path) -> Result<Self, EncryptionError> {
        Self::parsed(path, |root, duplicates| {
            duplicates.first().map_or(Ok(()), |twice| Err(twice.clone()))?;
            checks::check(root)?;
            Self::of(root, true)
        })
    }

    /// Parses a file, and reads the keys by `of`, which also gets the errors about fields that occur twice.
    fn parsed(
        path: &Path,
        of: impl FnOnce(&Value, &[String]) -> Result<Self, String>,
    ) -> Result<Self, EncryptionError> {
        let text = read_credential(path).map_err(EncryptionError::Read)?;
        let parsed = yaml::parse(text.as_bytes());
        let parsed = parsed.map_err(|source| EncryptionError::Yaml { path: path.to_owned(), source })?;
        of(&parsed.value, &parsed.duplicates).map_err(|why| EncryptionError::Invalid { path: path.to_owned(), why })
    }

    /// Collects the keys. Plugins are left out unless `with_plugins`.
    fn of(root: &Value, with_plugins: bool) -> Result<Self, String> {
        checks::check_kind(root)?;
        let mut keys = Self::default();
        for rule in root.list_at(&["resources"]) {
            for (position, provider) in rule.list_at(&["providers"]).iter().enumerate() {
                let added = keys.add(provider, with_plugins)?;
                if position == 0 && keys.current.is_none() {
                    keys.current = added;
                }
            }
        }
        Ok(keys)
    }

    /// Adds a provider. Returns the key or plugin that encrypts new data if the provider comes first. `None` if the
    /// provider does not encrypt.
    fn add(&mut self, provider: &Value, with_plugins: bool) -> Result<Option<Encrypting>, String> {
        if let Some(plugin) = provider.get(KMS).filter(|_| with_plugins) {
            let plugin = Arc::new(KmsPlugin::of(plugin)?);
            self.plugins.push(Arc::clone(&plugin));
            return Ok(Some(Encrypting::Plugin(plugin)));
        }
        let mut first = None;
        for (name, kind) in Provider::ALL {
            for key in provider.list_at(&[name, "keys"]) {
                let key = SecretKey::of(kind, key)?;
                first = first.or_else(|| Some(Encrypting::Key(key.clone())));
                self.keys.push(key);
            }
        }
        Ok(first)
    }

    /// Returns the value of a key of etcd, decrypted if it is encrypted.
    ///
    /// # Errors
    /// The value cannot be decrypted with these keys. The text names the provider and the key that it needs.
    pub fn decrypted(&self, context: &[u8], value: Vec<u8>) -> Result<Vec<u8>, String> {
        match value.starts_with(ENCRYPTED) {
            true => self.decrypt(context, &value, Some).ok_or_else(|| described(&value)),
            false => Ok(value),
        }
    }

    /// Decrypts with each key whose name the value states, until `accept` accepts the result. `None` if it accepts the
    /// result of no such key.
    fn decrypt(&self, context: &[u8], value: &[u8], accept: impl Fn(Vec<u8>) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        self.keys.iter().find_map(|key| {
            let encrypted = value.strip_prefix(key.prefix().as_bytes())?;
            key.decrypt(context, encrypted).and_then(&accept)
        })
    }
}

/// Returns a text that says by which provider and key a value is encrypted.
fn described(value: &[u8]) -> String {
    let rest = value.strip_prefix(ENCRYPTED).unwrap_or_default();
    let mut parts = rest.splitn(4, |byte| *byte == b':').map(String::from_utf8_lossy);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(provider), Some(version), Some(name)) if provider == KMS => {
            format!("by {provider}:{version} with {name:?}, which cannot be decrypted here")
        }
        (Some(provider), Some(version), Some(name)) => format!("by {provider}:{version} with the key {name:?}"),
        _ => "in an unknown way".to_owned(),
    }
}

#[cfg(test)]
#[path = "encryption_tests.rs"]
mod tests;
