//! Parses and signs tokens in compact form (RFC 7515).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::keys::SigningKey;

/// The parts of a token whose signature is not verified yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Unverified<'a> {
    /// Algorithm that the header names.
    pub algorithm: String,
    /// Id of the key that the header names; may be empty.
    pub key_id: String,
    /// The claims, in JSON.
    pub payload: Vec<u8>,
    /// The bytes that are signed.
    pub message: &'a [u8],
    /// The signature.
    pub signature: Vec<u8>,
}

#[derive(serde::Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
    /// Critical extensions; none is supported.
    crit: Option<serde_json::Value>,
}

impl<'a> Unverified<'a> {
    /// Splits a token into its parts. `None` if it does not have this form, or needs extensions.
    pub fn parse(token: &'a [u8]) -> Option<Self> {
        let dots: Vec<usize> =
            token.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| at).take(3).collect();
        let [first, second] = dots[..] else { return None };
        let decode = |part: &[u8]| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Header = serde_json::from_slice(&decode(&token[..first])?).ok()?;
        if header.crit.is_some() {
            return None;
        }
        Some(Self {
            algorithm: header.alg,
            key_id: header.kid,
            payload: decode(&token[first + 1..second])?,
            message: &token[..second],
            signature: decode(&token[second + 1..])?,
        })
    }
}

/// Returns a signed token.
///
/// # Errors
/// The system provides no random numbers.
pub fn sign(key: &SigningKey, payload: &[u8]) -> Result<String, rustls::Error> {
    let public = key.public();
    let header = format!("{{\"alg\":\"{}\",\"kid\":\"{}\"}}", public.algorithm.name(), public.id);
    let mut token = URL_SAFE_NO_PAD.encode(header);
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(payload, &mut token);
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Ok(token)
}
