//! Spans of time as Go writes them: `1h30m`, `1.5s`, `300ms`.

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Returns the nanoseconds of a text. Returns `None` when it is not a duration that fits into 64 bits.
pub fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_i128;
    while !rest.is_empty() {
        let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
        let mut end = whole;
        let mut decimals = 0;
        if rest.as_bytes().get(whole) == Some(&b'.') {
            decimals = rest[whole + 1..].bytes().take_while(u8::is_ascii_digit).count();
            end = whole + 1 + decimals;
        }
        if (whole + decimals == 0) || whole > 19 {
            return None;
        }
        let (number, after) = rest.split_at(end);
        let unit = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (name, after) = after.split_at(unit);
        let (_, scale) = UNITS.iter().find(|(unit, _)| *unit == name)?;
        let (int, fraction) = number.split_once('.').unwrap_or((number, ""));
        total += int.parse::<i128>().unwrap_or(0) * scale;
        let fraction = &fraction[..fraction.len().min(15)];
        if !fraction.is_empty() {
            total += fraction.parse::<i128>().ok()? * scale / 10_i128.pow(fraction.len() as u32);
        }
        if total > i128::from(i64::MAX) {
            return None;
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Returns the canonical text: hours, minutes and seconds, or below a second the one unit that fits.
pub fn format(nanos: i64) -> String {
    let size = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    let decimal = |unit: u64| {
        let mut text = (size / unit).to_string();
        let rest = size % unit;
        if rest > 0 {
            let width = unit.ilog10() as usize;
            text = format!("{text}.{rest:0width$}").trim_end_matches('0').to_owned();
        }
        text
    };
    if size == 0 {
        return "0s".into();
    }
    if size < 1_000 {
        return format!("{sign}{size}ns");
    }
    if size < 1_000_000 {
        return format!("{sign}{}µs", decimal(1_000));
    }
    if size < 1_000_000_000 {
        return format!("{sign}{}ms", decimal(1_000_000));
    }
    let minutes = size / 60_000_000_000;
    let rest = size % 60_000_000_000;
    let mut seconds = (rest / 1_000_000_000).to_string();
    if !rest.is_multiple_of(1_000_000_000) {
        seconds = format!("{seconds}.{:09}", rest % 1_000_000_000).trim_end_matches('0').to_owned();
    }
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_canonical() {
        for (text, want) in [
            ("0", "0s"),
            ("90s", "1m30s"),
            ("1.5h", "1h30m0s"),
            ("300ms", "300ms"),
            ("1500ms", "1.5s"),
            ("-2m", "-2m0s"),
            ("1h0.5s", "1h0m0.5s"),
            ("10us", "10µs"),
            ("7ns", "7ns"),
            ("1.5us", "1.5µs"),
        ] {
            assert_eq!(format(parse(text).unwrap()), want, "{text}");
        }
        for text in ["", "5", "1x", ".", "s", "99999999999h"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
