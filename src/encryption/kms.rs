//! Keys that a KMS plugin keeps: the provider `kms` with `apiVersion: v2` (KEP-3299, "KMS v2 improvements").
//!
//! The plugin encrypts one random key when it is first needed. That key then encrypts the keys of files, so that new
//! files can be written while the plugin does not answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flotilla_proto::value::Value;
use parking_lot::Mutex;
use prost::Message;
use tokio::time::Instant;

use super::ENCRYPTED;
use super::secret_key::{Provider, SecretKey, random};
use crate::config::Span;
use crate::limits::{KMS_ANSWER_BYTES, KMS_KEYS_MAX, KMS_RETRY_INTERVAL, KMS_TIMEOUT};
use crate::outbound::grpc::{self, GrpcError};

/// Length of the key that the plugin encrypts, in bytes.
const KEY_BYTES: usize = 32;

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    /// `ok`, or the fault.
    #[prost(string, tag = "2")]
    pub(super) healthz: String,
    /// The key with which the plugin encrypts.
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plaintext: Vec<u8>,
    /// Names the call in logs.
    #[prost(string, tag = "2")]
    pub(super) uid: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(super) key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    pub(super) annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(super) uid: String,
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(super) annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plaintext: Vec<u8>,
}

/// Data that is encrypted with a key that the plugin has encrypted.
#[derive(Clone, PartialEq, Message)]
struct Encrypted {
    #[prost(bytes = "vec", tag = "1")]
    content: Vec<u8>,
    /// The key, and the data by which the plugin decrypts it.
    #[prost(message, optional, tag = "2")]
    key: Option<EncryptResponse>,
}

/// A key, and the answer of the plugin that encrypted it.
struct Issued {
    key: SecretKey,
    encrypted: EncryptResponse,
}

/// A KMS plugin: a service on this machine that encrypts.
pub(super) struct KmsPlugin {
    pub(super) name: String,
    socket: String,
    timeout: Duration,
    /// The key with which [`KmsPlugin::encrypt`] encrypts. `None` until it is first needed.
    issued: Mutex<Option<Arc<Issued>>>,
    /// Keys that the plugin has encrypted, by their ciphertexts.
    known: Mutex<BTreeMap<Vec<u8>, SecretKey>>,
}

impl KmsPlugin {
    /// Reads the configuration of a provider.
    pub(super) fn of(provider: &Value) -> Result<Self, String> {
        let (name, endpoint) = (provider.str_at(&["name"]), provider.str_at(&["endpoint"]));
        if provider.str_at(&["apiVersion"]) != "v2" {
            return Err("must have the apiVersion v2: v1 is not supported".to_owned());
        }
        if name.is_empty() || name.contains(':') {
            return Err(format!("has the name {name:?}: a name must not be empty, and has no colon"));
        }
        let path = endpoint.strip_prefix("unix:").map(|path| path.strip_prefix("//").unwrap_or(path));
        let socket = path.filter(|path| path.starts_with('/'));
        let socket = socket.ok_or_else(|| format!("has the endpoint {endpoint:?}, which is not unix:///PATH"))?;
        let timeout = match provider.str_at(&["timeout"]) {
            "" => KMS_TIMEOUT,
            text => text.parse::<Span>().map_err(|error| format!("has the timeout {text:?}: {error}"))?.0,
        };
        if timeout.is_zero() {
            return Err("has a timeout of zero".to_owned());
        }
        let (name, socket) = (name.to_owned(), socket.to_owned());
        Ok(Self { name, socket, timeout, issued: Mutex::default(), known: Mutex::default() })
    }

    /// Returns the prefix of data that this plugin has encrypted.
    pub(super) fn prefix(&self) -> String {
        format!("{}kms:v2:{}:", String::from_utf8_lossy(ENCRYPTED), self.name)
    }

    /// Encrypts by a key that the plugin has encrypted.
    ///
    /// # Errors
    /// The plugin does not answer, or refuses.
    pub(super) fn encrypt(&self, context: &[u8], plain: &[u8]) -> Result<Vec<u8>, String> {
        let issued = self.issued()?;
        let content = issued.key.encrypt(context, plain).ok_or("the system has no random numbers")?;
        Ok(Encrypted { content, key: Some(issued.encrypted.clone()) }.encode_to_vec())
    }

    /// Decrypts data that [`KmsPlugin::encrypt`] has encrypted.
    ///
    /// # Errors
    /// The plugin does not answer, refuses, or returns another key.
    pub(super) fn decrypt(&self, context: &[u8], encrypted: &[u8]) -> Result<Vec<u8>, String> {
        let Ok(Encrypted { content, key: Some(encrypted) }) = Encrypted::decode(encrypted) else {
            return Err(self.failed("what it has encrypted cannot be read"));
        };
        if let Some(key) = self.known.lock().get(&encrypted.ciphertext) {
            return key.decrypt(context, &content).ok_or_else(|| self.failed("its key does not decrypt this"));
        }
        let key = self.asked(&encrypted)?;
        let plain = key.decrypt(context, &content).ok_or_else(|| self.failed("it has returned another key"))?;
        self.remember(encrypted.ciphertext, key);
        Ok(plain)
    }

    /// Returns whether this was encrypted with the key of the plugin with which [`KmsPlugin::encrypt`] encrypts now.
    pub(super) fn is_current(&self, encrypted: &[u8]) -> bool {
        let Ok(Encrypted { key: Some(key), .. }) = Encrypted::decode(encrypted) else { return false };
        self.issued().is_ok_and(|issued| issued.encrypted.key_id == key.key_id)
    }

    /// Returns the key with which [`KmsPlugin::encrypt`] encrypts. Makes it on the first call.
    fn issued(&self) -> Result<Arc<Issued>, String> {
        let mut issued = self.issued.lock();
        if let Some(issued) = &*issued {
            return Ok(Arc::clone(issued));
        }
        let StatusResponse { version, healthz, key_id } = self.call("Status", &StatusRequest {})?;
        if !["v2", "v2beta1"].contains(&&*version) || healthz != "ok" {
            return Err(self.failed(&format!("it is not ready: version {version:?}, healthz {healthz:?}")));
        }
        let secret = random::<KEY_BYTES>().ok_or("the system has no random numbers")?.to_vec();
        let request = EncryptRequest { plaintext: secret.clone(), uid: uid() };
        let encrypted: EncryptResponse = self.call("Encrypt", &request)?;
        if encrypted.ciphertext.is_empty() || encrypted.key_id.is_empty() {
            return Err(self.failed("its answer has no ciphertext, or no key_id"));
        }
        if encrypted.key_id != key_id {
            let EncryptResponse { key_id: by, .. } = encrypted;
            return Err(self.failed(&format!("it encrypts with key_id {by:?}, and states {key_id:?}")));
        }
        let key = self.secret_key(secret);
        // Everything that will be stored depends on this key.
        if self.asked(&encrypted)?.secret != key.secret {
            return Err(self.failed("it does not decrypt what it has encrypted"));
        }
        self.remember(encrypted.ciphertext.clone(), key.clone());
        Ok(Arc::clone(issued.insert(Arc::new(Issued { key, encrypted }))))
    }

    /// Asks the plugin to decrypt a key that it has encrypted.
    fn asked(&self, encrypted: &EncryptResponse) -> Result<SecretKey, String> {
        let EncryptResponse { ciphertext, key_id, annotations } = encrypted.clone();
        let request = DecryptRequest { ciphertext, uid: uid(), key_id, annotations };
        let DecryptResponse { plaintext } = self.call("Decrypt", &request)?;
        match plaintext.len() {
            KEY_BYTES => Ok(self.secret_key(plaintext)),
            bytes => Err(self.failed(&format!("it has decrypted a key of {bytes} bytes"))),
        }
    }

    /// Remembers a key, so that a file can be opened while the plugin is away.
    fn remember(&self, ciphertext: Vec<u8>, key: SecretKey) {
        let mut known = self.known.lock();
        if known.len() >= KMS_KEYS_MAX {
            known.pop_first();
        }
        known.insert(ciphertext, key);
    }

    fn secret_key(&self, secret: Vec<u8>) -> SecretKey {
        SecretKey { provider: Provider::AesGcm, name: self.name.clone(), secret }
    }

    /// Calls a method of the plugin, and waits for the answer. The call has a thread of its own: the caller's thread
    /// may belong to a runtime, and cannot run a second one then.
    fn call<B: Message + Default>(&self, method: &str, message: &impl Message) -> Result<B, String> {
        let call = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(|error| error.to_string())?.block_on(self.answer(method, message))
        };
        let answer = thread::scope(|scope| scope.spawn(call).join());
        answer.unwrap_or_else(|_| Err("the call failed".to_owned())).map_err(|why| self.failed(&why))
    }

    /// Calls a method, and connects again until the timeout: the plugin may be starting, too.
    async fn answer<B: Message + Default>(&self, method: &str, message: &impl Message) -> Result<B, String> {
        let method = format!("v2.KeyManagementService/{method}");
        let until = Instant::now() + self.timeout;
        loop {
            let answer = grpc::call(&self.socket, &method, message, KMS_ANSWER_BYTES);
            let answer = tokio::time::timeout_at(until, answer).await;
            match answer.map_err(|_| format!("no answer within {:?}", self.timeout))? {
                Err(GrpcError::Connect(_) | GrpcError::Connection(_))
                    if Instant::now() + KMS_RETRY_INTERVAL < until =>
                {
                    tokio::time::sleep(KMS_RETRY_INTERVAL).await;
                }
                answer => return answer.map_err(|error| error.to_string()),
            }
        }
    }

    fn failed(&self, why: &str) -> String {
        format!("the KMS plugin {:?} at {}: {why}", self.name, self.socket)
    }
}

/// Returns a random name of a call.
fn uid() -> String {
    format!("{:032x}", rand::random::<u128>())
}
