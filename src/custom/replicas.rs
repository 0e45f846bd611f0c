//! Checks the values that the Scale of a custom resource shows.

use flotilla_proto::value::Value;

use super::definition::ScalePaths;
use crate::field::{Errors, Path};
use crate::patch::go_text;

/// Checks that replicas are within the range that a Scale allows, and that the selector is a text. A write of the
/// status cannot change the desired replicas. They are not checked then.
pub(super) fn validate(paths: &ScalePaths, object: &Value, is_status: bool, errors: &mut Errors) {
    if !is_status {
        validate_replicas(&paths.replicas, object, errors);
    }
    validate_replicas(&paths.observed, object, errors);
    let Some(names) = &paths.selector else { return };
    if let Err(why) = find(names, object).and_then(|found| match found {
        None | Some(Value::Str(_)) => Ok(()),
        Some(other) => Err(mistyped(names, other, "string")),
    }) {
        errors.invalid_str(&Path::root(&path(names)), "", why);
    }
}

fn validate_replicas(names: &[String], object: &Value, errors: &mut Errors) {
    let replicas = find(names, object).and_then(|found| match found {
        None => Ok(0),
        Some(Value::Int(replicas)) => Ok(*replicas),
        Some(other) => Err(mistyped(names, other, "int64")),
    });
    let (shown, why) = match replicas {
        Ok(replicas @ ..0) => (replicas, "should be a non-negative integer".to_owned()),
        Ok(replicas) if replicas > i64::from(i32::MAX) => {
            (replicas, format!("should be less than or equal to {}", i32::MAX))
        }
        Ok(_) => return,
        Err(why) => (0, why),
    };
    errors.invalid(&Path::root(&path(names)), &shown.into(), why);
}

/// Returns the value at a path. Returns `None` if a member on the way is absent or null, or if the last one is absent.
/// `Err` is the message about a member on the way that is not an object.
fn find<'v>(names: &[String], object: &'v Value) -> Result<Option<&'v Value>, String> {
    let mut found = object;
    for (n, name) in names.iter().enumerate() {
        let map = match found {
            Value::Null => return Ok(None),
            Value::Object(map) => map,
            other => return Err(mistyped(&names[..=n], other, "map[string]interface{}")),
        };
        let Some(member) = map.get(name) else { return Ok(None) };
        found = member;
    }
    Ok(Some(found))
}

fn mistyped(names: &[String], value: &Value, expected: &str) -> String {
    let of = if value.is_null() { "<nil>" } else { go_text::type_of(value) };
    format!("{} accessor error: {} is of the type {of}, expected {expected}", path(names), go_text::value(value))
}

fn path(names: &[String]) -> String {
    format!(".{}", names.join("."))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn complaints(object: &Value, is_status: bool) -> Vec<String> {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let paths = ScalePaths {
            replicas: names(["spec", "replicas"]),
            observed: names(["status", "replicas"]),
            selector: Some(names(["status", "selector"])),
        };
        let mut errors = Errors::default();
        validate(&paths, object, is_status, &mut errors);
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_that_a_scale_cannot_show_are_refused() {
        let told = |object: Value, expected: &[&str]| assert_eq!(complaints(&object, false), expected, "{object:?}");
        let fine = [
            value!({}),
            value!({"spec": null, "status": {}}),
            value!({"spec": {"replicas": (2_147_483_647_i64)}, "status": {"replicas": 0, "selector": "!"}}),
        ];
        fine.into_iter().for_each(|object| told(object, &[]));
        let of = |why: &str| format!(".spec.replicas: Invalid value: {why}");
        let of_type = |what: &str| of(&format!("0: .spec.replicas accessor error: {what}"));
        told(value!({"spec": {"replicas": (-1)}}), &[&of("-1: should be a non-negative integer")]);
        let many = of("2147483648: should be less than or equal to 2147483647");
        told(value!({"spec": {"replicas": (2_147_483_648_i64)}}), &[&many]);
        told(value!({"spec": {"replicas": true}}), &[&of_type("true is of the type bool, expected int64")]);
        told(value!({"spec": {"replicas": null}}), &[&of_type("<nil> is of the type <nil>, expected int64")]);
        told(value!({"spec": {"replicas": []}}), &[&of_type("[] is of the type []interface {}, expected int64")]);
        told(value!({"spec": "x"}), &[&of_type("x is of the type string, expected map[string]interface{}")]);
    }

    #[test]
    fn a_write_of_the_status_does_not_check_the_spec() {
        let object = value!({"spec": {"replicas": (-1)}, "status": {"replicas": (-2), "selector": 1}});
        let status = [
            ".status.replicas: Invalid value: -2: should be a non-negative integer",
            ".status.selector: Invalid value: \"\": .status.selector accessor error: 1 is of the type int64, expected string",
        ];
        assert_eq!(complaints(&object, true), status);
        assert_eq!(complaints(&object, false).len(), 3);
    }
}
