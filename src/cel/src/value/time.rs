//! Timestamps and durations.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A point in time: seconds since 1970 in UTC, and nanoseconds on top.
///
/// It remembers the offset at which it was written, as Go's times do. Only its text shows that offset; comparisons
/// ignore it.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    minutes_east: i16,
}

impl Timestamp {
    /// The first second of year 1, which Go calls the zero time.
    pub const ZERO: Self = Self { seconds: -62_135_596_800, nanos: 0, minutes_east: 0 };
    /// The last second that a timestamp may have: the end of year 9999.
    pub const SECONDS_MAX: i64 = 253_402_300_799;
    /// The first second that a timestamp may have: the beginning of year 1.
    pub const SECONDS_MIN: i64 = Self::ZERO.seconds;

    /// Returns the time of seconds since 1970 and nanoseconds, which carry over.
    pub const fn new(seconds: i64, nanos: i64) -> Self {
        let carried = seconds.saturating_add(nanos.div_euclid(1_000_000_000));
        Self { seconds: carried, nanos: nanos.rem_euclid(1_000_000_000) as u32, minutes_east: 0 }
    }

    /// Returns the time that clocks show at an offset of these seconds ahead of UTC. The offset has whole minutes, at
    /// most 25 hours of them.
    pub const fn local(seconds: i64, nanos: i64, offset: i64) -> Self {
        Self::new(seconds - offset, nanos).at_offset((offset / 60) as i16)
    }

    /// Returns the same time, shown at this many minutes ahead of UTC.
    #[must_use]
    pub const fn at_offset(self, minutes_east: i16) -> Self {
        Self { minutes_east, ..self }
    }

    /// Returns how many minutes ahead of UTC it is shown.
    pub const fn minutes_east(self) -> i16 {
        self.minutes_east
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

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

impl Hash for Timestamp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.seconds, self.nanos).hash(state);
    }
}

/// In RFC 3339, at its offset, without zeros at the end of the fraction.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: i64 = 86_400;
        let local = self.seconds.saturating_add(i64::from(self.minutes_east) * 60);
        let (days, second) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanos > 0 {
            write!(f, ".{}", format!("{:09}", self.nanos).trim_end_matches('0'))?;
        }
        let (sign, offset) = (if self.minutes_east < 0 { '-' } else { '+' }, self.minutes_east.unsigned_abs());
        match offset {
            0 => f.write_str("Z"),
            offset => write!(f, "{sign}{:02}:{:02}", offset / 60, offset % 60),
        }
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
