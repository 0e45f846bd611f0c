//! Parses query parameters as the reference does.

use std::borrow::Cow;

use crate::status::{ApiError, ApiResult};

/// Parsed query parameters. A name may occur several times; mostly the first one counts.
#[derive(Debug, Default)]
pub struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    /// Parses the part of a URL behind `?`. Drops parts with a semicolon, as Go does.
    pub fn parse(text: &'a str) -> Self {
        let decode = |part: &'a str| -> Cow<'a, str> {
            if part.contains('+') {
                let spaced = part.replace('+', " ");
                percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned().into()
            } else {
                percent_encoding::percent_decode_str(part).decode_utf8_lossy()
            }
        };
        Self(
            text.split('&')
                .filter(|pair| !pair.is_empty() && !pair.contains(';') && is_escaped(pair))
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(key), decode(value))
                })
                .collect(),
        )
    }

    /// Returns the first value of a parameter. Returns `None` if it is absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// Returns all values of a parameter.
    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// Returns the first value, or the empty text.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }

    /// Returns a switch: anything but `0` and `false` is on, even the empty text. Returns `None` if it is absent.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// Returns a whole number. Returns `None` if it is absent, and 400 with Go's wording if it is invalid.
    pub fn int(&self, name: &str) -> ApiResult<Option<i64>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        parse_int(value).map(Some)
    }
}

/// Returns whether every `%` begins an escape. Go, too, drops pairs for which this is false.
fn is_escaped(pair: &str) -> bool {
    let bytes = pair.as_bytes();
    let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    bytes.iter().enumerate().all(|(at, &byte)| byte != b'%' || (hex(at + 1) && hex(at + 2)))
}

/// Parses a decimal number as Go's `strconv.ParseInt` does.
pub fn parse_int(text: &str) -> ApiResult<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let syntax = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(number) if syntax => Ok(number),
        _ => {
            let why = if syntax { "value out of range" } else { "invalid syntax" };
            Err(ApiError::bad_request(format!("strconv.ParseInt: parsing {}: {why}", crate::field::quote(text))))
        }
    }
}

/// Parses a resource version. Callers wrap the error text as their operation does.
pub fn parse_revision(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let syntax = text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(number) if syntax => Ok(number),
        _ => {
            let why = if syntax { "value out of range" } else { "invalid syntax" };
            let quoted = crate::field::quote(text);
            Err(format!("resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_parsed_as_in_the_reference() {
        let query = Query::parse("a=1&a=2&b=x+y%2Fz&c&d=0;e=1&watch=no");
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.text("b"), "x y/z");
        assert_eq!(query.flag("c"), Some(true));
        assert_eq!(query.flag("watch"), Some(true));
        assert_eq!(query.get("d"), None);
        assert_eq!(query.int("b").unwrap_err().message, "strconv.ParseInt: parsing \"x y/z\": invalid syntax");
    }
}
