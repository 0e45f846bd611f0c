//! Reads quantities.

use super::amount::Amount;
use super::decimal::Decimal;
use super::{Error, Format};

/// The exponent of the finest unit, a billionth. Finer amounts are rounded away from zero.
const FINEST: i32 = -9;
/// A number of digits that certainly fits into 64 bits.
const DIGITS_MAX: usize = 18;
/// The same for a number with units of 2^10, 2^20 and so on, as the reference counts them.
const BINARY_DIGITS_MAX: [usize; 6] = [11, 8, 5, 2, 0, 0];

struct Parts<'t> {
    is_negative: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
    /// Whether there is a digit at all.
    has_digits: bool,
}

fn split(text: &str) -> Result<Parts<'_>, Error> {
    let is_negative = text.starts_with('-');
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = rest.split_at(digits(rest));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let letters = suffix.bytes().take_while(|byte| b"eEinumkKMGTP".contains(byte)).count();
    let exponent = suffix[letters..].strip_prefix(['-', '+']).unwrap_or(&suffix[letters..]);
    if digits(exponent) != exponent.len() {
        return Err(Error::Form);
    }
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    // Zeros before the number do not count; a number without a whole part has a single zero there.
    let whole = whole.trim_start_matches('0');
    Ok(Parts { is_negative, whole: if whole.is_empty() { "0" } else { whole }, fraction, suffix, has_digits })
}

/// Returns the format and the exponent of a suffix, to the base of ten or two. Returns `None` if it is unknown.
fn interpret(suffix: &str) -> Option<(Format, i32)> {
    let place = |suffixes: &[&str]| suffixes.iter().position(|known| *known == suffix);
    if let Some(place) = place(&["", "m", "k", "M", "G", "T", "P", "E", "u", "n"]) {
        return Some((Format::DecimalSi, [0, -3, 3, 6, 9, 12, 15, 18, -6, -9][place]));
    }
    if let Some(place) = place(&["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]) {
        return Some((Format::BinarySi, (place as i32 + 1) * 10));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // Like the reference, reads 64 bits and keeps the low 32.
    Some((Format::DecimalExponent, exponent as i32))
}

/// Returns the amount in a text, its format, and whether the reference writes it with the same text.
pub(super) fn parse(text: &str) -> Result<(Amount, Format, bool), Error> {
    if text.is_empty() {
        return Err(Error::Form);
    }
    let parts = split(text)?;
    let (format, exponent) = interpret(parts.suffix).ok_or(Error::Suffix)?;
    if let Some((amount, is_kept)) = small(&parts, format, exponent) {
        return Ok((amount, format, is_kept));
    }
    if !parts.has_digits {
        return Err(Error::Number);
    }
    let (amount, format) = large(&parts, format, exponent);
    Ok((amount, format, false))
}

/// Returns the amount if it certainly fits into 64 bits, and whether its text is kept.
///
/// The text is kept if quick tests show that it is canonical: with a power of 1024, the number is not divisible by
/// eight. In other formats, the exponent is a multiple of three, and the digits neither begin with a zero nor end in
/// three zeros.
fn small(parts: &Parts<'_>, format: Format, exponent: i32) -> Option<(Amount, bool)> {
    let (whole, fraction) = (parts.whole, parts.fraction);
    let length = whole.len() + fraction.len();
    let is_binary = format == Format::BinarySi;
    let (most, scale) = if is_binary {
        let most = BINARY_DIGITS_MAX.get(usize::try_from(exponent / 10 - 1).ok()?)?;
        (*most, if fraction.is_empty() { 0 } else { return None })
    } else {
        (DIGITS_MAX, exponent.wrapping_sub(fraction.len() as i32))
    };
    if length > most || scale < FINEST {
        return None;
    }
    let digits = whole.bytes().chain(fraction.bytes());
    let value = digits.fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0'));
    let amount = if is_binary { value.checked_mul(1 << exponent)? } else { value };
    let is_kept = if is_binary {
        value & 7 != 0
    } else {
        let zeros = fraction.bytes().rev().chain(whole.bytes().rev()).take_while(|digit| *digit == b'0').count();
        scale % 3 == 0 && zeros < 3 && !whole.starts_with('0')
    };
    Some((Amount::Int { value: if parts.is_negative { -amount } else { amount }, scale }, is_kept))
}

/// Returns any amount, rounded up to the finest unit. An amount with a power of two is capped at the largest that fits
/// into 64 bits.
fn large(parts: &Parts<'_>, mut format: Format, exponent: i32) -> (Amount, Format) {
    let is_binary = format == Format::BinarySi;
    let exponent_of_ten = if is_binary { 0 } else { exponent };
    let scale = exponent_of_ten.saturating_sub(parts.fraction.len() as i32);
    let mut decimal = Decimal::new(false, parts.whole.bytes().chain(parts.fraction.bytes()), scale);
    if is_binary {
        decimal.shift_left(exponent.unsigned_abs());
    }
    decimal.round(FINEST);
    if is_binary {
        let largest = Decimal::from_int(i64::MAX.into(), 0);
        if decimal.compare(&largest).is_gt() {
            decimal = largest;
        } else if decimal.sign() > 0 && decimal.compare(&Decimal::from_int(1, 0)).is_lt() {
            format = Format::DecimalSi;
        }
    }
    (Amount::Big(if parts.is_negative { decimal.negated() } else { decimal }.into()), format)
}
