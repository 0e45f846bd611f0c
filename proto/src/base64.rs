//! Base64 as Go's `encoding/base64` reads it: line breaks are skipped, and an error names the byte at which decoding
//! stops.

use ::base64::Engine;
use ::base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

/// Standard base64 whose last character may have surplus bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &::base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Returns the text in the form in which the server writes the same bytes.
///
/// # Errors
/// The index of the byte at which the text stops being base64.
pub fn canonical(text: &str) -> Result<String, usize> {
    let folded = text.contains(['\r', '\n']).then(|| text.replace(['\r', '\n'], ""));
    let plain = folded.as_deref().unwrap_or(text);
    match LENIENT.decode(plain) {
        Ok(bytes) => Ok(STANDARD.encode(bytes)),
        Err(_) => Err(corrupt_at(text.as_bytes())),
    }
}

/// Returns the bytes that a text encodes.
///
/// # Errors
/// As for [`canonical`].
pub fn decode(text: &str) -> Result<Vec<u8>, usize> {
    LENIENT.decode(text.replace(['\r', '\n'], "")).map_err(|_| corrupt_at(text.as_bytes()))
}

/// Returns bytes in the form in which the server writes them.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Returns the index at which Go's decoder reports that a text stops being base64.
fn corrupt_at(text: &[u8]) -> usize {
    let is_break = |byte: u8| matches!(byte, b'\r' | b'\n');
    let symbol = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let (mut at, mut have) = (0, 0);
    let skip = |mut at: usize| {
        while text.get(at).is_some_and(|byte| is_break(*byte)) {
            at += 1;
        }
        at
    };
    while let Some(&byte) = text.get(at) {
        at += 1;
        if is_break(byte) {
            continue;
        }
        if symbol(byte) {
            have = (have + 1) % 4;
            continue;
        }
        if byte != b'=' || have < 2 {
            return at - 1;
        }
        if have == 2 {
            at = skip(at);
            match text.get(at) {
                None => return text.len(),
                Some(b'=') => at += 1,
                Some(_) => return at - 1,
            }
        }
        return skip(at);
    }
    at - have
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn errors_name_the_byte_at_which_go_stops() {
        for (text, at) in
            [("Bad_Name!", 3), ("YQ", 0), ("YQ=", 3), ("YQ=x", 2), ("Y===", 1), ("YWI=x", 4), ("YWJj\nY!", 6), ("=", 0)]
        {
            assert_eq!(canonical(text), Err(at), "{text}");
        }
        assert_eq!(canonical("YW\nI=\n").as_deref(), Ok("YWI="));
        assert_eq!(canonical("YR==").as_deref(), Ok("YQ=="));
    }
}
