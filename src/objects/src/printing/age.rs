//! Formats ages and durations for people: `45s`, `5m30s`, `3d4h`.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Str, Value};

/// The text for a time that is not set.
pub const UNKNOWN: &str = "<unknown>";

const SECOND: i64 = 1_000_000_000;

/// Returns the nanoseconds from `from` to `to`, clamped to 64 bits (292 years), as Go's durations are.
pub fn between(from: Timestamp, to: Timestamp) -> i64 {
    let whole = i128::from(to.seconds) - i128::from(from.seconds);
    let nanos = whole * i128::from(SECOND) + i128::from(to.nanos) - i128::from(from.nanos);
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// Formats a number of nanoseconds with two or three significant figures, as Go's `duration.HumanDuration` does. Up to
/// two seconds below zero count as clock skew and print as `0s`, more as `<invalid>`.
pub fn human(nanos: i64) -> Str {
    let seconds = nanos / SECOND;
    if seconds < -1 {
        return "<invalid>".into();
    }
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    if seconds < 120 {
        one(seconds.max(0), 's')
    } else if minutes < 10 {
        two(minutes, 'm', seconds % 60, 's')
    } else if minutes < 180 {
        one(minutes, 'm')
    } else if hours < 8 {
        two(hours, 'h', minutes % 60, 'm')
    } else if hours < 48 {
        one(hours, 'h')
    } else if days < 8 {
        two(days, 'd', hours % 24, 'h')
    } else if years < 2 {
        one(days, 'd')
    } else if years < 8 {
        two(years, 'y', days % 365, 'd')
    } else {
        one(years, 'y')
    }
}

fn one(count: i64, unit: char) -> Str {
    two(count, unit, 0, unit)
}

/// Formats an amount in two units; omits the second one if it is zero.
fn two(large: i64, large_unit: char, small: i64, small_unit: char) -> Str {
    let mut text = Str::default();
    push_number(large, &mut text);
    text.push(large_unit);
    if small != 0 {
        push_number(small, &mut text);
        text.push(small_unit);
    }
    text
}

fn push_number(number: i64, text: &mut Str) {
    if number > 9 {
        push_number(number / 10, text);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

/// Returns the time that a value states. Returns `None` if it is not set.
pub fn time(value: &Value) -> Option<Timestamp> {
    Timestamp::parse(value.as_str()?).ok().filter(|time| (time.seconds, time.nanos) != ZERO)
}

/// Go's zero time, 0001-01-01T00:00:00Z, which counts as not set.
const ZERO: (i64, u32) = (-62_135_596_800, 0);

/// Returns the time since `value`, or `<unknown>` when it is not set.
pub fn since(value: &Value, now: Timestamp) -> Str {
    time(value).map_or(Str::const_new(UNKNOWN), |time| human(between(time, now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_the_text_of_go() {
        const MINUTE: i64 = 60;
        const HOUR: i64 = 3600;
        const DAY: i64 = 86_400;
        for (seconds, want) in [
            (-3, "<invalid>"),
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (10 * MINUTE - 1, "9m59s"),
            (10 * MINUTE + 59, "10m"),
            (180 * MINUTE - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 61, "3h1m"),
            (8 * HOUR - 1, "7h59m"),
            (47 * HOUR + 3599, "47h"),
            (2 * DAY, "2d"),
            (7 * DAY + 23 * HOUR, "7d23h"),
            (8 * DAY + 23 * HOUR, "8d"),
            (730 * DAY - 1, "729d"),
            (730 * DAY, "2y"),
            (731 * DAY, "2y1d"),
            (8 * 365 * DAY - 1, "7y364d"),
            (8 * 365 * DAY, "8y"),
        ] {
            assert_eq!(human(seconds * SECOND), want, "{seconds}");
        }
        assert_eq!(human(-1_999_999_999), "0s");
        assert_eq!(human(i64::MAX), "292y");
        assert_eq!(human(i64::MIN), "<invalid>");
    }

    #[test]
    fn ages_of_times_that_are_not_set_are_unknown() {
        let now = Timestamp { seconds: 1_700_000_000, nanos: 500 };
        assert_eq!(since(&Value::Null, now), UNKNOWN);
        assert_eq!(since(&"0001-01-01T00:00:00Z".into(), now), UNKNOWN);
        assert_eq!(since(&"nonsense".into(), now), UNKNOWN);
        assert_eq!(since(&"0001-01-02T00:00:00Z".into(), now), "292y");
        assert_eq!(since(&"2023-11-14T22:13:10Z".into(), now), "10s");
    }
}
