//! Formats numbers for `format`: in English, as the reference's locale does.

use crate::limits::COLUMN_WIDTH_MAX;

/// Returns a number with a sign in digits of another base.
pub fn in_digits(number: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", digits(number.unsigned_abs()))
}

/// Returns bytes in hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the text of an infinite number or NaN. `None` for other numbers.
fn special(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// Removes the sign of zero.
fn unsigned_zero(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

/// Formats as `1,234,567.89`. The reference stores the number of digits in a byte.
pub fn fixed(number: f64, digits: usize) -> String {
    let digits = digits % 256;
    if let Some(name) = special(number) {
        return name.to_owned();
    }
    let text = format!("{:.*}", digits, unsigned_zero(number));
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut grouped = String::with_capacity(text.len() + whole.len() / 3 + 1);
    grouped.push_str(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped.push_str(fraction);
    grouped
}

/// Formats as `1.234568×10⁰⁶`, right-aligned in a column.
pub fn scientific(number: f64, width: usize) -> String {
    let text = special(number).map_or_else(|| with_power(unsigned_zero(number)), str::to_owned);
    let missing = width.min(COLUMN_WIDTH_MAX).saturating_sub(text.chars().count());
    format!("{}{text}", " ".repeat(missing))
}

fn with_power(number: f64) -> String {
    let text = format!("{number:.6e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("⁻", digits));
    let raised = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digits = format!("{digits:0>2}");
    let power: String = digits.bytes().map(|digit| raised[usize::from(digit - b'0')]).collect();
    format!("{mantissa}×10{sign}{power}")
}

/// Formats a double within a list or a map.
pub fn plain(number: f64) -> String {
    match number {
        _ if number.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        number => format!("{number:.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_english() {
        for (number, digits, text) in [
            (1_234_567.891, 3, "1,234,567.891"),
            (-1_234_567.891, 0, "-1,234,568"),
            (-0.0, 6, "0.000000"),
            (-0.4, 0, "-0"),
            (999.999_999_9, 6, "1,000.000000"),
            (2.5, 0, "2"),
            (1.555, 2, "1.55"),
            (1e20, 0, "100,000,000,000,000,000,000"),
            (f64::NEG_INFINITY, 2, "-∞"),
        ] {
            assert_eq!(fixed(number, digits), text);
        }
        for (number, width, text) in [
            (1_052.032_911_275, 6, "1.052033×10⁰³"),
            (-1e-100, 20, "    -1.000000×10⁻¹⁰⁰"),
            (-0.0, 0, "0.000000×10⁰⁰"),
            (f64::INFINITY, 6, "     ∞"),
        ] {
            assert_eq!(scientific(number, width), text);
        }
    }
}
