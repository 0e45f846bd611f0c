//! The ways in which kube-apiserver encrypts with a key that is configured, in its formats.

use aes::{Aes128, Aes192, Aes256};
use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{AesGcm, KeyInit};
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::consts::U12;
use cbc::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit};
use crypto_secretbox::XSalsa20Poly1305;
use flotilla_proto::value::Value;
use ring::rand::SecureRandom;

use super::ENCRYPTED;

/// Length of an AES-CBC initialization vector, in bytes.
const VECTOR_BYTES: usize = 16;
/// Length of an AES-GCM nonce, in bytes.
const GCM_NONCE_BYTES: usize = 12;
/// Length of a secretbox nonce, in bytes.
const BOX_NONCE_BYTES: usize = 24;

/// A way to encrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    AesCbc,
    AesGcm,
    SecretBox,
}

impl Provider {
    /// All of them, by their names in the configuration.
    pub(super) const ALL: [(&str, Provider); 3] =
        [("aescbc", Provider::AesCbc), ("aesgcm", Provider::AesGcm), ("secretbox", Provider::SecretBox)];

    /// Returns its name in the configuration.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, provider)| *provider == self).map_or("", |(name, _)| name)
    }

    /// Returns whether a key can have this many bytes.
    pub(super) fn takes(self, bytes: usize) -> bool {
        match self {
            Provider::SecretBox => bytes == 32,
            Provider::AesCbc | Provider::AesGcm => [16, 24, 32].contains(&bytes),
        }
    }
}

/// A key with which a provider encrypts.
#[derive(Clone)]
pub(super) struct SecretKey {
    pub(super) provider: Provider,
    pub(super) name: String,
    pub(super) secret: Vec<u8>,
}

/// Base64 as Go reads it: the last digit may have further bits.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

impl SecretKey {
    /// Reads a key of a provider.
    pub(super) fn of(provider: Provider, key: &Value) -> Result<Self, String> {
        let name = key.str_at(&["name"]).to_owned();
        if name.is_empty() {
            return Err("a key has no name".to_owned());
        }
        // Line breaks are ignored, as in Go.
        let digits = key.str_at(&["secret"]).replace(['\n', '\r'], "");
        let secret = BASE64.decode(digits);
        let secret = secret.map_err(|_| format!("the key {name:?} of {} is no base64", provider.name()))?;
        match provider.takes(secret.len()) {
            true => Ok(Self { provider, name, secret }),
            false => Err(format!("the key {name:?} of {} has {} bytes", provider.name(), secret.len())),
        }
    }

    /// Returns the prefix of data that this key has encrypted.
    pub(super) fn prefix(&self) -> String {
        format!("{}{}:v1:{}:", String::from_utf8_lossy(ENCRYPTED), self.provider.name(), self.name)
    }

    /// Decrypts. `context` must be the one with which the data was encrypted, unless the provider ignores it. `None` if
    /// this key did not encrypt the data, but `aescbc` cannot always tell: it may return wrong bytes instead.
    pub(super) fn decrypt(&self, context: &[u8], encrypted: &[u8]) -> Option<Vec<u8>> {
        match (self.provider, self.secret.len()) {
            (Provider::AesCbc, 16) => cbc_decrypt::<cbc::Decryptor<Aes128>>(&self.secret, encrypted),
            (Provider::AesCbc, 24) => cbc_decrypt::<cbc::Decryptor<Aes192>>(&self.secret, encrypted),
            (Provider::AesCbc, _) => cbc_decrypt::<cbc::Decryptor<Aes256>>(&self.secret, encrypted),
            (Provider::AesGcm, 16) => gcm_decrypt::<AesGcm<Aes128, U12>>(&self.secret, context, encrypted),
            (Provider::AesGcm, 24) => gcm_decrypt::<AesGcm<Aes192, U12>>(&self.secret, context, encrypted),
            (Provider::AesGcm, _) => gcm_decrypt::<AesGcm<Aes256, U12>>(&self.secret, context, encrypted),
            (Provider::SecretBox, _) => {
                let (nonce, encrypted) = encrypted.split_at_checked(BOX_NONCE_BYTES)?;
                let nonce: [u8; BOX_NONCE_BYTES] = nonce.try_into().ok()?;
                XSalsa20Poly1305::new_from_slice(&self.secret).ok()?.decrypt(&nonce.into(), encrypted).ok()
            }
        }
    }

    /// Encrypts. `None` if the system has no random numbers.
    pub(super) fn encrypt(&self, context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        match (self.provider, self.secret.len()) {
            (Provider::AesCbc, 16) => cbc_encrypt::<cbc::Encryptor<Aes128>>(&self.secret, plain),
            (Provider::AesCbc, 24) => cbc_encrypt::<cbc::Encryptor<Aes192>>(&self.secret, plain),
            (Provider::AesCbc, _) => cbc_encrypt::<cbc::Encryptor<Aes256>>(&self.secret, plain),
            (Provider::AesGcm, 16) => gcm_encrypt::<AesGcm<Aes128, U12>>(&self.secret, context, plain),
            (Provider::AesGcm, 24) => gcm_encrypt::<AesGcm<Aes192, U12>>(&self.secret, context, plain),
            (Provider::AesGcm, _) => gcm_encrypt::<AesGcm<Aes256, U12>>(&self.secret, context, plain),
            (Provider::SecretBox, _) => {
                let nonce = random::<BOX_NONCE_BYTES>()?;
                let encrypted =
                    XSalsa20Poly1305::new_from_slice(&self.secret).ok()?.encrypt(&nonce.into(), plain).ok()?;
                Some([&nonce[..], &encrypted].concat())
            }
        }
    }
}

/// Returns random bytes. `None` if the system has none.
pub(super) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    ring::rand::SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

fn cbc_decrypt<D: BlockDecryptMut + KeyIvInit>(secret: &[u8], encrypted: &[u8]) -> Option<Vec<u8>> {
    let (vector, encrypted) = encrypted.split_at_checked(VECTOR_BYTES)?;
    D::new_from_slices(secret, vector).ok()?.decrypt_padded_vec_mut::<Pkcs7>(encrypted).ok()
}

fn cbc_encrypt<E: BlockEncryptMut + KeyIvInit>(secret: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
    let vector = random::<VECTOR_BYTES>()?;
    let encrypted = E::new_from_slices(secret, &vector).ok()?.encrypt_padded_vec_mut::<Pkcs7>(plain);
    Some([&vector[..], &encrypted].concat())
}

/// The context is authenticated together with the value. In etcd it is the key of the value, so that values cannot be
/// swapped.
fn gcm_decrypt<G: Aead<NonceSize = U12> + KeyInit>(secret: &[u8], context: &[u8], encrypted: &[u8]) -> Option<Vec<u8>> {
    let (nonce, encrypted) = encrypted.split_at_checked(GCM_NONCE_BYTES)?;
    let nonce: [u8; GCM_NONCE_BYTES] = nonce.try_into().ok()?;
    let payload = Payload { msg: encrypted, aad: context };
    G::new_from_slice(secret).ok()?.decrypt(&nonce.into(), payload).ok()
}

fn gcm_encrypt<G: Aead<NonceSize = U12> + KeyInit>(secret: &[u8], context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
    let nonce = random::<GCM_NONCE_BYTES>()?;
    let payload = Payload { msg: plain, aad: context };
    let encrypted = G::new_from_slice(secret).ok()?.encrypt(&nonce.into(), payload).ok()?;
    Some([&nonce[..], &encrypted].concat())
}
