//! Parses bearer tokens in the header `Authorization` (RFC 6750).

/// The reference's warning for a token after two spaces.
pub const EXTRA_SPACE: &str =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// The content of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearer<'a> {
    /// No token: no header, another scheme, or nothing after the scheme.
    None,
    /// A token after more than one space. It is ignored, and the client is warned.
    Misplaced,
    /// A token.
    Token(&'a [u8]),
}

impl<'a> Bearer<'a> {
    /// Parses the value of the header. The scheme may have any case; text after the token is ignored.
    pub fn parse(header: &'a [u8]) -> Self {
        let mut parts = header.trim_ascii().splitn(3, |byte| *byte == b' ');
        let scheme = parts.next().unwrap_or_default();
        match (parts.next(), parts.next()) {
            _ if !scheme.eq_ignore_ascii_case(b"bearer") => Self::None,
            (None, _) | (Some(b""), None) => Self::None,
            (Some(b""), Some(_)) => Self::Misplaced,
            (Some(token), _) => Self::Token(token),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_follows_the_scheme_and_one_space() {
        for none in ["", " ", "Bearer", "Bearer ", "Basic YWRtaW46YWRtaW4=", "Negotiate abc", "token"] {
            assert_eq!(Bearer::parse(none.as_bytes()), Bearer::None, "{none:?}");
        }
        assert_eq!(Bearer::parse(b"Bearer  two-spaces"), Bearer::Misplaced);
        for token in ["Bearer abc", " bearer abc ", "BEARER abc def"] {
            assert_eq!(Bearer::parse(token.as_bytes()), Bearer::Token(b"abc"), "{token:?}");
        }
    }
}
