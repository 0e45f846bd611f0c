//! Formats that convert a string to another type of value.

use flotilla_golang::strconv::quote;

use super::{Duration, Timestamp, Value};
use crate::error::{Error, Outcome};

const SECOND: i64 = 1_000_000_000;

/// Parses a duration in Go's form, or numbers with units up to weeks.
pub fn duration(text: &str) -> Outcome<Value<'static>> {
    let nanos = flotilla_proto::duration::parse(text).or_else(|| loose_duration(text));
    let nanos =
        nanos.ok_or_else(|| Error::new(format!("Invalid duration {text}: unable to parse {text} as duration")))?;
    Ok(Value::Duration(Duration::new(nanos)))
}

/// Returns the sum of all numbers before a unit, ignoring the text between them.
fn loose_duration(text: &str) -> Option<i64> {
    let (mut sum, mut is_found, mut rest) = (0i64, false, text);
    while let Some(start) = rest.find(|sign: char| sign.is_ascii_digit()) {
        let number = &rest[start..];
        let behind = number.trim_start_matches(|sign: char| sign.is_ascii_digit());
        let digits = &number[..number.len() - behind.len()];
        let unit = behind.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        rest = unit.trim_start_matches(|sign: char| sign.is_ascii_alphabetic() || sign == 'µ');
        let unit = &unit[..unit.len() - rest.len()];
        if unit.is_empty() {
            continue;
        }
        let count: i64 = digits.parse().ok()?;
        if let Some(size) = unit_nanos(&unit.to_lowercase()) {
            sum = sum.wrapping_add(count.wrapping_mul(size));
            is_found = true;
        }
    }
    is_found.then_some(sum)
}

fn unit_nanos(unit: &str) -> Option<i64> {
    const UNITS: [(&[&str], &str, i64); 8] = [
        (&["ns"], "nano", 1),
        (&["us", "µs"], "micro", 1_000),
        (&["ms"], "milli", 1_000_000),
        (&["s"], "sec", SECOND),
        (&["m"], "min", 60 * SECOND),
        (&["h", "hr"], "hour", 3_600 * SECOND),
        (&["d"], "day", 86_400 * SECOND),
        (&["w", "wk"], "week", 7 * 86_400 * SECOND),
    ];
    let found = UNITS.iter().find(|(short, long, _)| short.contains(&unit) || unit.starts_with(long));
    found.map(|(_, _, nanos)| *nanos)
}

/// Parses a day: `2024-02-29`.
pub fn date(text: &str) -> Outcome<Value<'static>> {
    let mut reader = LayoutReader::new(text, "2006-01-02");
    let read = reader.date().and_then(|days| reader.end().map(|()| days));
    let days = read.map_err(|why| Error::new(format!("Invalid date formatted string {text}: {why}")))?;
    Ok(Value::Timestamp(Timestamp::new(days * 86_400, 0)))
}

/// Parses a time by RFC 3339, or without a zone.
pub fn date_time(text: &str) -> Outcome<Value<'static>> {
    if text.is_empty() {
        return Ok(Value::Timestamp(Timestamp::new(0, 0)));
    }
    // The reference tries several forms, and reports why the last one does not fit.
    let read = with_zone(text).map_or_else(|_| without_zone(text), Ok);
    read.map(Value::Timestamp).map_err(|why| Error::new(format!("Invalid date-time formatted string {text}: {why}")))
}

fn with_zone(text: &str) -> Result<Timestamp, String> {
    let mut reader = LayoutReader::new(text, "2006-01-02T15:04:05Z07:00");
    let (seconds, nanos) = reader.date_and_clock()?;
    let offset = reader.zone()?;
    reader.end()?;
    Ok(Timestamp::local(seconds, nanos, offset))
}

fn without_zone(text: &str) -> Result<Timestamp, String> {
    let mut reader = LayoutReader::new(text, "2006-01-02T15:04:05");
    let (seconds, nanos) = reader.date_and_clock()?;
    reader.end()?;
    Ok(Timestamp::new(seconds, nanos))
}

/// Parses a time part by part. Reports the first part that does not fit, as Go does.
struct LayoutReader<'t> {
    text: &'t str,
    layout: &'static str,
    rest: &'t str,
}

impl<'t> LayoutReader<'t> {
    fn new(text: &'t str, layout: &'static str) -> Self {
        Self { text, layout, rest: text }
    }

    fn misfit(&self, at: &str, part: &str) -> String {
        let (text, layout) = (quote(self.text), quote(self.layout));
        format!("parsing time {text} as {layout}: cannot parse {} as {}", quote(at), quote(part))
    }

    fn out_of_range(&self, part: &str) -> String {
        format!("parsing time {}: {part} out of range", quote(self.text))
    }

    fn sign(&mut self, sign: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(sign).ok_or_else(|| self.misfit(self.rest, sign))?;
        Ok(())
    }

    /// Parses as many digits as `part` has.
    fn number(&mut self, part: &'static str) -> Result<i64, String> {
        let digits = self.rest.get(..part.len()).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let digits = digits.ok_or_else(|| self.misfit(self.rest, part))?;
        self.rest = &self.rest[part.len()..];
        digits.parse().map_err(|_| self.misfit(self.rest, part))
    }

    /// Parses a date. Returns days since 1970.
    fn date(&mut self) -> Result<i64, String> {
        let year = self.number("2006")?;
        self.sign("-")?;
        let month = self.number("01")?;
        if !(1..=12).contains(&month) {
            return Err(self.out_of_range("month"));
        }
        self.sign("-")?;
        let day = self.number("02")?;
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + i64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if !(1..=days).contains(&day) {
            return Err(self.out_of_range("day"));
        }
        Ok(day_number(year, month, day))
    }

    /// Parses a date and a time of day. Returns seconds since 1970, and nanoseconds.
    fn date_and_clock(&mut self) -> Result<(i64, i64), String> {
        let days = self.date()?;
        self.sign("T")?;
        let mut of_day = 0;
        for (part, sign, limit, name) in [("15", ":", 24, "hour"), ("04", ":", 60, "minute"), ("05", "", 60, "second")]
        {
            let number = self.number(part)?;
            if number >= limit {
                return Err(self.out_of_range(name));
            }
            self.sign(sign)?;
            of_day = of_day * 60 + number;
        }
        Ok((days * 86_400 + of_day, self.fraction()))
    }

    /// Parses a fraction of a second after a point or a comma. Returns nanoseconds.
    fn fraction(&mut self) -> i64 {
        let Some(digits) = self.rest.strip_prefix(['.', ',']) else { return 0 };
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return 0;
        }
        self.rest = &digits[length..];
        let kept = &digits[..length.min(9)];
        format!("{kept:0<9}").parse().unwrap_or(0)
    }

    /// Parses `Z` or an offset. Returns the seconds by which the zone is ahead of UTC.
    fn zone(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let part = "Z07:00";
        let ahead = match self.rest.as_bytes().first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(self.misfit(self.rest, part)),
        };
        self.rest = &self.rest[1..];
        let hours = self.number("07")?;
        self.sign(":")?;
        let minutes = self.number("00")?;
        if hours > 24 || minutes > 60 {
            return Err(self.out_of_range("time zone offset"));
        }
        Ok(ahead * (hours * 3_600 + minutes * 60))
    }

    fn end(&self) -> Result<(), String> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(format!("parsing time {}: extra text: {}", quote(self.text), quote(self.rest)))
    }
}

/// Returns the number of a day, counted from 1970 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Parses base64 with the URL-safe alphabet, as the reference does. Ignores line ends.
pub fn bytes(text: &str) -> Outcome<Value<'static>> {
    let decoded = decode(text).map_err(|place| {
        let why = format!("illegal base64 data at input byte {place}");
        Error::new(format!("Invalid byte formatted string {text}: {why}"))
    })?;
    Ok(Value::bytes(decoded))
}

/// Decodes base64. `Err` is the position of the first invalid character.
fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let signs: Vec<(usize, u8)> = text.bytes().enumerate().filter(|(_, byte)| !b"\r\n".contains(byte)).collect();
    let mut out = Vec::with_capacity(signs.len() / 4 * 3);
    let mut quads = signs.chunks(4).peekable();
    while let Some(quad) = quads.next() {
        let is_padding = |place: usize| quad.get(place).is_some_and(|(_, byte)| *byte == b'=');
        let padding = usize::from(is_padding(3)) * (1 + usize::from(is_padding(2)));
        let mut bits = 0;
        for (place, byte) in &quad[..quad.len() - padding] {
            bits = bits << 6 | u32::from(value_of(*byte).ok_or(*place)?);
        }
        if quad.len() < 4 {
            return Err(quad[0].0);
        }
        if padding > 0
            && let Some(next) = quads.peek()
        {
            return Err(next[0].0);
        }
        let triple = bits << (6 * padding);
        out.extend_from_slice(&triple.to_be_bytes()[1..4 - padding]);
    }
    Ok(out)
}

fn value_of(sign: u8) -> Option<u8> {
    match sign {
        b'A'..=b'Z' => Some(sign - b'A'),
        b'a'..=b'z' => Some(sign - b'a' + 26),
        b'0'..=b'9' => Some(sign - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(read: Outcome<Value<'_>>) -> String {
        match read {
            Ok(Value::Timestamp(time)) => time.to_string(),
            Ok(Value::Duration(span)) => span.to_string(),
            Ok(Value::Bytes(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn times_are_read_as_the_reference_reads_them() {
        assert_eq!(shown(date("2020-01-02")), "2020-01-02T00:00:00Z");
        assert_eq!(shown(date_time("2020-01-02T03:04:05.5+01:00")), "2020-01-02T03:04:05.5+01:00");
        assert_eq!(shown(date_time("2020-01-02T03:04:05")), "2020-01-02T03:04:05Z");
        assert_eq!(shown(date_time("")), "1970-01-01T00:00:00Z");
        let why = "Invalid date formatted string 2020-13-02: parsing time \"2020-13-02\": month out of range";
        assert_eq!(shown(date("2020-13-02")), why);
        let form = "parsing time \"2020-01-02T03:04Z\" as \"2006-01-02T15:04:05\": cannot parse \"Z\" as \":\"";
        let why = format!("Invalid date-time formatted string 2020-01-02T03:04Z: {form}");
        assert_eq!(shown(date_time("2020-01-02T03:04Z")), why);
        assert!(shown(date_time("2020-01-02 03:04:05Z")).ends_with("cannot parse \" 03:04:05Z\" as \"T\""));
        assert!(shown(date_time("nope")).ends_with("cannot parse \"nope\" as \"2006\""));
    }

    #[test]
    fn durations_and_bytes_are_read_loosely() {
        assert_eq!(shown(duration("1h30m")), "5400s");
        assert_eq!(shown(duration("1d")), "86400s");
        assert_eq!(shown(duration("10 minutes")), "600s");
        assert_eq!(shown(duration("P1D")), "86400s");
        assert_eq!(shown(duration("5")), "Invalid duration 5: unable to parse 5 as duration");
        assert_eq!(shown(bytes("aGVsbG8=")), "hello");
        let why = "Invalid byte formatted string aGVsbG8: illegal base64 data at input byte 4";
        assert_eq!(shown(bytes("aGVsbG8")), why);
    }
}
