//! Percent escapes. Each part of a URL needs them for bytes of its own.

use super::Fault;

/// The parts of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlPart {
    Path,
    Segment,
    Host,
    /// The zone of an IPv6 address.
    Zone,
    User,
    Query,
    Fragment,
}

/// Returns whether a byte needs no escape in a part.
fn is_plain(byte: u8, part: UrlPart) -> bool {
    let is_in = |bytes: &[u8]| bytes.contains(&byte);
    if byte.is_ascii_alphanumeric() || is_in(b"-_.~") {
        return true;
    }
    match part {
        UrlPart::Host | UrlPart::Zone => is_in(b"!$&'()*+,;=:[]<>\""),
        UrlPart::Path => is_in(b"$&+,/:;=@"),
        UrlPart::Segment => is_in(b"$&+:=@"),
        UrlPart::User => is_in(b"$&+,;="),
        UrlPart::Query => false,
        UrlPart::Fragment => is_in(b"$&+,/:;=?@!()*"),
    }
}

/// Escapes the bytes that need it in a part.
pub fn escape(bytes: &[u8], part: UrlPart) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b' ' if part == UrlPart::Query => out.push('+'),
            byte if is_plain(byte, part) => out.push(byte.into()),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Escapes a text for a query.
pub fn query_escape(text: &str) -> String {
    escape(text.as_bytes(), UrlPart::Query)
}

/// Escapes a text for one segment of a path.
pub fn path_escape(text: &str) -> String {
    escape(text.as_bytes(), UrlPart::Segment)
}

/// Returns whether every byte of a text may stand in the escaped form of a part.
pub fn is_escaped(text: &str, part: UrlPart) -> bool {
    text.bytes().all(|byte| is_plain(byte, part) || b"!$&'()*+,;=:@[]%".contains(&byte))
}

/// Decodes escapes.
pub fn unescape(text: &str, part: UrlPart) -> Result<Vec<u8>, Fault> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                out.push(escaped(text, at, part)?);
                at += 2;
            }
            b'+' if part == UrlPart::Query => out.push(b' '),
            _ if matches!(part, UrlPart::Host | UrlPart::Zone) && byte.is_ascii() && !is_plain(byte, part) => {
                return Err(Fault::HostSign(char::from(byte).to_string()));
            }
            byte => out.push(byte),
        }
        at += 1;
    }
    Ok(out)
}

/// Returns the byte that an escape stands for.
fn escaped(text: &str, at: usize, part: UrlPart) -> Result<u8, Fault> {
    let bytes = &text.as_bytes()[at..];
    let shown = || Fault::Escape(String::from_utf8_lossy(&bytes[..bytes.len().min(3)]).into_owned());
    let digit = |index: usize| bytes.get(index).and_then(|byte| char::from(*byte).to_digit(16));
    let (Some(high), Some(low)) = (digit(1), digit(2)) else { return Err(shown()) };
    let byte = (high * 16 + low) as u8;
    let is_percent = byte == b'%';
    match part {
        // In hosts only bytes beyond ASCII may be escaped; `%25` begins a zone.
        UrlPart::Host if byte.is_ascii() && !is_percent => Err(shown()),
        UrlPart::Zone if !is_percent && byte != b' ' && !is_plain(byte, UrlPart::Host) => Err(shown()),
        _ => Ok(byte),
    }
}
