//! The values of literals.

use super::rule::Label;
use crate::value::Value;

/// Returns the value of a literal. `None` if the label is not that of a literal, or its text is missing. The inner
/// `Err` is the message about an invalid literal.
pub fn read(label: Label, sign: Option<&str>, text: Option<&str>) -> Option<Result<Value<'static>, &'static str>> {
    let text = text?;
    Some(match label {
        Label::Int => int(sign.is_some(), text).map(Value::Int).ok_or("invalid int literal"),
        Label::Uint => uint(&text[..text.len() - 1]).map(Value::Uint).ok_or("invalid uint literal"),
        Label::Double => double(sign.is_some(), text).map(Value::Double).ok_or("invalid double literal"),
        Label::String => unescape(text, false)
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "invalid unicode code point"))
            .map(Value::string),
        Label::Bytes => unescape(&text[1..], true).map(Value::bytes),
        Label::True => Ok(Value::Bool(true)),
        Label::False => Ok(Value::Bool(false)),
        Label::Null => Ok(Value::Null),
        _ => return None,
    })
}

fn int(is_negative: bool, text: &str) -> Option<i64> {
    let magnitude = i128::from(uint(text)?);
    i64::try_from(if is_negative { -magnitude } else { magnitude }).ok()
}

fn uint(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Parses a double. `None` if it is out of range, as in Go.
fn double(is_negative: bool, text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(if is_negative { -number } else { number })
}

const BAD: &str = "unable to unescape string";

/// Decodes the escapes of a string.
fn unescape(text: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let raw = text.strip_prefix(['r', 'R']);
    let quoted = raw.unwrap_or(&text);
    let long = ["'''", "\"\"\""].into_iter().find(|quotes| quoted.len() >= 6 && quoted.starts_with(quotes));
    let width = if long.is_some() { 3 } else { 1 };
    let inner = quoted.get(width..quoted.len().saturating_sub(width)).ok_or(BAD)?;
    if raw.is_some() || !inner.contains('\\') {
        return Ok(inner.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = escape(&rest[at + 1..], is_bytes, &mut out)?;
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Decodes the escape sequence after a backslash. Returns the text after it.
fn escape<'a>(text: &'a str, is_bytes: bool, out: &mut Vec<u8>) -> Result<&'a str, &'static str> {
    let first = text.chars().next().ok_or("unable to unescape string, found '\\' as last character")?;
    let rest = &text[first.len_utf8()..];
    let plain = match first {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' | '\'' | '"' | '`' | '?' => first as u8,
        'x' | 'X' => return code(rest, 2, 16, is_bytes, out),
        'u' | 'U' if is_bytes => return Err(BAD),
        'u' => return code(rest, 4, 16, false, out),
        'U' => return code(rest, 8, 16, false, out),
        '0'..='3' => return code(text, 3, 8, is_bytes, out),
        _ => return Err(BAD),
    };
    out.push(plain);
    Ok(rest)
}

fn code<'a>(
    text: &'a str,
    digits: usize,
    radix: u32,
    is_byte: bool,
    out: &mut Vec<u8>,
) -> Result<&'a str, &'static str> {
    let bad = if radix == 8 { "unable to unescape octal sequence in string" } else { BAD };
    let number = text.get(..digits).and_then(|digits| u32::from_str_radix(digits, radix).ok()).ok_or(bad)?;
    if is_byte {
        out.push(number as u8);
    } else {
        let char = char::from_u32(number).ok_or("invalid unicode code point")?;
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(&text[digits..])
}
