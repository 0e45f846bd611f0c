//! Keys that an external service keeps: the provider `kms` with `apiVersion: v2` (KEP-3299, "KMS v2 improvements").
//!
//! The service encrypts one random key when it is first needed. That key then encrypts those of files: new files need
//! no service that answers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flotilla_proto::value::Value;
use parking_lot::Mutex;
use prost::Message;
use ring::rand::SecureRandom;

use super::secret_key::{Provider, SecretKey};
use crate::config::Span;
use crate::limits::{KMS_ANSWER_BYTES, KMS_KEYS_MAX};
use crate::outbound::grpc;

/// How long a call may take unless the configuration says otherwise, as in kube-apiserver.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Length of the key that the service encrypts, in bytes.
const KEY_BYTES: usize = 32;

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    /// `ok`, or what is wrong.
    #[prost(string, tag = "2")]
    pub(super) healthz: String,
    /// The key with which the service encrypts.
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

/// What was encrypted with a key that the service has encrypted.
#[derive(Clone, PartialEq, Message)]
struct Sealed {
    #[prost(bytes = "vec", tag = "1")]
    content: Vec<u8>,
    /// The key, and what the service needs to decrypt it.
    #[prost(message, optional, tag = "2")]
    key: Option<EncryptResponse>,
}

/// A key, and what the service made of it.
struct Issued {
    key: SecretKey,
    encrypted: EncryptResponse,
}

/// An external service that encrypts.
pub(super) struct Service {
    pub(super) name: String,
    socket: PathBuf,
    timeout: Duration,
    /// The key that encrypts; `None` until it is needed.
    issued: Mutex<Option<Arc<Issued>>>,
    /// Keys that the service has decrypted, by their ciphertexts.
    decrypted: Mutex<BTreeMap<Vec<u8>, SecretKey>>,
}

impl Service {
    /// Reads the configuration of a provider.
    pub(super) fn of(provider: &Value) -> Result<Self, String> {
        let (name, endpoint) = (provider.str_at(&["name"]), provider.str_at(&["endpoint"]));
        if provider.str_at(&["apiVersion"]) != "v2" {
            return Err("must have the apiVersion v2: v1 is not supported".to_owned());
        }
        if name.is_empty() || name.contains(':') {
            return Err(format!("has the name {name:?}: a name must not be empty, and has no colon"));
        }
        let socket = endpoint.strip_prefix("unix://").filter(|path| path.starts_with('/'));
        let socket =
            socket.ok_or_else(|| format!("has the endpoint {endpoint:?}, which is not of the form unix:///PATH"))?;
        let timeout = match provider.str_at(&["timeout"]) {
            "" => TIMEOUT,
            text => text.parse::<Span>().map_err(|error| format!("has the timeout {text:?}: {error}"))?.0,
        };
        let (name, socket) = (name.to_owned(), socket.into());
        Ok(Self { name, socket, timeout, issued: Mutex::default(), decrypted: Mutex::default() })
    }

    /// Encrypts by a key that the service has encrypted.
    ///
    /// # Errors
    /// The service does not answer, or refuses.
    pub(super) fn seal(&self, context: &[u8], plain: &[u8]) -> Result<Vec<u8>, String> {
        let issued = self.issued()?;
        let content = issued.key.seal(context, plain).ok_or("the system has no random numbers")?;
        Ok(Sealed { content, key: Some(issued.encrypted.clone()) }.encode_to_vec())
    }

    /// Decrypts. `None` if this was not encrypted by this service.
    ///
    /// # Errors
    /// The service does not answer, or refuses.
    pub(super) fn open(&self, context: &[u8], sealed: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let Ok(Sealed { content, key: Some(encrypted) }) = Sealed::decode(sealed) else { return Ok(None) };
        Ok(self.key(encrypted)?.open(context, &content))
    }

    /// Returns whether [`Service::seal`] encrypts with the same key of the service as this.
    pub(super) fn is_current(&self, sealed: &[u8]) -> bool {
        let Ok(Sealed { key: Some(encrypted), .. }) = Sealed::decode(sealed) else { return false };
        self.issued().is_ok_and(|issued| issued.encrypted.key_id == encrypted.key_id)
    }

    /// Returns the key that encrypts.
    fn issued(&self) -> Result<Arc<Issued>, String> {
        let mut issued = self.issued.lock();
        if let Some(issued) = &*issued {
            return Ok(issued.clone());
        }
        let status: StatusResponse = self.call("Status", &StatusRequest {})?;
        if status.version != "v2" || status.healthz != "ok" {
            let StatusResponse { version, healthz, .. } = status;
            return Err(self.failed(&format!("it is not ready: version {version:?}, healthz {healthz:?}")));
        }
        let mut secret = vec![0; KEY_BYTES];
        ring::rand::SystemRandom::new().fill(&mut secret).map_err(|_| "the system has no random numbers")?;
        let request = EncryptRequest { plaintext: secret.clone(), uid: uid() };
        let encrypted: EncryptResponse = self.call("Encrypt", &request)?;
        if encrypted.ciphertext.is_empty() || encrypted.key_id.is_empty() {
            return Err(self.failed("its answer has no ciphertext, or no key_id"));
        }
        Ok(issued.insert(Arc::new(Issued { key: self.secret_key(secret), encrypted })).clone())
    }

    /// Returns a key that the service has encrypted.
    fn key(&self, encrypted: EncryptResponse) -> Result<SecretKey, String> {
        if let Some(known) = self.decrypted.lock().get(&encrypted.ciphertext) {
            return Ok(known.clone());
        }
        let EncryptResponse { ciphertext, key_id, annotations } = encrypted;
        let request = DecryptRequest { ciphertext: ciphertext.clone(), uid: uid(), key_id, annotations };
        let DecryptResponse { plaintext } = self.call("Decrypt", &request)?;
        if plaintext.len() != KEY_BYTES {
            return Err(self.failed(&format!("it has decrypted a key of {} bytes", plaintext.len())));
        }
        let key = self.secret_key(plaintext);
        let mut decrypted = self.decrypted.lock();
        if decrypted.len() >= KMS_KEYS_MAX {
            decrypted.clear();
        }
        decrypted.insert(ciphertext, key.clone());
        Ok(key)
    }

    fn secret_key(&self, secret: Vec<u8>) -> SecretKey {
        SecretKey { provider: Provider::AesGcm, name: self.name.clone(), secret }
    }

    /// Calls a method of the service, and waits for the answer. The caller may be a thread that must not wait for
    /// tasks, so that the call has a thread of its own.
    fn call<B: Message + Default>(&self, method: &str, message: &impl Message) -> Result<B, String> {
        let method = format!("v2.KeyManagementService/{method}");
        let call = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            let answer = grpc::call(&self.socket, &method, message, KMS_ANSWER_BYTES);
            let answer = runtime.block_on(async { tokio::time::timeout(self.timeout, answer).await });
            answer.map_err(|_| format!("no answer within {:?}", self.timeout))?.map_err(|error| error.to_string())
        };
        let answer = thread::scope(|scope| scope.spawn(call).join());
        answer.unwrap_or_else(|_| Err("the call failed".to_owned())).map_err(|why| self.failed(&why))
    }

    fn failed(&self, why: &str) -> String {
        format!("the service of keys {:?} at {}: {why}", self.name, self.socket.display())
    }
}

/// Returns a random name of a call.
fn uid() -> String {
    format!("{:032x}", rand::random::<u128>())
}
