//! Points in time as the API writes them: RFC 3339, in whole seconds or with six decimals (API conventions, "Primitive
//! types").

use std::fmt;

/// A point in time, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
}

/// The reason why a text is not a time, in the words of Go's `time.Parse`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A part does not fit the layout.
    #[error("parsing time {} as {layout:?}: cannot parse {} as {part:?}", quoted(text), quoted(rest))]
    Part {
        /// The whole text.
        text: String,
        /// The layout in Go's reference time.
        layout: &'static str,
        /// Where parsing stopped.
        rest: String,
        /// The element of the layout that was expected.
        part: &'static str,
    },
    /// A part is out of its range.
    #[error("parsing time {}: {part} out of range", quoted(text))]
    Range {
        /// The whole text.
        text: String,
        /// The part, such as `month`.
        part: &'static str,
    },
    /// There is more text after the time.
    #[error("parsing time {}: extra text: {}", quoted(text), quoted(rest))]
    Extra {
        /// The whole text.
        text: String,
        /// The text after the time.
        rest: String,
    },
}

/// Quotes a text as errors of Go's package `time` do: bytes beyond ASCII and control characters by their numbers.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=0x7f => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

struct TimeReader<'a> {
    text: &'a str,
    rest: &'a str,
    layout: &'static str,
}

impl<'a> TimeReader<'a> {
    fn fail<T>(&self, part: &'static str) -> Result<T, Error> {
        Err(Error::Part { text: self.text.into(), layout: self.layout, rest: self.rest.into(), part })
    }

    fn number(&mut self, digits: usize, part: &'static str) -> Result<i64, Error> {
        let ok = self.rest.len() >= digits && self.rest.as_bytes()[..digits].iter().all(u8::is_ascii_digit);
        if !ok {
            return self.fail(part);
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        Ok(number.parse().unwrap_or_default())
    }

    /// Reads one digit or two.
    fn short_number(&mut self, part: &'static str) -> Result<i64, Error> {
        let has_two = self.rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        self.number(if has_two { 2 } else { 1 }, part)
    }

    fn mark(&mut self, mark: &'static str) -> Result<(), Error> {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => self.fail(mark),
        }
    }

    fn range(&self, number: i64, low: i64, high: i64, part: &'static str) -> Result<(), Error> {
        if (low..=high).contains(&number) { Ok(()) } else { Err(Error::Range { text: self.text.into(), part }) }
    }

    /// Reads the offset from UTC, in seconds.
    fn zone(&mut self) -> Result<i64, Error> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bytes = self.rest.as_bytes();
        let form = bytes.len() >= 6
            && matches!(bytes[0], b'+' | b'-')
            && bytes[3] == b':'
            && [1, 2, 4, 5].iter().all(|&n| bytes[n].is_ascii_digit());
        if !form {
            return self.fail("Z07:00");
        }
        let two = |at: usize| i64::from(bytes[at] - b'0') * 10 + i64::from(bytes[at + 1] - b'0');
        let (hours, minutes) = (two(1), two(4));
        self.range(hours, 0, 24, "time zone offset hour")?;
        self.range(minutes, 0, 60, "time zone offset minute")?;
        let offset = hours * 3600 + minutes * 60;
        let sign = if bytes[0] == b'-' { -1 } else { 1 };
        self.rest = &self.rest[6..];
        Ok(sign * offset)
    }
}

impl Timestamp {
    /// Go's zero time, which stands for an unset time: the first second of the year 1.
    pub const ZERO: Self = Self { seconds: -62_135_596_800, nanos: 0 };

    /// Parses RFC 3339 with or without a fraction of a second (`metav1.Time`).
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::read(text, SECONDS)
    }

    /// Parses RFC 3339 with exactly six decimals (`metav1.MicroTime`).
    pub fn parse_micro(text: &str) -> Result<Self, Error> {
        Self::read(text, MICROS)
    }

    fn read(text: &str, layout: &'static str) -> Result<Self, Error> {
        let mut r = TimeReader { text, rest: text, layout };
        let year = r.number(4, "2006")?;
        r.mark("-")?;
        let month = r.number(2, "01")?;
        r.range(month, 1, 12, "month")?;
        r.mark("-")?;
        let day = r.number(2, "02")?;
        r.mark("T")?;
        let hour = r.short_number("15")?;
        r.range(hour, 0, 23, "hour")?;
        r.mark(":")?;
        let minute = r.number(2, "04")?;
        r.range(minute, 0, 59, "minute")?;
        r.mark(":")?;
        let second = r.number(2, "05")?;
        r.range(second, 0, 59, "second")?;
        let nanos = if layout == MICROS { six_decimals(&mut r)? } else { fraction(&mut r) };
        let offset = r.zone()?;
        if !r.rest.is_empty() {
            return Err(Error::Extra { text: text.into(), rest: r.rest.into() });
        }
        r.range(day, 1, days_of(year, month), "day")?;
        let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
        Ok(Self { seconds, nanos })
    }

    /// Returns the form with six decimals.
    pub fn micro(self) -> String {
        let mut text = self.to_string();
        text.truncate(text.len() - 1);
        text + &format!(".{:06}Z", self.nanos / 1000)
    }
}

fn six_decimals(r: &mut TimeReader<'_>) -> Result<u32, Error> {
    let bytes = r.rest.as_bytes();
    if bytes.len() < 7 || !matches!(bytes[0], b'.' | b',') || !bytes[1..7].iter().all(u8::is_ascii_digit) {
        return r.fail(".000000");
    }
    let micros: u32 = r.rest[1..7].parse().unwrap_or_default();
    r.rest = &r.rest[7..];
    Ok(micros * 1000)
}

/// Reads a fraction, which may follow the seconds even where the layout has none.
fn fraction(r: &mut TimeReader<'_>) -> u32 {
    let Some(after) = r.rest.strip_prefix(['.', ',']) else { return 0 };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return 0;
    }
    let nanos =
        after[..digits].bytes().chain(std::iter::repeat(b'0')).take(9).fold(0, |n, b| n * 10 + u32::from(b - b'0'));
    r.rest = &after[digits..];
    nanos
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days of a civil date since 1970-01-01. Years are counted from March, so that the leap day is the last
/// day of its year.
const fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Returns the civil date of a day since 1970-01-01.
const fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days - era * 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + (month <= 2) as i64;
    (year, month, day)
}

impl fmt::Display for Timestamp {
    /// Writes the form in whole seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.seconds.div_euclid(86_400), self.seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_in_utc() {
        for (text, want) in [
            ("2024-02-29T12:34:56Z", "2024-02-29T12:34:56Z"),
            ("2020-01-01T00:30:00+01:00", "2019-12-31T23:30:00Z"),
            ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59Z"),
            ("2024-01-02T3:04:05Z", "2024-01-02T03:04:05Z"),
            ("2024-01-02T03:04:05,5Z", "2024-01-02T03:04:05Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), want);
        }
        assert_eq!(
            Timestamp::parse_micro("2020-01-01T00:00:00.123456Z").unwrap().micro(),
            "2020-01-01T00:00:00.123456Z"
        );
        assert_eq!(
            Timestamp::parse_micro("2020-01-01T1:00:00,123456Z").unwrap().micro(),
            "2020-01-01T01:00:00.123456Z"
        );
        assert_eq!(Timestamp::parse("0001-01-01T01:00:00+01:00"), Ok(Timestamp::ZERO));
        for day in (-800_000..800_000).step_by(367) {
            let (year, month, date) = civil(day);
            assert_eq!(days_since_epoch(year, month, date), day);
        }
    }

    #[test]
    fn errors_are_worded_as_go_words_them() {
        for (text, want) in [
            (
                "yesterday",
                r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#,
            ),
            ("2020-13-01T00:00:00Z", r#"parsing time "2020-13-01T00:00:00Z": month out of range"#),
            (
                "2024-01-02T3:4:05Z",
                r#"parsing time "2024-01-02T3:4:05Z" as "2006-01-02T15:04:05Z07:00": cannot parse "4:05Z" as "04""#,
            ),
            ("2020-02-30T00:00:00Z", r#"parsing time "2020-02-30T00:00:00Z": day out of range"#),
            (
                "a\n\u{e9}",
                r#"parsing time "a\x0a\xc3\xa9" as "2006-01-02T15:04:05Z07:00": cannot parse "a\x0a\xc3\xa9" as "2006""#,
            ),
            ("2020-01-01", r#"parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#),
        ] {
            assert_eq!(Timestamp::parse(text).unwrap_err().to_string(), want);
        }
        for (text, rest, part) in
            [("2020-01-01T00:00:00Z", "Z", ".000000"), ("2020-01-01T00:00:00.1234567Z", "7Z", "Z07:00")]
        {
            let error = Timestamp::parse_micro(text).unwrap_err().to_string();
            assert!(error.ends_with(&format!("cannot parse {rest:?} as {part:?}")), "{error}");
        }
    }
}
