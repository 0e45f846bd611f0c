//! Timestamps and durations.

use std::fmt;

/// A point in time: seconds since 1970 in UTC, and nanoseconds on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

impl Timestamp {
    /// The first second of year 1, which Go calls the zero time.
    pub const ZERO: Self = Self { seconds: -62_135_596_800, nanos: 0 };
    /// The last second that a timestamp may have: the end of year 9999.
    pub const SECONDS_MAX: i64 = 253_402_300_799;
    /// The first second that a timestamp may have: the beginning of year 1.
    pub const SECONDS_MIN: i64 = Self::ZERO.seconds;

    /// Returns the time of seconds since 1970 and nanoseconds, which carry over.
    pub const fn new(seconds: i64, nanos: i64) -> Self {
        let carried = seconds.saturating_add(nanos.div_euclid(1_000_000_000));
        Self { seconds: carried, nanos: nanos.rem_euclid(1_000_000_000) as u32 }
    }

    /// Returns the seconds since 1970, rounded down.
    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    /// Returns the nanoseconds on top of [`Timestamp::seconds`].
    pub const fn nanos(self) -> u32 {
        self.nanos
    }

    /// Returns whether it lies in CEL's range: the years 1 to 9999.
    pub const fn is_in_range(self) -> bool {
        self.seconds >= Self::SECONDS_MIN && self.seconds <= Self::SECONDS_MAX
    }
}

/// A span of time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

impl Duration {
    /// Returns the duration of these nanoseconds.
    pub const fn new(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }
}

/// In RFC 3339, in UTC, without zeros at the end of the fraction.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: i64 = 86_400;
        let (days, second) = (self.seconds.div_euclid(DAY), self.seconds.rem_euclid(DAY));
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanos > 0 {
            write!(f, ".{}", format!("{:09}", self.nanos).trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// Year, month and day of a day that is counted from 1970 (Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms").
fn date(days: i64) -> (i64, i64, i64) {
    // Days since the first of March of year 0, in eras of 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// In seconds: `3601.5s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: i64 = 1_000_000_000;
        // Whole seconds and the rest are added as doubles, as Go does.
        write!(f, "{}s", (self.0 / SECOND) as f64 + (self.0 % SECOND) as f64 / SECOND as f64)
    }
}
