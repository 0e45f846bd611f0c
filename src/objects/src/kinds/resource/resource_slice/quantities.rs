//! Validation of the properties of devices: attributes, counters, and capacities with the policies for sharing them.

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value::Value;

use crate::field::{ErrorKind, Errors, Path};
use crate::kinds::resource::device;
use crate::rules::{names, resources, shown};

/// Most counters in a set.
const COUNTERS_MAX: usize = 32;
/// Most bytes in the text of an attribute.
const TEXT_BYTES_MAX: usize = 64;
/// Most values that a request may choose from.
const OPTIONS_MAX: usize = 10;

pub(super) fn validate_counters(set: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    match set.str_at(&[name]) {
        "" => errors.required(&path.child(name), ""),
        text => names::check(&path.child(name), text, names::dns1123_label, errors),
    }
    let path = path.child("counters");
    match set.map_at(&["counters"]) {
        Some(counters) if counters.len() > COUNTERS_MAX => errors.too_many(&path, counters.len(), COUNTERS_MAX),
        Some(counters) if !counters.is_empty() => {
            for name in counters.keys() {
                names::check(&path, name, names::dns1123_label, errors);
            }
        }
        _ => errors.required(&path, ""),
    }
}

pub(super) fn validate_attribute(attribute: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(text) = attribute.at(&["string"]).as_str()
        && text.len() > TEXT_BYTES_MAX
    {
        errors.too_long(&path.child("string"), TEXT_BYTES_MAX);
    }
    if let Some(version) = attribute.at(&["version"]).as_str() {
        let path = path.child("version");
        if !is_version(version) {
            errors.invalid_str(&path, version, "must be a string compatible with semver.org spec 2.0.0");
        }
        if version.len() > TEXT_BYTES_MAX {
            errors.too_long(&path, TEXT_BYTES_MAX);
        }
    }
    let kinds = ["bool", "int", "string", "version"];
    let why = "exactly one value must be specified";
    match kinds.iter().filter(|kind| !attribute.at(&[kind]).is_null()).count() {
        0 => errors.invalid_str(path, "", why),
        1 => {}
        _ => errors.push(ErrorKind::Invalid, path, shown::text("DeviceAttribute", attribute), why),
    }
}

/// Returns whether a text is a semantic version.
fn is_version(text: &str) -> bool {
    let number = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && (part == "0" || !part.starts_with('0'))
    };
    let word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
    let release = |part: &str| word(part) && (number(part) || part.bytes().any(|b| !b.is_ascii_digit()));
    core.split('.').count() == 3
        && core.split('.').all(number)
        && pre.is_none_or(|pre| pre.split('.').all(release))
        && build.is_none_or(|build| build.split('.').all(word))
}

/// Checks the policy that limits the amounts of a capacity that requests may ask for.
pub(super) fn validate_policy(capacity: &Value, policy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (values, range) = (policy.list_at(&["validValues"]), policy.at(&["validRange"]));
    let default = policy.at(&["default"]);
    let capacity = resources::amount(capacity);
    match (values.is_empty(), range.is_null()) {
        (false, false) => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the \
                same time";
            errors.forbidden(path, why);
        }
        (true, true) => {}
        (false, true) if default.is_null() => {
            errors.required(&path.child("default"), "required when validValues is defined");
        }
        (true, false) if default.is_null() => {
            errors.required(&path.child("default"), "required when validRange is defined");
        }
        (false, true) => validate_options(default, &capacity, values, &path.child("validValues"), errors),
        (true, false) => validate_range(default, &capacity, range, &path.child("validRange"), errors),
    }
}

fn validate_options(default: &Value, capacity: &Quantity, values: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, pair) in values.windows(2).enumerate() {
        if resources::amount(&pair[0]) > resources::amount(&pair[1]) {
            errors.invalid(&path.index(index + 1), &pair[1], "values must be sorted in ascending order");
        }
    }
    let whole = |value: &Value| resources::amount(value).value().to_string().into();
    let known = values.iter().any(|value| resources::amount(value) == resources::amount(default));
    device::each_once(values, OPTIONS_MAX, whole, path, errors, &mut |value, path, errors| {
        if resources::amount(value) > *capacity {
            errors.invalid(path, value, format!("option is larger than capacity value: {capacity}"));
        }
    });
    if !known || values.len() > OPTIONS_MAX {
        errors.invalid(path, default, "default value is not valid according to the requestPolicy");
    }
}

fn validate_range(default: &Value, capacity: &Quantity, range: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (min, max, step) = (range.at(&["min"]), range.at(&["max"]), range.at(&["step"]));
    let place = path.child("min");
    if min.is_null() {
        return errors.required(&place, "required when validRange is defined");
    }
    let (least, usual) = (resources::amount(min), resources::amount(default));
    if least > *capacity {
        errors.invalid(&place, min, format!("min is larger than capacity value: {capacity}"));
    }
    if usual < least {
        errors.invalid(&place, default, format!("default is less than min: {least}"));
    }
    if !max.is_null() {
        let (most, place) = (resources::amount(max), path.child("max"));
        if least > most {
            errors.invalid(&place, min, format!("min is larger than max: {most}"));
        }
        if most > *capacity {
            errors.invalid(&place, max, format!("max is larger than capacity value: {capacity}"));
        }
        if usual > most {
            errors.invalid(&place, default, format!("default is more than max: {most}"));
        }
    }
    if step.is_null() {
        return;
    }
    let (stride, place) = (resources::amount(step), path.child("step"));
    let added = least.plus(&stride);
    if added > *capacity {
        errors.invalid(&place, step, format!("one step {added} is larger than capacity value: {capacity}"));
    }
    for value in [default, max].into_iter().filter(|value| !value.is_null()) {
        let above = resources::amount(value).value().saturating_sub(least.value());
        if above.checked_rem(stride.value()).is_none_or(|rest| rest != 0) {
            let why = format!("value is not a multiple of a given step ({stride}) from ({least})");
            errors.invalid(&place, value, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn versions_are_semantic() {
        for good in ["1.2.3", "0.0.0-alpha.1+build.01", "1.0.0-0a", "1.0.0+x-y"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["one", "1.2", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+"] {
            assert!(!is_version(bad), "{bad}");
        }
    }

    #[test]
    fn ranges_include_their_default_and_whole_steps() {
        let range = value!({"min": "2", "max": "6", "step": "2"});
        let broken = |default: &str| {
            let mut errors = Errors::default();
            validate_range(&default.into(), &Quantity::from_int(8), &range, &Path::root("r"), &mut errors);
            errors.0.len()
        };
        assert_eq!([broken("4"), broken("5"), broken("7"), broken("0")], [0, 1, 2, 1]);
    }
}
