//! Conversions of values between types.

use crate::error::{Error, Outcome};
use crate::number::shortest;
use crate::types::Type;
use crate::value::{Duration, Timestamp, Value};

/// Converts a value to another type. `Err` if it cannot be converted.
pub fn convert<'a>(value: &Value<'a>, to: &Type) -> Outcome<Value<'a>> {
    let fail = || {
        let from = value.type_of();
        Error::new(format!("type conversion error from '{}' to '{}'", from.runtime_name(), to.runtime_name()))
    };
    if value.type_of() == *to {
        return Ok(value.clone());
    }
    let converted = match to {
        Type::Bool => value.as_str().and_then(|text| flotilla_golang::strconv::parse_bool(text).ok()).map(Value::Bool),
        Type::Bytes => value.as_str().map(|text| Value::bytes(text.as_bytes())),
        Type::Int => return to_int(value)?.map(Value::Int).ok_or_else(fail),
        Type::Uint => return to_uint(value)?.map(Value::Uint).ok_or_else(fail),
        Type::Double => match value {
            Value::Int(number) => Some(Value::Double(*number as f64)),
            Value::Uint(number) => Some(Value::Double(*number as f64)),
            Value::String(text) => flotilla_golang::strconv::parse_float(text).ok().map(Value::Double),
            _ => None,
        },
        Type::String => return to_text(value)?.map(Value::from).ok_or_else(fail),
        Type::Duration => value.as_str().and_then(parse_duration).map(Value::Duration),
        Type::Timestamp => return to_timestamp(value)?.map(Value::Timestamp).ok_or_else(fail),
        _ => None,
    };
    converted.ok_or_else(fail)
}

fn to_int(value: &Value<'_>) -> Outcome<Option<i64>> {
    let overflow = || Error::new("integer overflow");
    Ok(match value {
        Value::Uint(number) => Some(i64::try_from(*number).map_err(|_| overflow())?),
        Value::Double(number) if *number > -9_223_372_036_854_775_808.0 && *number < 9_223_372_036_854_775_808.0 => {
            Some(*number as i64)
        }
        Value::Double(_) => return Err(overflow()),
        Value::String(text) => flotilla_golang::strconv::parse_int(text).ok(),
        Value::Timestamp(time) => Some(time.seconds()),
        Value::Duration(span) => Some(span.nanos()),
        _ => None,
    })
}

fn to_uint(value: &Value<'_>) -> Outcome<Option<u64>> {
    let overflow = || Error::new("unsigned integer overflow");
    Ok(match value {
        Value::Int(number) => Some(u64::try_from(*number).map_err(|_| overflow())?),
        Value::Double(number) if *number >= 0.0 && *number < 18_446_744_073_709_551_616.0 => Some(*number as u64),
        Value::Double(_) => return Err(overflow()),
        Value::String(text) => flotilla_golang::strconv::parse_uint(text).ok(),
        _ => None,
    })
}

fn to_text(value: &Value<'_>) -> Outcome<Option<String>> {
    Ok(Some(match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => shortest(*number),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(Error::new("invalid UTF-8 in bytes, cannot convert to string")),
        },
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(span) => duration_text(*span),
        Value::Type(of) => of.runtime_name().to_owned(),
        _ => return Ok(None),
    }))
}

fn to_timestamp(value: &Value<'_>) -> Outcome<Option<Timestamp>> {
    let found = match value {
        Value::Int(seconds) => Some(Timestamp::new(*seconds, 0)),
        Value::String(text) => parse_timestamp(text),
        _ => None,
    };
    match found {
        Some(time) if !time.is_in_range() => Err(Error::new("timestamp overflow")),
        found => Ok(found),
    }
}

/// Formats a duration in seconds: `1.5s`.
pub fn duration_text(span: Duration) -> String {
    let nanos = span.nanos();
    // As in Go, whole seconds and the rest are added as doubles.
    let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}

/// Parses a duration as Go does: `1h30m`, `-1.5s`, `100ms`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::new(0));
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: u64 = 0;
    while !rest.is_empty() {
        let (amount, behind) = read_amount(rest)?;
        nanos = nanos.checked_add(amount).filter(|nanos| *nanos <= 1 << 63)?;
        rest = behind;
    }
    if is_negative {
        return Some(Duration::new((nanos as i64).wrapping_neg()));
    }
    i64::try_from(nanos).ok().map(Duration::new)
}

/// Parses one number with its unit. Returns nanoseconds, and the text after it. `None` if the text is malformed.
fn read_amount(text: &str) -> Option<(u64, &str)> {
    let digits = |text: &str| text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (whole, mut rest) = text.split_at(digits(text));
    let mut fraction = "";
    if let Some(behind) = rest.strip_prefix('.') {
        (fraction, rest) = behind.split_at(digits(behind));
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|char: char| char == '.' || char.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit: u64 = match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok().filter(|whole| *whole <= 1 << 63)? };
    let mut amount = whole.checked_mul(unit).filter(|amount| *amount <= 1 << 63)?;
    // Digits that no longer fit are left out.
    let (mut numerator, mut scale) = (0_u64, 1.0_f64);
    for digit in fraction.bytes() {
        let Some(next) = numerator.checked_mul(10).and_then(|next| next.checked_add(u64::from(digit - b'0'))) else {
            break;
        };
        if next > 1 << 63 {
            break;
        }
        numerator = next;
        scale *= 10.0;
    }
    amount = amount.checked_add((numerator as f64 * (unit as f64 / scale)) as u64)?;
    Some((amount, rest))
}

/// Returns the day of a date, counted from 1970.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Parses a time by RFC 3339, as Go does.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let mut rest = text;
    let year = take_number(&mut rest, 4, 4)?;
    take(&mut rest, "-")?;
    let month = take_number(&mut rest, 2, 2)?;
    take(&mut rest, "-")?;
    let day = take_number(&mut rest, 2, 2)?;
    take(&mut rest, "T")?;
    let hours = take_number(&mut rest, 1, 2)?;
    take(&mut rest, ":")?;
    let minutes = take_number(&mut rest, 2, 2)?;
    take(&mut rest, ":")?;
    let seconds = take_number(&mut rest, 2, 2)?;
    let nanos = take_fraction(&mut rest);
    let offset = take_offset(&mut rest)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let fits = (1..=12).contains(&month) && (1..=last).contains(&day) && hours < 24 && minutes < 60 && seconds < 60;
    if !fits || !rest.is_empty() {
        return None;
    }
    let of_day = hours * 3600 + minutes * 60 + seconds;
    Some(Timestamp::local(days(year, month, day) * 86_400 + of_day, nanos, offset))
}

fn take(rest: &mut &str, what: &str) -> Option<()> {
    *rest = rest.strip_prefix(what)?;
    Some(())
}

fn take_number(rest: &mut &str, least: usize, most: usize) -> Option<i64> {
    let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if digits < least {
        return None;
    }
    let (number, behind) = rest.split_at(digits);
    *rest = behind;
    number.parse().ok()
}

fn take_fraction(rest: &mut &str) -> i64 {
    let Some(behind) = rest.strip_prefix(['.', ',']) else { return 0 };
    let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return 0;
    }
    let (fraction, behind) = behind.split_at(digits);
    *rest = behind;
    format!("{fraction:0<9.9}").parse().unwrap_or(0)
}

fn take_offset(rest: &mut &str) -> Option<i64> {
    if take(rest, "Z").is_some() {
        return Some(0);
    }
    let sign = if take(rest, "-").is_some() { -1 } else { take(rest, "+").map(|()| 1)? };
    let hours = take_number(rest, 2, 2)?;
    take(rest, ":")?;
    let minutes = take_number(rest, 2, 2)?;
    (hours <= 24 && minutes <= 60).then_some(sign * (hours * 3600 + minutes * 60))
}
