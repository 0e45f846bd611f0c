//! Schedules in the syntax of crontab(5), with the error messages of robfig/cron, and time zones.

use flotilla_proto::duration;

use crate::field::{Errors, Path};

/// Names of time zones (IANA), sorted, one a line.
const ZONES: &str = include_str!("zones.txt");
/// Most characters in a part of a time zone's name.
const ZONE_PART_BYTES_MAX: usize = 14;
const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The range of a field, and the names that its numbers have.
struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[] },
    Bounds { min: 0, max: 23, names: &[] },
    Bounds { min: 1, max: 31, names: &[] },
    Bounds { min: 1, max: 12, names: MONTHS },
    Bounds { min: 0, max: 6, names: DAYS },
];

/// Checks a schedule. `zone_allowed` tolerates a time zone inside the schedule, because the stored schedule has one.
pub fn validate(schedule: &str, zone_allowed: bool, has_zone: bool, path: &Path<'_>, errors: &mut Errors) {
    if let Err(why) = parse(schedule) {
        errors.invalid_str(path, schedule, why);
    }
    if !schedule.contains("TZ") {
        return;
    }
    if !zone_allowed {
        errors.invalid_str(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    } else if has_zone {
        errors.invalid_str(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
    }
}

fn is_zone(name: &str) -> bool {
    matches!(name, "" | "UTC" | "Local") || ZONES.lines().any(|zone| zone == name)
}

/// Checks the name of a time zone.
pub fn validate_zone(zone: &str, path: &Path<'_>, errors: &mut Errors) {
    if zone.is_empty() {
        return errors.invalid_str(path, zone, "timeZone must be nil or non-empty string");
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+');
    let is_part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= ZONE_PART_BYTES_MAX
            && part.bytes().all(allowed)
    };
    let unknown = || format!("unknown time zone {zone}");
    if !zone.split('/').all(is_part) {
        return errors.invalid_str(path, zone, unknown());
    }
    if zone.eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.invalid_str(path, zone, why);
    }
    if !is_zone(zone) {
        errors.invalid_str(path, zone, unknown());
    }
}

fn parse(spec: &str) -> Result<(), String> {
    let mut spec = spec;
    if let Some(rest) = spec.strip_prefix("TZ=").or_else(|| spec.strip_prefix("CRON_TZ=")) {
        let Some((zone, rest)) = rest.split_once(' ') else {
            return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]".into());
        };
        if !is_zone(zone) {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        spec = rest.trim();
    }
    if spec.starts_with('@') {
        return descriptor(spec);
    }
    let fields: Vec<&str> = spec.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let shown = fields.join(" ");
        return Err(format!("expected exactly 5 fields, found {}: [{shown}]", fields.len()));
    }
    for (field, bounds) in fields.into_iter().zip(&FIELDS) {
        for expression in field.split(',').filter(|expression| !expression.is_empty()) {
            range(expression, bounds)?;
        }
    }
    Ok(())
}

fn descriptor(spec: &str) -> Result<(), String> {
    if matches!(spec, "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly") {
        return Ok(());
    }
    match spec.strip_prefix("@every ") {
        Some(text) if duration::parse(text).is_some() => Ok(()),
        Some(text) => {
            let quoted = crate::field::quote(text);
            Err(format!("failed to parse duration {spec}: time: invalid duration {quoted}"))
        }
        None => Err(format!("unrecognized descriptor: {spec}")),
    }
}

fn range(expression: &str, bounds: &Bounds) -> Result<(), String> {
    let mut parts = expression.split('/');
    let ends: Vec<&str> = parts.next().unwrap_or("").split('-').collect();
    let (start, mut end) = match ends[..] {
        ["*" | "?", ..] => (bounds.min, bounds.max),
        [single] => {
            let number = number_or_name(single, bounds)?;
            (number, number)
        }
        [low, high] => (number_or_name(low, bounds)?, number_or_name(high, bounds)?),
        [low, ..] => {
            number_or_name(low, bounds)?;
            return Err(format!("too many hyphens: {expression}"));
        }
        [] => return Ok(()),
    };
    let mut step = 1;
    if let Some(text) = parts.next() {
        if parts.next().is_some() {
            return Err(format!("too many slashes: {expression}"));
        }
        step = number(text)?;
        if ends.len() == 1 {
            end = bounds.max;
        }
    }
    let (min, max) = (bounds.min, bounds.max);
    if start < min {
        return Err(format!("beginning of range ({start}) below minimum ({min}): {expression}"));
    }
    if end > max {
        return Err(format!("end of range ({end}) above maximum ({max}): {expression}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {expression}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {expression}"));
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match bounds.names.iter().position(|name| *name == lower) {
        Some(at) => Ok(at as u64 + bounds.min),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let quoted = crate::field::quote(text);
    let failed = |why: &str| Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: {why}"));
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return failed("invalid syntax");
    }
    match text.parse::<i64>() {
        Err(_) => failed("value out of range"),
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(number.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_cron_reads_them() {
        for spec in ["* * * * ?", "*/5 0-6/2 1,15 jan-MAR sun", "@daily", "@every 1h30m", "TZ=UTC 0 0 * * *"] {
            assert_eq!(parse(spec), Ok(()), "{spec}");
        }
        for (spec, why) in [
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            assert_eq!(parse(spec), Err(why.into()), "{spec}");
        }
        assert!(is_zone("Europe/Berlin") && !is_zone("Mars/Phobos"));
    }
}
