//! Points and spans of time.

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
    /// The first second that a timestamp may have: the begin of year 1.
    pub const SECONDS_MIN: i64 = Self::ZERO.seconds;

    /// Of seconds since 1970 and nanoseconds, which carry over.
    pub const fn new(seconds: i64, nanos: i64) -> Self {
        let carried = seconds.saturating_add(nanos.div_euclid(1_000_000_000));
        Self { seconds: carried, nanos: nanos.rem_euclid(1_000_000_000) as u32 }
    }

    /// Seconds since 1970, rounded down.
    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds on top of [`Timestamp::seconds`].
    pub const fn nanos(self) -> u32 {
        self.nanos
    }

    /// Whether CEL's range has it: the years 1 to 9999.
    pub const fn is_in_range(self) -> bool {
        self.seconds >= Self::SECONDS_MIN && self.seconds <= Self::SECONDS_MAX
    }
}

/// A span of time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

impl Duration {
    /// Of nanoseconds.
    pub const fn new(nanos: i64) -> Self {
        Self(nanos)
    }

    /// In nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }
}
