//! Functions of timestamps and durations: parts of a date and time, in UTC or in a time zone.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp as Instant, Zoned};

use super::native;
use crate::cost;
use crate::error::{Error, Outcome};
use crate::functions::Function;
use crate::value::{Timestamp, Value};

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "getFullYear",
        overloads: &[
            native("timestamp_to_year", "timestamp.(): int", cost::DEFAULT, year),
            native("timestamp_to_year_with_tz", "timestamp.(string): int", cost::DEFAULT, year),
        ],
    },
    Function {
        name: "getMonth",
        overloads: &[
            native("timestamp_to_month", "timestamp.(): int", cost::DEFAULT, month),
            native("timestamp_to_month_with_tz", "timestamp.(string): int", cost::DEFAULT, month),
        ],
    },
    Function {
        name: "getDayOfYear",
        overloads: &[
            native("timestamp_to_day_of_year", "timestamp.(): int", cost::DEFAULT, day_of_year),
            native("timestamp_to_day_of_year_with_tz", "timestamp.(string): int", cost::DEFAULT, day_of_year),
        ],
    },
    Function {
        name: "getDayOfMonth",
        overloads: &[
            native("timestamp_to_day_of_month", "timestamp.(): int", cost::DEFAULT, day_of_month),
            native("timestamp_to_day_of_month_with_tz", "timestamp.(string): int", cost::DEFAULT, day_of_month),
        ],
    },
    Function {
        name: "getDate",
        overloads: &[
            native("timestamp_to_day_of_month_1_based", "timestamp.(): int", cost::DEFAULT, date),
            native("timestamp_to_day_of_month_1_based_with_tz", "timestamp.(string): int", cost::DEFAULT, date),
        ],
    },
    Function {
        name: "getDayOfWeek",
        overloads: &[
            native("timestamp_to_day_of_week", "timestamp.(): int", cost::DEFAULT, day_of_week),
            native("timestamp_to_day_of_week_with_tz", "timestamp.(string): int", cost::DEFAULT, day_of_week),
        ],
    },
    Function {
        name: "getHours",
        overloads: &[
            native("timestamp_to_hours", "timestamp.(): int", cost::DEFAULT, hours),
            native("timestamp_to_hours_with_tz", "timestamp.(string): int", cost::DEFAULT, hours),
            native("duration_to_hours", "duration.(): int", cost::DEFAULT, hours),
        ],
    },
    Function {
        name: "getMinutes",
        overloads: &[
            native("timestamp_to_minutes", "timestamp.(): int", cost::DEFAULT, minutes),
            native("timestamp_to_minutes_with_tz", "timestamp.(string): int", cost::DEFAULT, minutes),
            native("duration_to_minutes", "duration.(): int", cost::DEFAULT, minutes),
        ],
    },
    Function {
        name: "getSeconds",
        overloads: &[
            native("timestamp_to_seconds", "timestamp.(): int", cost::DEFAULT, seconds),
            native("timestamp_to_seconds_tz", "timestamp.(string): int", cost::DEFAULT, seconds),
            native("duration_to_seconds", "duration.(): int", cost::DEFAULT, seconds),
        ],
    },
    Function {
        name: "getMilliseconds",
        overloads: &[
            native("timestamp_to_milliseconds", "timestamp.(): int", cost::DEFAULT, milliseconds),
            native("timestamp_to_milliseconds_with_tz", "timestamp.(string): int", cost::DEFAULT, milliseconds),
            native("duration_to_milliseconds", "duration.(): int", cost::DEFAULT, milliseconds),
        ],
    },
];

/// Returns a part of a timestamp, or a duration in units of `span` nanoseconds. `span` is `None` if there is no such
/// unit of durations.
fn part<'a>(arguments: &[Value<'a>], of: impl Fn(&Zoned) -> i64, span: Option<i64>) -> Outcome<Value<'a>> {
    let (time, zone) = match arguments {
        [Value::Timestamp(time)] => (*time, TimeZone::UTC),
        [Value::Timestamp(time), Value::String(zone)] => match zone.split_once(':') {
            Some((hours, minutes)) => (shifted(*time, zone, hours, minutes)?, TimeZone::UTC),
            None => (*time, zone_named(zone)?),
        },
        [Value::Duration(duration)] => {
            let unit = span.ok_or_else(Error::no_such_overload)?;
            return Ok(Value::Int(duration.nanos() / unit));
        }
        _ => return Err(Error::no_such_overload()),
    };
    Ok(Value::Int(of(&instant(time)?.to_zoned(zone))))
}

fn instant(time: Timestamp) -> Outcome<Instant> {
    let since = SignedDuration::new(time.seconds(), time.nanos() as i32);
    Instant::from_duration(since).map_err(|_| Error::new("timestamp overflow"))
}

/// Returns a zone by its name.
fn zone_named(name: &str) -> Outcome<TimeZone> {
    match name {
        "" | "UTC" => Ok(TimeZone::UTC),
        _ => find_zone(name).ok_or_else(|| Error::new(format!("unknown time zone {name}"))),
    }
}

/// Returns the local time at an offset from UTC, as in `-08:00`.
fn shifted(time: Timestamp, zone: &str, hours: &str, minutes: &str) -> Outcome<Timestamp> {
    let number = |text: &str| {
        flotilla_golang::strconv::parse_int(text)
            .map_err(|error| Error::new(error.to_string().replacen("ParseInt", "Atoi", 1)))
    };
    let (hours, minutes) = (number(hours)?.saturating_mul(60), number(minutes)?);
    let minutes = if zone.starts_with('-') { hours.saturating_sub(minutes) } else { hours.saturating_add(minutes) };
    Ok(Timestamp::new(time.seconds().saturating_add(minutes.saturating_mul(60)), i64::from(time.nanos())))
}

/// Finds a zone in the embedded database. Names are case-sensitive, as names of files are.
fn find_zone(name: &str) -> Option<TimeZone> {
    let zone = jiff::tz::db().get(name).ok()?;
    (zone.iana_name() == Some(name)).then_some(zone)
}

fn year<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    part(arguments, |time| i64::from(time.year()), None)
}

fn month<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    part(arguments, |time| i64::from(time.month()) - 1, None)
}

fn day_of_year<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    part(arguments, |time| i64::from(time.day_of_year()) - 1, None)
}

fn day_of_month<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    part(arguments, |time| i64::from(time.day()) - 1, None)
}

fn date<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    part(arguments, |time| i64::from(time.day()), None)
}

fn day_of_week<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    part(arguments, |time| i64::from(time.weekday().to_sunday_zero_offset()), None)
}

fn hours<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    part(arguments, |time| i64::from(time.hour()), Some(3_600_000_000_000))
}

fn minutes<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    part(arguments, |time| i64::from(time.minute()), Some(60_000_000_000))
}

fn seconds<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    part(arguments, |time| i64::from(time.second()), Some(1_000_000_000))
}

fn milliseconds<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    part(arguments, |time| i64::from(time.millisecond()), Some(1_000_000))
}
