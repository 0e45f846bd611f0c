//! Revisions, which Kubernetes clients see as `resourceVersion`.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;

/// The number of low bits of a revision that count within one millisecond.
const COUNTER_BITS: u32 = 18;

/// A point in the history of a table: a hybrid logical clock value, `unix_milliseconds << 18 | counter`.
///
/// The low 8 of the 18 bits of the counter are the number of the group that assigned the revision, so that two groups
/// never assign the same revision, although they do not ask each other. The 10 bits above begin at a fraction of the
/// millisecond: a group can assign 1,024 revisions in a millisecond before it runs ahead of the clock.
///
/// Revisions of one table are unique and strictly increasing. Between [`Revision::FIRST`] and [`Revision::LAST`]
/// (the years 1982 to 2090) the decimal form has exactly [`Revision::DIGITS`] digits, so that it can be written in
/// place into an encoded object. Correct clocks matter only for the mapping to wall time, never for the order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(u64);

impl Revision {
    /// The number of digits of every revision between [`Revision::FIRST`] and [`Revision::LAST`].
    pub const DIGITS: usize = 18;
    /// The smallest revision of 18 digits, and the smallest that is ever assigned.
    pub const FIRST: Revision = Revision(100_000_000_000_000_000);
    /// The largest revision of 18 digits, and the largest that is ever assigned.
    pub const LAST: Revision = Revision(999_999_999_999_999_999);
    /// Lies before every revision that is assigned: nothing is visible at it.
    pub const ZERO: Revision = Revision(0);

    /// Returns the revision with this number.
    pub const fn new(number: u64) -> Revision {
        Revision(number)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the first revision of a millisecond, clamped to [`Revision::FIRST`] and [`Revision::LAST`].
    pub fn from_unix_ms(unix_ms: u64) -> Revision {
        let number = unix_ms.saturating_mul(1 << COUNTER_BITS);
        Revision(number.clamp(Self::FIRST.0, Self::LAST.0))
    }

    /// Returns the time of the hybrid clock that assigned this revision, in milliseconds since 1970.
    pub const fn unix_ms(self) -> u64 {
        self.0 >> COUNTER_BITS
    }

    /// Returns the difference between revisions that are assigned `duration` apart.
    pub(crate) fn span(duration: Duration) -> u64 {
        let (ms, rest_ns) = (duration.as_millis() as u64, u64::from(duration.subsec_nanos() % 1_000_000));
        ms.saturating_mul(1 << COUNTER_BITS).saturating_add((rest_ns << COUNTER_BITS) / 1_000_000)
    }

    /// Returns the time between the assignment of revisions that differ by `span`, rounded up to whole nanoseconds.
    pub(crate) fn duration(span: u64) -> Duration {
        let (ms, rest) = (span >> COUNTER_BITS, span % (1 << COUNTER_BITS));
        Duration::from_millis(ms) + Duration::from_nanos((rest * 1_000_000).div_ceil(1 << COUNTER_BITS))
    }

    /// Returns the next larger number.
    pub const fn next(self) -> Revision {
        Revision(self.0.saturating_add(1))
    }

    /// Returns the next smaller number.
    pub const fn previous(self) -> Revision {
        Revision(self.0.saturating_sub(1))
    }

    /// Writes the 18 digits at the start of `out`. Returns false and writes nothing when there is no room or the
    /// revision does not have 18 digits.
    pub fn write_digits(self, out: &mut [u8]) -> bool {
        if self < Self::FIRST || self > Self::LAST || out.len() < Self::DIGITS {
            return false;
        }
        let mut rest = self.0;
        for digit in out[..Self::DIGITS].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        true
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Revision {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Revision, ParseIntError> {
        text.parse().map(Revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_the_decimal_form() {
        for number in [Revision::FIRST.get(), 123_456_789_012_345_678, Revision::LAST.get()] {
            let mut out = [0; 18];
            assert!(Revision::new(number).write_digits(&mut out));
            assert_eq!(std::str::from_utf8(&out).unwrap(), number.to_string());
        }
        assert!(!Revision::new(7).write_digits(&mut [0; 18]));
        assert!(!Revision::FIRST.write_digits(&mut [0; 17]));
    }

    #[test]
    fn spans_are_durations() {
        assert_eq!(Revision::span(Duration::from_millis(3)), 3 << 18);
        for nanos in [0, 1, 999, 1_000_000, 1_234_567_891, 3_600_000_000_007] {
            let duration = Duration::from_nanos(nanos);
            let there_and_back = Revision::duration(Revision::span(duration));
            assert!(duration.abs_diff(there_and_back) < Duration::from_nanos(5), "{duration:?} {there_and_back:?}");
        }
    }

    #[test]
    fn wall_time_survives() {
        let revision = Revision::from_unix_ms(1_790_000_000_123);
        assert_eq!(revision.unix_ms(), 1_790_000_000_123);
        assert_eq!(revision.to_string().len(), Revision::DIGITS);
        assert_eq!(Revision::from_unix_ms(0), Revision::FIRST);
        assert_eq!(Revision::from_unix_ms(u64::MAX), Revision::LAST);
    }
}
