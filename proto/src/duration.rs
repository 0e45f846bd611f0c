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

/// The most nanoseconds of a duration, without its sign: those of the smallest one.
const NANOS_MAX: i128 = 1 << 63;

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
        if whole + decimals == 0 {
            return None;
        }
        let (number, after) = rest.split_at(end);
        let unit = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (name, after) = after.split_at(unit);
        let (_, scale) = UNITS.iter().find(|(unit, _)| *unit == name)?;
        let (int, fraction) = number.split_once('.').unwrap_or((number, ""));
        let int = if int.is_empty() { 0 } else { int.parse::<u64>().ok()? };
        total += i128::from(int) * scale + fraction_of(fraction, *scale);
        if total > NANOS_MAX {
            return None;
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Returns the nanoseconds of the decimals of a number of units. Computes with floats, as Go does, so that every text
/// has the same value.
fn fraction_of(decimals: &str, unit: i128) -> i128 {
    let (mut fraction, mut scale) = (0_u64, 1.0);
    for digit in decimals.bytes().map(|digit| u64::from(digit - b'0')) {
        let Some(longer) =
            fraction.checked_mul(10).and_then(|tens| tens.checked_add(digit)).filter(|&it| it <= 1 << 63)
        else {
            break;
        };
        (fraction, scale) = (longer, scale * 10.0);
    }
    (fraction as f64 * (unit as f64 / scale)) as i128
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
            ("0.3333333333333333333h", "20m0s"),
            ("0.9223372036854775807h", "55m20.413933267s"),
            ("0.100000000000000000000h", "6m0s"),
            ("0.18446744073709551616s", "184.46744ms"),
            ("0.9999999999999999999999999s", "1s"),
            ("00000000000000000000001s", "1s"),
            ("9223372036854775807ns", "2562047h47m16.854775807s"),
            ("-2562047h47m16.854775808s", "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(format(parse(text).unwrap()), want, "{text}");
        }
        for text in ["", "5", "1x", ".", "s", "99999999999h", "9223372036854775808ns", "99999999999999999999ns"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
