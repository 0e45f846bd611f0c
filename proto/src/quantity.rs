//! Amounts of resources: decimal numbers with a suffix (Kubernetes API conventions, "Units"; `resource.Quantity`).

use std::cmp::Ordering;
use std::fmt;

/// Finest unit kept: a billionth. Finer amounts are rounded up to it.
const FINEST: i32 = -9;

/// Why a text is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text has not the form of a quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Form,
    /// The suffix is none that is known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// How an amount was written, which decides how it is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `k`, `M`, `m`: powers of 1000.
    DecimalSi,
    /// `Ki`, `Mi`: powers of 1024.
    BinarySi,
    /// `e3`: an exponent.
    DecimalExponent,
}

/// An amount: `mantissa * 10^exponent`.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    mantissa: i128,
    exponent: i32,
    format: Format,
}

struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// Splits a text; a sign without digits counts as zero.
fn split(text: &str) -> Result<Parts<'_>, Error> {
    if text.is_empty() {
        return Err(Error::Form);
    }
    let (negative, rest) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, mut rest) = rest.split_at(digits(rest));
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        (fraction, rest) = after.split_at(digits(after));
    }
    let suffix = rest;
    let letters = suffix.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
    let tail = suffix[letters..].strip_prefix(['-', '+']).unwrap_or(&suffix[letters..]);
    if digits(tail) != tail.len() {
        return Err(Error::Form);
    }
    Ok(Parts { negative, whole, fraction, suffix })
}

/// The base (2 or 10), its power, and the format of a suffix.
fn interpret(suffix: &str) -> Result<(u32, i32, Format), Error> {
    use Format::{BinarySi, DecimalExponent, DecimalSi};
    Ok(match suffix {
        "" => (10, 0, DecimalSi),
        "n" => (10, -9, DecimalSi),
        "u" => (10, -6, DecimalSi),
        "m" => (10, -3, DecimalSi),
        "k" => (10, 3, DecimalSi),
        "M" => (10, 6, DecimalSi),
        "G" => (10, 9, DecimalSi),
        "T" => (10, 12, DecimalSi),
        "P" => (10, 15, DecimalSi),
        "E" => (10, 18, DecimalSi),
        "Ki" => (2, 10, BinarySi),
        "Mi" => (2, 20, BinarySi),
        "Gi" => (2, 30, BinarySi),
        "Ti" => (2, 40, BinarySi),
        "Pi" => (2, 50, BinarySi),
        "Ei" => (2, 60, BinarySi),
        _ => {
            let power = suffix.strip_prefix(['e', 'E']).ok_or(Error::Suffix)?;
            (10, power.parse::<i16>().map_err(|_| Error::Suffix)?.into(), DecimalExponent)
        }
    })
}

impl Quantity {
    /// An amount without fraction.
    pub const fn from_int(amount: i64) -> Self {
        Self { mantissa: amount as i128, exponent: 0, format: Format::DecimalSi }
    }

    /// Parses a text such as `1500m`, `2Gi`, `1e3`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parts = split(text)?;
        let (base, power, format) = interpret(parts.suffix)?;
        let mut mantissa: i128 = 0;
        let mut exponent = 0;
        let mut lost = false;
        let (whole, fraction) = (parts.whole.trim_start_matches('0'), parts.fraction.trim_end_matches('0'));
        for (n, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
            // 28 digits leave room for a binary factor of 2^60 only in the checked multiplication below.
            if mantissa < 10_i128.pow(27) {
                mantissa = mantissa * 10 + i128::from(digit - b'0');
                exponent -= i32::from(n >= whole.len());
            } else {
                lost |= digit != b'0';
                exponent += i32::from(n < whole.len());
            }
        }
        mantissa += i128::from(lost);
        if base == 2 {
            mantissa = mantissa.checked_mul(1 << power).unwrap_or(i128::MAX / 10);
        } else {
            exponent += power;
        }
        let mut quantity = Self { mantissa, exponent, format };
        quantity.bound();
        if parts.negative {
            quantity.mantissa = -quantity.mantissa;
        }
        Ok(quantity)
    }

    /// Rounds up to the finest unit and caps at the largest 64-bit integer.
    fn bound(&mut self) {
        while self.exponent < FINEST {
            let rest = self.mantissa % 10 != 0;
            self.mantissa = self.mantissa / 10 + i128::from(rest);
            self.exponent += 1;
            if self.mantissa <= 1 && self.exponent < FINEST {
                self.exponent = FINEST;
            }
        }
        let cap = i128::from(i64::MAX);
        let whole = self.at_exponent(0);
        if whole.is_none_or(|whole| whole > cap) {
            *self = Self { mantissa: cap, exponent: 0, format: self.format };
        }
    }

    /// The mantissa for another exponent, rounded up; `None` on overflow.
    fn at_exponent(&self, exponent: i32) -> Option<i128> {
        let shift = self.exponent - exponent;
        if self.mantissa == 0 {
            return Some(0);
        }
        if shift >= 0 {
            return 10_i128.checked_pow(shift as u32)?.checked_mul(self.mantissa);
        }
        let Some(divisor) = 10_i128.checked_pow(shift.unsigned_abs()) else {
            return Some(self.mantissa.signum().max(0));
        };
        let (whole, rest) = (self.mantissa / divisor, self.mantissa % divisor);
        Some(whole + i128::from(rest > 0))
    }

    /// The amount in whole units, rounded up.
    pub fn value(&self) -> i64 {
        self.at_exponent(0).map_or(i64::MAX, |whole| i64::try_from(whole).unwrap_or(i64::MAX))
    }

    /// The amount in thousandths, rounded up.
    pub fn milli_value(&self) -> i64 {
        self.at_exponent(-3).map_or(i64::MAX, |milli| i64::try_from(milli).unwrap_or(i64::MAX))
    }

    /// Whether the amount is a multiple of one unit.
    pub fn is_whole(&self) -> bool {
        self.exponent >= 0 || self.mantissa % 10_i128.pow(self.exponent.unsigned_abs()) == 0
    }

    /// -1, 0 or 1.
    pub const fn sign(&self) -> i32 {
        self.mantissa.signum() as i32
    }

    /// How it was written.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The sum, in this amount's format.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let (a, b) = (self.at_exponent(FINEST), other.at_exponent(FINEST));
        let mantissa = a.unwrap_or(i128::MAX / 4).saturating_add(b.unwrap_or(i128::MAX / 4));
        let format = if self.mantissa == 0 { other.format } else { self.format };
        Self { mantissa, exponent: FINEST, format }
    }

    /// The difference, in this amount's format.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&Self { mantissa: -other.mantissa, ..*other })
    }

    /// Mantissa without trailing zeros and its exponent, a multiple of three.
    fn thousands(&self) -> (i128, i32) {
        let (mut mantissa, mut exponent) = (self.mantissa, self.exponent);
        while mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        while exponent % 3 != 0 || exponent > 18 {
            mantissa *= 10;
            exponent -= 1;
        }
        (mantissa, exponent)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        // Amounts are capped at 2^63, so billionths fit.
        self.at_exponent(FINEST).cmp(&other.at_exponent(FINEST))
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: the largest suffix that leaves no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.mantissa == 0 {
            return f.write_str("0");
        }
        let large = self.value().unsigned_abs() >= 1024;
        if self.format == Format::BinarySi && large && self.is_whole() {
            let mut whole = self.at_exponent(0).unwrap_or_default();
            let mut power = 0;
            while whole % 1024 == 0 && power < 6 {
                whole /= 1024;
                power += 1;
            }
            return write!(f, "{whole}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]);
        }
        let (mantissa, exponent) = self.thousands();
        if self.format == Format::DecimalExponent {
            return if exponent == 0 { write!(f, "{mantissa}") } else { write!(f, "{mantissa}e{exponent}") };
        }
        let suffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        let suffix = usize::try_from(exponent / 3 + 3).ok().and_then(|n| suffixes.get(n)).unwrap_or(&"");
        write!(f, "{mantissa}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_canonical() {
        for (text, want) in [
            ("0", "0"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("100Ki", "100Ki"),
            ("1000", "1k"),
            ("1e3", "1e3"),
            ("12e2", "1200"),
            ("1E", "1E"),
            ("0.1Ki", "102400m"),
            ("1023Ki", "1023Ki"),
            ("512", "512"),
            ("0.5Ki", "512"),
            ("-5", "-5"),
            ("+5", "5"),
            ("-", "0"),
            (".5", "500m"),
            ("5.", "5"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("100000000000000000000000", "9223372036854775807"),
            ("0001", "1"),
            ("1.0", "1"),
            ("1234567", "1234567"),
            ("2000000", "2M"),
            ("1e-3", "1e-3"),
            ("64Ei", "9223372036854775807"),
        ] {
            assert_eq!(Quantity::parse(text).unwrap().to_string(), want, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "lots", "1x", "1 Gi", "1.2.3", "1Gi2x", "1KI"] {
            assert_eq!(Quantity::parse(text).unwrap_err(), Error::Form, "{text}");
        }
        for text in ["1kk", "1ee3", "1K"] {
            assert_eq!(Quantity::parse(text).unwrap_err(), Error::Suffix, "{text}");
        }
    }

    #[test]
    fn amounts_compare_across_formats() {
        let q = |text| Quantity::parse(text).unwrap();
        assert!(q("1Gi") > q("1G"));
        assert_eq!(q("1"), q("1000m"));
        assert!(q("-1") < q("0"));
        assert_eq!(q("1").plus(&q("500m")).to_string(), "1500m");
        assert_eq!(q("1Gi").minus(&q("512Mi")).to_string(), "512Mi");
        assert_eq!(q("1500m").value(), 2);
        assert_eq!(q("1.5").milli_value(), 1500);
    }
}
