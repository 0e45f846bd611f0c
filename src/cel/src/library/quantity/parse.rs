//! Reads quantities.

use num_bigint::BigInt;

use super::amount::Amount;
use super::{Format, Quantity};

/// Finest unit that is kept: a billionth. Finer amounts are rounded away from zero.
const FINEST: i32 = -9;
/// Digits that certainly fit into 64 bits.
const DIGITS_MAX: i32 = 18;

/// Why a text is no quantity.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The text has not the form of one.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Form,
    /// The suffix is none that is known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The number is none.
    #[error("unable to parse numeric part of quantity")]
    Number,
}

struct Parts<'t> {
    is_negative: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

fn split(text: &str) -> Result<Parts<'_>, Fault> {
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
        return Err(Fault::Form);
    }
    // Zeros before the number do not count.
    Ok(Parts { is_negative, whole: whole.trim_start_matches('0'), fraction, suffix })
}

/// The format and the exponent of a suffix, of ten or of two.
fn interpret(suffix: &str) -> Option<(Format, i32)> {
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    if let Some(place) = decimal.iter().position(|known| *known == suffix) {
        return Some((Format::DecimalSi, place as i32 * 3 - 9));
    }
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(place) = binary.iter().position(|known| *known == suffix) {
        return Some((Format::BinarySi, (place as i32 + 1) * 10));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // What the reference keeps of a number of 64 bits.
    Some((Format::DecimalExponent, exponent as i32))
}

/// Reads a quantity.
pub fn parse(text: &str) -> Result<Quantity, Fault> {
    if text.is_empty() {
        return Err(Fault::Form);
    }
    let kept = |amount, format, is_written: bool| Quantity {
        amount,
        format,
        written: is_written.then(|| text.to_owned()),
        is_computed: false,
    };
    if text == "0" {
        return Ok(kept(Amount::int(0, 0), Format::DecimalSi, true));
    }
    let parts = split(text)?;
    let (format, exponent) = interpret(parts.suffix).ok_or(Fault::Suffix)?;
    if let Some((amount, is_written)) = small(&parts, format, exponent) {
        return Ok(kept(amount, format, is_written));
    }
    let (amount, format) = large(&parts, format, exponent)?;
    Ok(kept(amount, format, false))
}

/// The amount, if it certainly fits into 64 bits, and whether its text is kept.
fn small(parts: &Parts<'_>, format: Format, exponent: i32) -> Option<(Amount, bool)> {
    // The reference takes a single zero for a whole part without digits.
    let whole = if parts.whole.is_empty() { "0" } else { parts.whole };
    let shifted = format!("{whole}{}", parts.fraction);
    let (room, scale, factor) = match format {
        Format::BinarySi if parts.fraction.is_empty() => {
            let room = 15 - whole.len() as i32 - (exponent as f32 * 3.0 / 10.0) as i32 - 1;
            (room, 0, 1_i64 << exponent)
        }
        Format::BinarySi => return None,
        _ => (DIGITS_MAX - shifted.len() as i32, exponent.checked_sub(parts.fraction.len() as i32)?, 1),
    };
    if room < 0 || scale < FINEST {
        return None;
    }
    let value: i64 = shifted.parse().ok()?;
    let amount = value.checked_mul(factor)?;
    let is_written = match format {
        Format::BinarySi => exponent % 10 == 0 && value & 7 != 0,
        _ => scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0'),
    };
    Some((Amount::int(if parts.is_negative { -amount } else { amount }, scale), is_written))
}

fn large(parts: &Parts<'_>, format: Format, exponent: i32) -> Result<(Amount, Format), Fault> {
    let digits = format!("0{}{}", parts.whole, parts.fraction);
    let mut value: BigInt = digits.parse().map_err(|_| Fault::Number)?;
    let mut scale = -(parts.fraction.len() as i32);
    match format {
        Format::BinarySi => value <<= exponent,
        _ => scale = scale.saturating_add(exponent),
    }
    if scale < FINEST {
        (value, scale) = (rounded_up(value, FINEST.saturating_sub(scale)), FINEST);
    }
    let mut format = format;
    if format == Format::BinarySi {
        let largest = Amount::int(i64::MAX, 0);
        let amount = Amount::Big { value: value.clone(), scale };
        if amount.compare(&largest).is_gt() {
            (value, scale) = (i64::MAX.into(), 0);
        } else if amount.sign().is_gt() && amount.compare(&Amount::int(1, 0)).is_lt() {
            format = Format::DecimalSi;
        }
    }
    Ok((Amount::Big { value: if parts.is_negative { -value } else { value }, scale }, format))
}

/// The number without its last digits, rounded up.
fn rounded_up(value: BigInt, digits: i32) -> BigInt {
    if value == BigInt::ZERO {
        return value;
    }
    // A number of fewer digits is less than one.
    if i64::from(digits) > value.bits() as i64 {
        return 1.into();
    }
    let unit = BigInt::from(10).pow(digits.unsigned_abs());
    let rest = &value % &unit;
    let whole = value / unit;
    if rest == BigInt::ZERO { whole } else { whole + 1 }
}
