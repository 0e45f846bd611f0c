//! Numbers and quoted text, parsed and formatted as Go's `strconv` does.

use std::fmt::Write;

/// The reason why a text is not a number: the parsing function, the text, the fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("strconv.{function}: parsing {}: {fault}", quote(text))]
pub struct NumberError {
    function: &'static str,
    text: String,
    fault: NumberFault,
}

/// An error in a number, in Go's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberFault {
    /// The text is not a number.
    #[error("invalid syntax")]
    Syntax,
    /// The number does not fit.
    #[error("value out of range")]
    Range,
}

impl NumberError {
    fn new(function: &'static str, text: &str, fault: NumberFault) -> Self {
        Self { function, text: text.to_owned(), fault }
    }

    /// Returns the error of a function for a number that does not fit into its result.
    pub fn range(function: &'static str, text: &str) -> Self {
        Self::new(function, text, NumberFault::Range)
    }

    /// Returns the fault.
    pub fn fault(&self) -> NumberFault {
        self.fault
    }
}

/// Reads a decimal integer with or without a sign.
///
/// # Errors
/// If the text is not a number, or the number does not fit.
pub fn parse_int(text: &str) -> Result<i64, NumberError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let fault = if is_digits(digits) { NumberFault::Range } else { NumberFault::Syntax };
    text.parse().map_err(|_| NumberError::new("ParseInt", text, fault))
}

/// Reads a decimal integer without a sign.
///
/// # Errors
/// If the text is not a number, or the number does not fit.
pub fn parse_uint(text: &str) -> Result<u64, NumberError> {
    let fail = |fault| NumberError::new("ParseUint", text, fault);
    if !is_digits(text) {
        return Err(fail(NumberFault::Syntax));
    }
    text.parse().map_err(|_| fail(NumberFault::Range))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads a truth value.
///
/// # Errors
/// If the text is not one that Go accepts.
pub fn parse_bool(text: &str) -> Result<bool, NumberError> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(NumberError::new("ParseBool", text, NumberFault::Syntax)),
    }
}

/// Reads a floating-point number: decimal or hexadecimal, with `_` between digits, `inf`, `nan`.
///
/// # Errors
/// If the text is not a number, or the number is too large.
pub fn parse_float(text: &str) -> Result<f64, NumberError> {
    let fail = |fault| NumberError::new("ParseFloat", text, fault);
    let (digits, is_negative) = match text.as_bytes().first() {
        Some(b'-') => (&text[1..], true),
        Some(b'+') => (&text[1..], false),
        _ => (text, false),
    };
    let signed = |number: f64| if is_negative { -number } else { number };
    match &*digits.to_ascii_lowercase() {
        "inf" | "infinity" => return Ok(signed(f64::INFINITY)),
        "nan" if digits.len() == text.len() => return Ok(f64::NAN),
        _ => {}
    }
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    if digits.contains('_') && !are_underscores_between(digits, hexadecimal.is_some()) {
        return Err(fail(NumberFault::Syntax));
    }
    let number = match hexadecimal {
        Some(digits) => hexadecimal_float(&digits.replace('_', "")),
        None => decimal_float(&digits.replace('_', "")),
    };
    match number {
        Some(number) if number.is_infinite() => Err(fail(NumberFault::Range)),
        Some(number) => Ok(signed(number)),
        None => Err(fail(NumberFault::Syntax)),
    }
}

fn decimal_float(text: &str) -> Option<f64> {
    // Rust's parser would also accept `inf`, `nan` and a sign.
    let is_plain = text.starts_with(|sign: char| sign.is_ascii_digit() || sign == '.');
    if is_plain { text.parse().ok() } else { None }
}

/// Returns whether each `_` stands between digits, or between a prefix and a digit.
fn are_underscores_between(digits: &str, is_hexadecimal: bool) -> bool {
    let bytes = if is_hexadecimal { &digits.as_bytes()[1..] } else { digits.as_bytes() };
    let is_digit = |byte: &u8| byte.is_ascii_digit() || is_hexadecimal && byte.is_ascii_hexdigit();
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_').all(|(place, _)| {
        let is_behind_prefix = is_hexadecimal && place == 1;
        let before = place.checked_sub(1).and_then(|before| bytes.get(before));
        (is_behind_prefix || before.is_some_and(is_digit)) && bytes.get(place + 1).is_some_and(is_digit)
    })
}

/// Reads hexadecimal digits with a binary exponent, rounded to the nearest number, ties to the even one.
fn hexadecimal_float(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !is_digits(unsigned) {
        return None;
    }
    // Beyond these bounds every number is zero or infinite.
    let mut exponent = exponent.parse().unwrap_or(if exponent.starts_with('-') { -100_000 } else { 100_000 });
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut mantissa, mut is_inexact) = (0u64, false);
    for (place, sign) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(sign.to_digit(16)?);
        if mantissa >> 58 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent -= if place >= whole.len() { 4 } else { 0 };
        } else {
            is_inexact |= digit != 0;
            exponent += if place >= whole.len() { 0 } else { 4 };
        }
    }
    Some(scaled(mantissa, is_inexact, exponent.clamp(-100_000, 100_000)))
}

/// Returns `mantissa * 2^exponent`, rounded; `is_inexact` says that nonzero bits below the mantissa were dropped.
fn scaled(mantissa: u64, is_inexact: bool, exponent: i32) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let bits = 64 - mantissa.leading_zeros() as i32;
    // The exponent of the lowest bit that the result can represent.
    let last = (exponent + bits - 53).max(-1074);
    let drop = last - exponent;
    let kept = if drop <= 0 {
        mantissa << (-drop).min(63)
    } else if drop > 64 {
        0
    } else {
        let wide = u128::from(mantissa);
        let (kept, lost, half) = (wide >> drop, wide & ((1 << drop) - 1), 1u128 << (drop - 1));
        let is_up = lost > half || lost == half && (is_inexact || kept & 1 == 1);
        kept as u64 + u64::from(is_up)
    };
    // Two steps, since neither factor may overflow or round by itself.
    let power = |exponent: i32| f64::powi(2.0, exponent);
    if last > 971 {
        return f64::INFINITY;
    }
    if last < -1000 { kept as f64 * power(last + 1000) * power(-1000) } else { kept as f64 * power(last) }
}

/// Formats a number with the fewest digits that identify it, and with an exponent where Go's `%g` and `%v` have one.
pub fn format_float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Formats a number with an exponent of at least two digits and `precision` digits after the point.
pub fn format_exponent(number: f64, precision: usize) -> String {
    let scientific = format!("{number:.precision$e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Quotes a text as `%q` does.
pub fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

/// Quotes bytes as `%q` does. Those that are not UTF-8 are shown as `\xNN`.
pub fn quote_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        escape(chunk.valid(), &mut out);
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

fn escape(text: &str, out: &mut String) {
    for sign in text.chars() {
        match sign {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            sign if is_printed(sign) => out.push(sign),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            sign => {
                let code = u32::from(sign);
                let _ = match code {
                    0..0x80 => write!(out, "\\x{code:02x}"),
                    0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
}

/// Returns whether Go prints a character unescaped: letters, marks, numbers, punctuation, symbols and the ASCII space.
fn is_printed(sign: char) -> bool {
    if sign.is_ascii() {
        return !sign.is_ascii_control();
    }
    // Rust's standard library escapes the same characters, and also marks at the beginning of a text, hence the `a`.
    let mut text = String::from("a");
    text.push(sign);
    text.escape_debug().count() == 2
}

#[cfg(test)]
mod tests;
