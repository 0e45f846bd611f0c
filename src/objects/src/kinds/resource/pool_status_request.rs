//! ResourcePoolStatusRequests (KEP-5677).

use flotilla_proto::value::Value;

use super::device::{self, POOL_BYTES_MAX};
use crate::field::{ErrorKind, Errors, Path};
use crate::fieldmanager::reset;
use crate::printing::{Printer, devices};
use crate::rules::{Generation, NameRule, Strategy, conditions, defaulting, metadata, names, shown};

/// Most pools that a request may ask for, and how many it asks for unless it says so.
const LIMIT_MAX: i64 = 1000;
const LIMIT: i64 = 100;
/// Most conditions of a request.
const CONDITIONS_MAX: usize = 10;
/// Most bytes of a pool's error.
const ERROR_BYTES_MAX: usize = 256;
/// Numbers of a pool that may be absent, with their least values. The reference checks them in this order.
const NUMBERS: [(&str, i64); 5] = [
    ("resourceSliceCount", 1),
    ("totalDevices", 0),
    ("allocatedDevices", 0),
    ("availableDevices", 0),
    ("unavailableDevices", 0),
];

/// Rules of ResourcePoolStatusRequests.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    status: true,
    unconditional_update: false,
    returns_deleted: true,
    default: |object| {
        let spec = object.as_object_mut().and_then(|map| defaulting::object_or_new(map, "spec"));
        if let Some(spec) = spec {
            defaulting::pointer(spec, "limit", LIMIT);
        }
    },
    prepare_create: |object, _| drop(object.remove_at(&["status"])),
    prepare_status: |object, old, _| metadata::reset_for_status(object, old),
    validate: |object, errors| validate(object.at(&["spec"]), errors),
    validate_update: |object, old, errors| {
        if object.at(&["spec"]) != old.at(&["spec"]) {
            errors.push(ErrorKind::Invalid, &Path::root("spec"), "null", metadata::IMMUTABLE);
        }
    },
    validate_status: |object, old, errors| validate_status(object.at(&["status"]), old.at(&["status"]), errors),
    resets: &[("status", reset::SPEC_AND_METADATA)],
    printer: Some(Printer::of(devices::pool_status_request)),
    ..Strategy::DEFAULT
};

fn validate(spec: &Value, errors: &mut Errors) {
    let path = Path::root("spec");
    validate_driver(spec, &path, errors);
    if let Some(pool) = spec.at(&["poolName"]).as_str() {
        validate_pool_name(pool, &path.child("poolName"), errors);
    }
    let (limit, path) = (spec.at(&["limit"]), path.child("limit"));
    match limit.as_int() {
        None => errors.required(&path, ""),
        Some(number) if number > LIMIT_MAX => {
            errors.invalid(&path, limit, format!("must be less than or equal to {LIMIT_MAX}"));
        }
        Some(_) => at_least(1, limit, &path, errors),
    }
}

fn validate_driver(owner: &Value, path: &Path<'_>, errors: &mut Errors) {
    match owner.str_at(&["driver"]) {
        "" => errors.required(&path.child("driver"), ""),
        driver => names::check(&path.child("driver"), driver, names::dns1123_subdomain_caseless, errors),
    }
}

/// Checks the name of a pool, with the numbers of its wrong parts.
fn validate_pool_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.len() > POOL_BYTES_MAX {
        errors.too_long(path, POOL_BYTES_MAX);
    }
    for (index, part) in name.split('/').enumerate() {
        if part.is_empty() {
            errors.invalid_str(path, name, format!("segment {index}: must not be empty"));
            continue;
        }
        for why in names::long_name(part) {
            errors.invalid_str(path, part, format!("segment {index}: {why}"));
        }
    }
}

fn at_least(least: i64, number: &Value, path: &Path<'_>, errors: &mut Errors) {
    if number.as_int().is_some_and(|number| number < least) {
        errors.invalid(path, number, format!("must be greater than or equal to {least}"));
    }
}

fn validate_status(status: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::root("status");
    let (all, of_all) = (status.list_at(&["conditions"]), path.child("conditions"));
    if status == old || status.is_null() {
        return;
    }
    if old.as_object().is_some() {
        let text = shown::text("ResourcePoolStatusRequestStatus", status);
        errors.push(ErrorKind::Invalid, &path, text, metadata::IMMUTABLE);
    } else {
        conditions::validate(all, &of_all, errors);
    }
    let count = status.at(&["poolCount"]);
    if count.is_null() {
        errors.required(&path.child("poolCount"), "");
    }
    at_least(0, count, &path.child("poolCount"), errors);
    let pools = status.list_at(&["pools"]);
    let limit = usize::try_from(LIMIT_MAX).unwrap_or(usize::MAX);
    device::each(pools, limit, &path.child("pools"), errors, &mut validate_pool);
    if all.len() > CONDITIONS_MAX {
        return errors.too_many(&of_all, all.len(), CONDITIONS_MAX);
    }
    // The reference finds conditions of the same type by two rules.
    for (index, condition) in all.iter().enumerate() {
        let kind = condition.at(&["type"]);
        if all[..index].iter().any(|before| before.at(&["type"]) == kind) {
            errors.duplicate(&of_all.index(index), condition);
        }
    }
}

fn validate_pool(pool: &Value, path: &Path<'_>, errors: &mut Errors) {
    validate_driver(pool, path, errors);
    match pool.str_at(&["poolName"]) {
        "" => errors.required(&path.child("poolName"), ""),
        name => validate_pool_name(name, &path.child("poolName"), errors),
    }
    match pool.int_at(&["generation"]) {
        None | Some(0) => errors.required(&path.child("generation"), ""),
        Some(_) => at_least(0, pool.at(&["generation"]), &path.child("generation"), errors),
    }
    for (field, least) in NUMBERS {
        at_least(least, pool.at(&[field]), &path.child(field), errors);
    }
    if let Some(node) = pool.at(&["nodeName"]).as_str() {
        names::check(&path.child("nodeName"), node, names::long_name, errors);
    }
    if pool.str_at(&["validationError"]).len() > ERROR_BYTES_MAX {
        errors.too_long(&path.child("validationError"), ERROR_BYTES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn fields(check: impl FnOnce(&mut Errors)) -> Vec<String> {
        let mut errors = Errors::default();
        check(&mut errors);
        errors.0.iter().map(|error| error.field.clone()).collect()
    }

    #[test]
    fn a_request_names_a_driver_and_a_limit() {
        let faults = |spec: Value| fields(|errors| validate(&spec, errors));
        assert_eq!(faults(value!({"driver": "D.example.com", "poolName": "a/b", "limit": 5})), [""; 0]);
        assert_eq!(faults(value!({"driver": "", "limit": 0})), ["spec.driver", "spec.limit"]);
        assert_eq!(
            faults(value!({"driver": "x", "poolName": "A/", "limit": 1001})),
            ["spec.poolName", "spec.poolName", "spec.limit"]
        );
    }

    #[test]
    fn a_status_is_checked_once_and_then_stays() {
        let pool = value!({"driver": "d", "poolName": "p", "generation": 1, "totalDevices": (-1)});
        let status = value!({"poolCount": 1, "pools": [pool]});
        assert_eq!(fields(|errors| validate_status(&status, &Value::Null, errors)), ["status.pools[0].totalDevices"]);
        assert_eq!(fields(|errors| validate_status(&status, &status, errors)), [""; 0]);
        assert_eq!(fields(|errors| validate_status(&value!({"poolCount": 2}), &status, errors)), ["status"]);
    }
}
