//! Percent escapes. Each part of a URL needs them for bytes of its own.

use super::Fault;

/// The parts of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
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
fn is_plain(byte: u8, part: Part) -> bool {
    let is_in = |bytes: &[u8]| bytes.contains(&byte);
    if byte.is_ascii_alphanumeric() || is_in(b"-_.~") {
        return true;
    }
    match part {
        Part::Host | Part::Zone => is_in(b"!$&'()*+,;=:[]<>\""),
        Part::Path => is_in(b"$&+,/:;=@"),
        Part::Segment => is_in(b"$&+:=@"),
        Part::User => is_in(b"$&+,;="),
        Part::Query => false,
        Part::Fragment => is_in(b"$&+,/:;=?@!()*"),
    }
}

/// Escapes the bytes that need it in a part.
pub fn escape(bytes: &[u8], part: Part) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b' ' if part == Part::Query => out.push('+'),
            byte if is_plain(byte, part) => out.push(byte.into()),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Escapes a text for a query.
pub fn query_escape(text: &str) -> String {
    escape(text.as_bytes(), Part::Query)
}

/// Escapes a text for one segment of a path.
pub fn path_escape(text: &str) -> String {
    escape(text.as_bytes(), Part::Segment)
}

/// Returns whether every byte of a text may stand in the escaped form of a part.
pub fn is_escaped(text: &str, part: Part) -> bool {
    text.bytes().all(|byte| is_plain(byte, part) || b"!$&'()*+,;=:@[]%".contains(&byte))
}

/// Decodes escapes.
pub fn unescape(text: &str, part: Part) -> Result<Vec<u8>, Fault> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                out.push(escaped(text, at, part)?);
                at += 2;
            }
            b'+' if part == Part::Query => out.push(b' '),
            _ if matches!(part, Part::Host | Part::Zone) && byte.is_ascii() && !is_plain(byte, part) => {
                return Err(Fault::HostSign(char::from(byte).to_string()));
            }
            byte => out.push(byte),
        }
        at += 1;
    }
    Ok(out)
}

/// Returns the byte that an escape stands for.
fn escaped(text: &str, at: usize, part: Part) -> Result<u8, Fault> {
    let bytes = &text.as_bytes()[at..];
    let shown = || Fault::Escape(String::from_utf8_lossy(&bytes[..bytes.len().min(3)]).into_owned());
    let digit = |index: usize| bytes.get(index).and_then(|byte| char::from(*byte).to_digit(16));
    let (Some(high), Some(low)) = (digit(1), digit(2)) else { return Err(shown()) };
    let byte = (high * 16 + low) as u8;
    let is_percent = byte == b'%';
    match part {
        // In hosts only bytes beyond ASCII may be escaped; `%25` begins a zone.
        Part::Host if byte.is_ascii() && !is_percent => Err(shown()),
        Part::Zone if !is_percent && byte != b' ' && !is_plain(byte, Part::Host) => Err(shown()),
        _ => Ok(byte),
    }
}
