//! Validation of the cluster IPs of a service and of their address families.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::core::service;
use crate::rules::addresses;

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const SPEC: Path<'static> = Path::root("spec");

/// Checks cluster IPs, families and family policy; `old` is the stored service of an update.
pub fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    if service::kind(object) == "ExternalName" {
        return;
    }
    let path = SPEC.child("clusterIPs");
    let all = object.at(&["spec", "clusterIPs"]);
    let list = object.list_at(&["spec", "clusterIPs"]);
    let first = object.str_at(&["spec", "clusterIP"]);
    match (first.is_empty(), list.first()) {
        (false, None) => errors.required(&path, ""),
        (false, Some(head)) if head.as_str() != Some(first) => {
            errors.invalid(&path, all, "first value must match `clusterIP`");
        }
        (true, Some(_)) => errors.invalid(&path, all, "must be empty when `clusterIP` is not specified"),
        _ => {}
    }
    let families = object.list_at(&["spec", "ipFamilies"]);
    for (index, family) in families.iter().enumerate() {
        let (path, name) = (SPEC.child("ipFamilies"), family.as_str().unwrap_or(""));
        if !FAMILIES.contains(&name) {
            errors.not_supported(&path.index(index), name, &FAMILIES);
        }
        if families[..index].contains(family) {
            errors.duplicate(&path.index(index), family);
        }
    }
    if let Some(policy) = object.at(&["spec", "ipFamilyPolicy"]).as_str()
        && !POLICIES.contains(&policy)
    {
        errors.not_supported(&SPEC.child("ipFamilyPolicy"), policy, &POLICIES);
    }
    let before = old.map_or(&[][..], |old| old.list_at(&["spec", "clusterIPs"]));
    if validate_each(list, all, before, &path, errors) {
        validate_families(object, list, all, families, &path, errors);
    }
}

/// Checks each address. Returns whether all of them can be parsed.
fn validate_each(list: &[Value], all: &Value, before: &[Value], path: &Path<'_>, errors: &mut Errors) -> bool {
    let found = errors.0.len();
    for (index, address) in list.iter().enumerate() {
        let text = address.as_str().unwrap_or("");
        if index == 0 && text == "None" {
            if list.len() > 1 {
                errors.invalid(path, all, "'None' must be the first and only value");
            }
            continue;
        }
        addresses::check_legacy(&path.index(index), text, before, errors);
    }
    let readable = errors.0.len() == found;
    if list.len() > 2 {
        errors.invalid(path, all, "may only hold up to 2 values");
    }
    readable
}

fn validate_families(
    object: &Value,
    list: &[Value],
    all: &Value,
    families: &[Value],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let family = |address: &Value| address.as_str().and_then(addresses::family).unwrap_or("IPv4");
    if list.len() > 1 && FAMILIES.iter().any(|name| !list.iter().any(|address| family(address) == *name)) {
        errors.invalid(path, all, "may specify no more than one IP for each IP family");
    }
    if service::is_headless(object) {
        return;
    }
    for (index, (address, wanted)) in list.iter().zip(families).enumerate() {
        let wanted = wanted.as_str().unwrap_or("");
        if FAMILIES.contains(&wanted) && family(address) != wanted {
            let why = format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`");
            errors.invalid(&path.index(index), address, why);
        }
    }
}
