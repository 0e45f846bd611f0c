//! Names of resources that can be requested or limited, and their amounts.

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value::{Map, Value};

use super::names;
use crate::field::{Errors, Path, quote};

const STANDARD: [&str; 20] = [
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
];
const COUNTED: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];
const REQUESTS: &str = "requests.";
const HUGE_PAGES: &str = "hugepages-";

/// Returns whether a name has no domain, or one of Kubernetes.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns whether a name stands for huge pages of some size.
pub fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Returns whether limits of a resource may exceed its requests, so that a node may be overcommitted.
pub fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// Returns whether a name is that of an extended resource: a device or the like, with a domain outside of Kubernetes.
pub fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with(REQUESTS) && names::qualified_name(&format!("{REQUESTS}{name}")).is_empty()
}

/// Returns whether amounts of a resource must be whole numbers.
pub fn is_counted(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

fn is_quota_huge_pages(name: &str) -> bool {
    is_huge_pages(name) || name.strip_prefix(REQUESTS).is_some_and(is_huge_pages)
}

fn is_standard(name: &str) -> bool {
    STANDARD.contains(&name) || is_quota_huge_pages(name)
}

/// Returns whether a name without a domain is one that quotas can limit.
pub fn is_standard_for_quota(name: &str) -> bool {
    name != "storage" && is_standard(name)
}

/// Checks the name of any resource.
pub fn check_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    let before = errors.0.len();
    names::check(path, name, names::qualified_name, errors);
    if errors.0.len() == before && !name.contains('/') && !is_standard(name) {
        errors.invalid_str(path, name, "must be a standard resource type or fully qualified");
    }
}

/// Checks the name of a resource of containers.
pub fn check_container_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    check_name(path, name, errors);
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_pages(name) {
            errors.invalid_str(path, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.invalid_str(path, name, "doesn't follow extended resource name standard");
    }
}

/// Checks the name of a resource of quotas.
pub fn check_quota_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    check_name(path, name, errors);
    if !name.contains('/') && !is_standard_for_quota(name) {
        errors.invalid_str(path, name, "must be a standard resource for quota");
    }
}

/// Returns the amount in a value; zero if it has none.
pub fn amount(value: &Value) -> Quantity {
    let text = match value {
        Value::Str(text) => text.as_str(),
        _ => "0",
    };
    Quantity::parse(text).unwrap_or(Quantity::from_int(0))
}

/// Checks that an amount is not negative.
pub fn check_not_negative(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    if amount(value).sign() < 0 {
        errors.invalid(path, value, "must be greater than or equal to 0");
    }
}

/// Checks that an amount is above zero.
pub fn check_positive(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    if amount(value).sign() <= 0 {
        errors.invalid(path, value, "must be greater than zero");
    }
}

/// Checks an amount of a resource.
pub fn check_amount(path: &Path<'_>, name: &str, value: &Value, errors: &mut Errors) {
    check_not_negative(path, value, errors);
    if is_counted(name) && amount(value).milli_value() % 1000 != 0 {
        errors.invalid(path, value, "must be an integer");
    }
}

/// Rounds the amounts of a list up to thousandths: the reference stores no finer ones.
pub fn round_up(list: Option<&mut Value>) {
    let Some(map) = list.and_then(Value::as_object_mut) else { return };
    for (_, value) in map.iter_mut() {
        // Texts without these characters cannot be finer than thousandths.
        let may_be_fine = |text: &str| text.contains(['n', 'u', 'e', 'E', '.']);
        if value.as_str().is_some_and(may_be_fine) {
            let mut rounded = amount(value);
            if rounded.round_to_milli() {
                *value = rounded.to_string().into();
            }
        }
    }
}

/// Returns whether two lists have equal amounts of the same resources.
pub fn same_amounts(a: Option<&Map>, b: Option<&Map>) -> bool {
    let empty = Map::new();
    let (a, b) = (a.unwrap_or(&empty), b.unwrap_or(&empty));
    a.len() == b.len()
        && a.iter()
            .all(|(name, value)| b.get(name).is_some_and(|other| value == other || amount(value) == amount(other)))
}

/// Formats an amount for messages.
pub fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| quote(""), str::to_owned)
}
