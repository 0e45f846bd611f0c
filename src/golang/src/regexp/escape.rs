//! Escape sequences of single code points.

use super::error::{Error, Fault};
use super::parse::taken;

const CODE_POINT_MAX: u32 = 0x10_ffff;

/// Parses the code point that a `\` begins; returns it and the rest of the pattern.
pub fn parse(from: &str) -> Result<(u32, &str), Error> {
    let rest = &from[1..];
    let Some(sign) = rest.chars().next() else { return Err(Error::new(Fault::TrailingBackslash, "")) };
    let rest = &rest[sign.len_utf8()..];
    let invalid = |rest: &str| Err(Error::new(Fault::Escape, taken(from, rest)));
    let is_octal = |rest: &str| rest.starts_with(|digit| matches!(digit, '0'..='7'));
    let code = match sign {
        // In other syntaxes, one digit other than zero refers to a group. Go has no such references.
        '1'..='7' if !is_octal(rest) => return invalid(rest),
        '0'..='7' => return Ok(octal(&from[1..])),
        'x' => return hexadecimal(rest).or_else(invalid),
        'a' => 0x07,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        sign if sign.is_ascii() && !sign.is_ascii_alphanumeric() => sign.into(),
        _ => return invalid(rest),
    };
    Ok((code, rest))
}

/// Reads up to three octal digits.
fn octal(rest: &str) -> (u32, &str) {
    let digits = rest.bytes().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
    let code = rest.bytes().take(digits).fold(0, |code, digit| code * 8 + u32::from(digit - b'0'));
    (code, &rest[digits..])
}

/// Parses two hexadecimal digits, or any number of them in braces. `Err` is the rest of the text at the failure.
fn hexadecimal(rest: &str) -> Result<(u32, &str), &str> {
    let mut left = rest;
    let mut next = || {
        let sign = left.chars().next()?;
        left = &left[sign.len_utf8()..];
        Some(sign)
    };
    let first = next();
    if first != Some('{') {
        let second = if first.is_some() { next() } else { None };
        let digit = |sign: Option<char>| sign.and_then(|sign| sign.to_digit(16));
        return match (digit(first), digit(second)) {
            (Some(high), Some(low)) => Ok((high * 16 + low, left)),
            _ => Err(left),
        };
    }
    let (mut code, mut digits) = (0, 0);
    loop {
        match next() {
            Some('}') if digits > 0 => return Ok((code, left)),
            Some(sign) => match sign.to_digit(16) {
                Some(digit) if code * 16 + digit <= CODE_POINT_MAX => (code, digits) = (code * 16 + digit, digits + 1),
                _ => return Err(left),
            },
            None => return Err(left),
        }
    }
}
