//! Checks of numbers and percentages.

use flotilla_proto::value::Value;

use super::names;
use crate::field::{Errors, Path};

/// Checks that a number is not negative; an absent one counts as zero.
pub fn not_negative(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    if value.as_int().is_some_and(|number| number < 0) {
        errors.invalid(path, value, "must be greater than or equal to 0");
    }
}

/// Checks that several members of an object are not negative.
pub fn all_not_negative(path: &Path<'_>, object: &Value, keys: &[&str], errors: &mut Errors) {
    for key in keys {
        not_negative(&path.child(key), object.at(&[key]), errors);
    }
}

/// Checks that a number is above zero; an absent one counts as zero.
pub fn positive(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    let number = value.as_int().unwrap_or(0);
    if number <= 0 {
        errors.invalid(path, &number.into(), "must be greater than zero");
    }
}

/// Checks that members do not exceed others: `pairs` are the smaller key, the larger key and the message.
pub fn ordered(path: &Path<'_>, object: &Value, pairs: &[(&str, &str, &str)], errors: &mut Errors) {
    for (smaller, larger, why) in pairs {
        let number = object.int_at(&[smaller]).unwrap_or(0);
        if number > object.int_at(&[larger]).unwrap_or(0) {
            errors.invalid(&path.child(smaller), &number.into(), *why);
        }
    }
}

/// Checks that `status.collisionCount` does not shrink.
pub fn collision_count(object: &Value, old: &Value, errors: &mut Errors) {
    let count = |object: &Value| object.int_at(&["status", "collisionCount"]);
    let new = count(object).unwrap_or(0);
    if count(old).is_some_and(|old| new < old) {
        let status = Path::root("status");
        errors.invalid(&status.child("collisionCount"), &new.into(), "cannot be decremented");
    }
}

/// Checks that a number or percentage is valid and not negative; an absent one counts as zero.
pub fn int_or_percent(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    match value {
        Value::Str(text) => names::check(path, text, names::percent, errors),
        other => not_negative(path, other, errors),
    }
}

/// Returns the number in a percentage. Returns `None` if the value is no valid percentage.
fn percentage(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    let valid = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    valid.then(|| digits.parse().unwrap_or(i64::MAX))
}

/// Returns the number in a number or percentage. Parses other texts as numbers; returns zero if that fails.
pub fn amount(value: &Value) -> i64 {
    let plain = || value.as_str().and_then(|text| text.parse().ok());
    value.as_int().or_else(|| percentage(value)).or_else(plain).unwrap_or(0)
}

/// Checks that a percentage is at most 100%.
pub fn at_most_whole(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    if percentage(value).is_some_and(|percent| percent > 100) {
        errors.invalid(path, value, "must not be greater than 100%");
    }
}
