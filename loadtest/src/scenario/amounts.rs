//! Amounts as a report shows them: counts, shares, bytes, and the ticks of axes.

use super::svg::trimmed;

pub(super) fn share(part: u64, whole: u64) -> String {
    match whole + part {
        0 => "of nothing".into(),
        all => format!("{}%", trimmed(part as f64 * 100.0 / all as f64)),
    }
}

/// Formats a number with its digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

pub(super) fn bytes(value: f64) -> String {
    match value {
        ..1e6 => format!("{:.0} KB", value / 1e3),
        1e6..1e9 => format!("{} MB", trimmed((value / 1e6).round())),
        _ => format!("{} GB", trimmed(value / 1e9)),
    }
}

pub(super) fn time_tick(micros: f64) -> String {
    match micros {
        ..1e3 => format!("{micros:.0} µs"),
        1e3..1e6 => format!("{:.0} ms", micros / 1e3),
        _ => format!("{:.0} s", micros / 1e6),
    }
}

pub(super) fn count_tick(value: f64) -> String {
    if value >= 10_000.0 { format!("{}k", trimmed(value / 1e3)) } else { trimmed(value) }
}

pub(super) fn percent_tick(value: f64) -> String {
    format!("{}%", trimmed(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([grouped(7), grouped(1_234), grouped(1_234_567)], ["7", "1\u{202f}234", "1\u{202f}234\u{202f}567"]);
    }
}
