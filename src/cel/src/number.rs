//! Formats numbers and strings as Go does.

use std::fmt::Write;

/// Returns a double in the shortest form that reads back the same: `0.5`, `1e+20`, `1e-07`.
pub fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Returns a string in double quotes, with escapes for characters that are not printable.
pub fn quote(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|char| quote_char(char, &mut out));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

fn quote_char(char: char, out: &mut String) {
    let escaped = match char {
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{b}' => 'v',
        '"' | '\\' => char,
        ' '..='~' => return out.push(char),
        _ if u32::from(char) < 0x80 => {
            let _ = write!(out, "\\x{:02x}", u32::from(char));
            return;
        }
        _ if prints(char) => return out.push(char),
        _ if u32::from(char) < 0x1_0000 => {
            let _ = write!(out, "\\u{:04x}", u32::from(char));
            return;
        }
        _ => {
            let _ = write!(out, "\\U{:08x}", u32::from(char));
            return;
        }
    };
    out.push('\\');
    out.push(escaped);
}

/// Returns whether Go prints a character unescaped: not controls, spaces other than the ASCII one, or characters
/// without a glyph.
fn prints(char: char) -> bool {
    !char.is_control()
        && !char.is_whitespace()
        && !matches!(char, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        && !matches!(char, '\u{feff}' | '\u{e000}'..='\u{f8ff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}'..='\u{ffff}')
}
