//! The writer: compact, or indented by two spaces, with Go's escapes and number forms.

use wide::u8x16;

use crate::value::{Hole, Value};

/// Appends a value as compact JSON. A hole is written as `null`, so that the text can always be read again.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    write_tree::<false>(value, out);
}

/// Returns the compact JSON of a value as a client stated it, for errors that show it: numbers that no tree keeps are
/// written as in the client's text.
pub fn to_vec_as_stated(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_tree::<true>(value, &mut out);
    out
}

fn write_tree<const AS_STATED: bool>(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            if let Some(text) = map.text_bytes() {
                return out.extend_from_slice(text);
            }
            out.push(b'{');
            for (n, (key, value)) in map.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_str(key, out);
                out.push(b':');
                write_tree::<AS_STATED>(value, out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_tree::<AS_STATED>(item, out);
            }
            out.push(b']');
        }
        Value::Hole(Hole::Number(text)) if AS_STATED => out.extend_from_slice(text.as_bytes()),
        scalar => write_scalar(scalar, out),
    }
}

/// Appends a value as JSON indented by two spaces.
pub fn write_pretty(value: &Value, out: &mut Vec<u8>) {
    write_indented(value, 0, out);
}

/// Appends a value as indented JSON. `depth` is the number of containers that enclose it.
pub fn write_indented(value: &Value, depth: usize, out: &mut Vec<u8>) {
    let line = |depth: usize, out: &mut Vec<u8>| {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth, b' ');
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push(b'{');
            for (n, (key, value)) in map.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                line(depth + 1, out);
                write_str(key, out);
                out.extend_from_slice(b": ");
                write_indented(value, depth + 1, out);
            }
            line(depth, out);
            out.push(b'}');
        }
        Value::Array(items) if !items.is_empty() => {
            out.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                line(depth + 1, out);
                write_indented(item, depth + 1, out);
            }
            line(depth, out);
            out.push(b']');
        }
        other => write(other, out),
    }
}

fn write_scalar(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(number) => write_int(*number, out),
        Value::Float(number) => write_float(number.get(), out),
        Value::Hole(Hole::Literal(text)) => out.extend_from_slice(text.as_bytes()),
        Value::Str(text) => write_str(text, out),
        _ => out.extend_from_slice(b"null"),
    }
}

fn write_int(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a float as ES6 and Go do: plain digits between 1e-6 and 1e21, an exponent outside.
fn write_float(number: f64, out: &mut Vec<u8>) {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        out.extend_from_slice(mantissa.as_bytes());
        out.push(b'e');
        out.push(sign as u8);
        out.extend_from_slice(digits.as_bytes());
    } else {
        out.extend_from_slice(format!("{number}").as_bytes());
    }
}

/// The number of bytes that are examined together.
const LANES: usize = 16;

/// Returns which bytes of a block may need an escape in a string, one bit each: control characters, quotes,
/// backslashes, `<`, `>`, `&`, and bytes that may begin U+2028 and U+2029.
fn marks(block: [u8; LANES]) -> u32 {
    let bytes = u8x16::from(block);
    let is = |bytes: u8x16, byte: u8| bytes.simd_eq(u8x16::splat(byte));
    // `"` and `&` differ in one bit, as `<` and `>` do.
    let pairs = is(bytes | u8x16::splat(b'"' ^ b'&'), b'&') | is(bytes | u8x16::splat(b'<' ^ b'>'), b'>');
    let control = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
    (pairs | control | is(bytes, b'\\') | is(bytes, 0xe2)).to_bitmask()
}

/// Returns the position of the first byte from `from` on that may need an escape; the length of the text if there is
/// none.
fn plain_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let marks = marks(*block);
        if marks != 0 {
            return at + marks.trailing_zeros() as usize;
        }
        at += LANES;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let mut last = [b' '; LANES];
    last[..rest.len()].copy_from_slice(rest);
    (at + marks(last).trailing_zeros() as usize).min(bytes.len())
}

/// Appends a string with quotes; `<`, `>`, `&`, U+2028 and U+2029 are escaped, as Go's encoder does.
pub fn write_str(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    write_within(text, out);
    out.push(b'"');
}

/// Appends a part of a string, without quotes around it.
pub fn write_within(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut from = 0;
    loop {
        let at = plain_end(bytes, from);
        out.extend_from_slice(&bytes[from..at]);
        if at == bytes.len() {
            return;
        }
        from = at + write_escaped(&bytes[at..], out);
    }
}

/// Appends the escape of the character with which a text begins. Returns how many bytes of the text that was.
fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match bytes[0] {
        b'"' => out.extend_from_slice(br#"\""#),
        b'\\' => out.extend_from_slice(br"\\"),
        b'\n' => out.extend_from_slice(br"\n"),
        b'\r' => out.extend_from_slice(br"\r"),
        b'\t' => out.extend_from_slice(br"\t"),
        8 => out.extend_from_slice(br"\b"),
        12 => out.extend_from_slice(br"\f"),
        0xe2 => match bytes.get(1..3) {
            Some([0x80, last @ (0xa8 | 0xa9)]) => {
                out.extend_from_slice(if *last == 0xa8 { br"\u2028" } else { br"\u2029" });
                return 3;
            }
            _ => out.push(0xe2),
        },
        byte => {
            out.extend_from_slice(br"\u00");
            out.push(HEX[(byte >> 4) as usize]);
            out.push(HEX[(byte & 15) as usize]);
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_that_needs_an_escape_is_found() {
        let is_plain = |byte: u8| byte >= 0x20 && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2);
        for byte in 0..=u8::MAX {
            for before in [0, 1, 7, 15, 16, 17, 31, 40] {
                for behind in [0, 1, 15, 16, 33] {
                    let mut bytes = vec![b'a'; before];
                    bytes.push(byte);
                    bytes.extend(std::iter::repeat_n(b'~', behind));
                    let end = if is_plain(byte) { bytes.len() } else { before };
                    for from in 0..=before {
                        assert_eq!(plain_end(&bytes, from), end, "{byte} at {before} from {from}, {behind} behind");
                    }
                }
            }
        }
    }

    #[test]
    fn escapes_are_written_at_every_position() {
        let mut out = Vec::new();
        write_str("0123456789abcdef\"\\<>&\n\r\t\u{8}\u{c}\u{1}\u{2028}\u{2029}\u{2030}\u{7f}\u{e9}end", &mut out);
        let expected = "\"0123456789abcdef\\\"\\\\\\u003c\\u003e\\u0026\\n\\r\\t\\b\\f\\u0001\\u2028\\u2029\u{2030}\u{7f}\u{e9}end\"";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
