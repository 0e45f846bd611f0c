//! The ways in which kube-apiserver encrypts with a key that is configured, in its formats.

use aes::{Aes128, Aes192, Aes256};
use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{AesGcm, KeyInit};
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::consts::U12;
use cbc::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit};
use crypto_secretbox::XSalsa20Poly1305;
use ring::rand::SecureRandom;

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

impl SecretKey {
    /// Decrypts. `context` must be what it was when this was encrypted, unless the provider ignores it. `None` if this
    /// was not encrypted by this key; `aescbc` cannot always tell.
    pub(super) fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        match (self.provider, self.secret.len()) {
            (Provider::AesCbc, 16) => cbc_open::<cbc::Decryptor<Aes128>>(&self.secret, sealed),
            (Provider::AesCbc, 24) => cbc_open::<cbc::Decryptor<Aes192>>(&self.secret, sealed),
            (Provider::AesCbc, _) => cbc_open::<cbc::Decryptor<Aes256>>(&self.secret, sealed),
            (Provider::AesGcm, 16) => gcm_open::<AesGcm<Aes128, U12>>(&self.secret, context, sealed),
            (Provider::AesGcm, 24) => gcm_open::<AesGcm<Aes192, U12>>(&self.secret, context, sealed),
            (Provider::AesGcm, _) => gcm_open::<AesGcm<Aes256, U12>>(&self.secret, context, sealed),
            (Provider::SecretBox, _) => {
                let (nonce, sealed) = sealed.split_at_checked(BOX_NONCE_BYTES)?;
                let nonce: [u8; BOX_NONCE_BYTES] = nonce.try_into().ok()?;
                XSalsa20Poly1305::new_from_slice(&self.secret).ok()?.decrypt(&nonce.into(), sealed).ok()
            }
        }
    }

    /// Encrypts. `None` if the system has no random numbers.
    pub(super) fn seal(&self, context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        match (self.provider, self.secret.len()) {
            (Provider::AesCbc, 16) => cbc_seal::<cbc::Encryptor<Aes128>>(&self.secret, plain),
            (Provider::AesCbc, 24) => cbc_seal::<cbc::Encryptor<Aes192>>(&self.secret, plain),
            (Provider::AesCbc, _) => cbc_seal::<cbc::Encryptor<Aes256>>(&self.secret, plain),
            (Provider::AesGcm, 16) => gcm_seal::<AesGcm<Aes128, U12>>(&self.secret, context, plain),
            (Provider::AesGcm, 24) => gcm_seal::<AesGcm<Aes192, U12>>(&self.secret, context, plain),
            (Provider::AesGcm, _) => gcm_seal::<AesGcm<Aes256, U12>>(&self.secret, context, plain),
            (Provider::SecretBox, _) => {
                let nonce = random::<BOX_NONCE_BYTES>()?;
                let sealed = XSalsa20Poly1305::new_from_slice(&self.secret).ok()?.encrypt(&nonce.into(), plain).ok()?;
                Some([&nonce[..], &sealed].concat())
            }
        }
    }
}

fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    ring::rand::SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

fn cbc_open<D: BlockDecryptMut + KeyIvInit>(secret: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (vector, sealed) = sealed.split_at_checked(VECTOR_BYTES)?;
    D::new_from_slices(secret, vector).ok()?.decrypt_padded_vec_mut::<Pkcs7>(sealed).ok()
}

fn cbc_seal<E: BlockEncryptMut + KeyIvInit>(secret: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
    let vector = random::<VECTOR_BYTES>()?;
    let sealed = E::new_from_slices(secret, &vector).ok()?.encrypt_padded_vec_mut::<Pkcs7>(plain);
    Some([&vector[..], &sealed].concat())
}

/// The context is authenticated together with the value: in etcd its key, so that values cannot be swapped.
fn gcm_open<G: Aead<NonceSize = U12> + KeyInit>(secret: &[u8], context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_at_checked(GCM_NONCE_BYTES)?;
    let nonce: [u8; GCM_NONCE_BYTES] = nonce.try_into().ok()?;
    let payload = Payload { msg: sealed, aad: context };
    G::new_from_slice(secret).ok()?.decrypt(&nonce.into(), payload).ok()
}

fn gcm_seal<G: Aead<NonceSize = U12> + KeyInit>(secret: &[u8], context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
    let nonce = random::<GCM_NONCE_BYTES>()?;
    let payload = Payload { msg: plain, aad: context };
    let sealed = G::new_from_slice(secret).ok()?.encrypt(&nonce.into(), payload).ok()?;
    Some([&nonce[..], &sealed].concat())
}
