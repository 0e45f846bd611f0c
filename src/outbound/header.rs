//! Names of headers that contain text from elsewhere.

/// Escapes a text for use in a header name: bytes that are not allowed become `%` and two hexadecimal digits.
pub fn escape_name(text: &str) -> String {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
    text.bytes().fold(String::new(), |mut out, byte| {
        match is_legal(byte) {
            true => out.push(byte.into()),
            false => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_characters_of_names_are_escaped() {
        assert_eq!(escape_name("example.org/A%b"), "example.org%2FA%25b");
        assert_eq!(escape_name("a: \u{e9}"), "a%3A%20%C3%A9");
    }
}
