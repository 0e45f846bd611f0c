//! ResourceClaims and ResourceClaimTemplates.

use std::collections::{HashMap, HashSet};

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::{admin_access, device, v1beta1};
use crate::field::{ErrorKind, Errors, Path};
use crate::fieldmanager::reset;
use crate::kinds::core::volume_source;
use crate::printing::{Printer, config, devices};
use crate::rules::{
    Generation, NameRule, Strategy, UpdateBasis, addresses, conditions, defaulting, labels, metadata, names,
    node_selector,
};
use crate::rules::{semantic, shown};

/// Most requests of a claim, and most results of an allocation.
const REQUESTS_MAX: usize = 32;
/// Most alternatives of a request.
const ALTERNATIVES_MAX: usize = 8;
/// Most constraints, and most configurations, of a claim.
const CONSTRAINTS_MAX: usize = 32;
/// Most users of a claim.
const USERS_MAX: usize = 256;
/// Most conditions of an allocated device.
const CONDITIONS_MAX: usize = 8;
/// Most addresses of a network device, and most bytes in its other properties.
const NETWORK_ADDRESSES_MAX: usize = 16;
const INTERFACE_BYTES_MAX: usize = 256;
const HARDWARE_ADDRESS_BYTES_MAX: usize = 128;

const ONE_OF: &str = "exactly one of `exactly` or `firstAvailable` is required";
const NOT_A_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
const ATTRIBUTE_REQUIRED: &str =
    "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
const NO_ALLOCATION: &str = "may not be specified when `allocated` is not set";
const GOING: &str = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";

/// Rules of ResourceClaims.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    status: true,
    // The namespace must allow access as an administrator.
    update_basis: UpdateBasis::TablesFor(|subresource, claim, old| {
        subresource == "status" && admin_access::granted(claim, old).is_some()
    }),
    returns_deleted: true,
    default: |object| default(object.get_mut("spec").and_then(Value::as_object_mut)),
    prepare_create: |object, _| object.set_at(&["status"], Value::object()),
    prepare_status: |object, old, _| prepare_status(object, old),
    validate: |object, errors| {
        validate_devices(object.at(&["spec", "devices"]), &Path::root("spec.devices"), errors);
    },
    validate_update: |object, old, errors| {
        metadata::validate_again(NameRule::Subdomain, true, object, errors);
        immutable("ResourceClaimSpec", &["spec"], object, old, &Path::root("spec"), errors);
    },
    validate_status,
    resets: &[("status", reset::SPEC_AND_METADATA)],
    conversions: v1beta1::CLAIM,
    printer: Some(Printer::of(devices::claim)),
    ..Strategy::DEFAULT
};

/// Rules of ResourceClaimTemplates.
pub static TEMPLATE: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    returns_deleted: true,
    default: |object| {
        let spec = object.get_mut("spec").and_then(Value::as_object_mut);
        default(spec.and_then(|spec| defaulting::object(spec, "spec")));
    },
    validate: |object, errors| {
        let path = Path::root("spec.metadata");
        let metadata = object.at(&["spec", "metadata"]);
        labels::validate_annotations(metadata.at(&["annotations"]), &path.child("annotations"), errors);
        labels::validate_labels(metadata.at(&["labels"]), &path.child("labels"), errors);
        for (key, _) in metadata.as_object().into_iter().flat_map(Map::iter) {
            if !matches!(key, "labels" | "annotations") {
                let shown = if key == "uid" { "uID" } else { key };
                errors.forbidden(&path.child(shown), "cannot be set");
            }
        }
        validate_devices(object.at(&["spec", "spec", "devices"]), &Path::root("spec.spec.devices"), errors);
    },
    validate_update: |object, old, errors| {
        metadata::validate_again(NameRule::Subdomain, true, object, errors);
        (TEMPLATE.validate)(object, errors);
        immutable("ResourceClaimTemplateSpec", &["spec"], object, old, &Path::root("spec"), errors);
    },
    conversions: v1beta1::TEMPLATE,
    printer: Some(Printer::of(config::name_and_age)),
    ..Strategy::DEFAULT
};

fn immutable(structure: &str, field: &[&str], object: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !semantic::equal_at(object, old, field) {
        let text = shown::text(structure, object.at(field));
        errors.push(ErrorKind::Invalid, path, text, metadata::IMMUTABLE);
    }
}

fn default(parent: Option<&mut Map>) {
    let devices = parent.and_then(|parent| defaulting::object(parent, "devices"));
    for request in devices.into_iter().flat_map(|devices| defaulting::objects(devices, "requests")) {
        defaulting::object(request, "exactly").map(default_request);
        defaulting::objects(request, "firstAvailable").for_each(default_request);
    }
}

fn default_request(request: &mut Map) {
    for toleration in defaulting::objects(request, "tolerations") {
        defaulting::plain(toleration, "operator", "Equal");
    }
    defaulting::plain(request, "allocationMode", "ExactCount");
    if request.get("allocationMode").and_then(Value::as_str) == Some("ExactCount") {
        defaulting::plain(request, "count", 1);
    }
}

/// The names of a claim's requests, each with the names of its alternatives.
type RequestNames<'a> = HashMap<&'a str, HashSet<&'a str>>;

fn request_names(devices: &Value) -> RequestNames<'_> {
    devices
        .list_at(&["requests"])
        .iter()
        .map(|request| {
            let alternatives = request.list_at(&["firstAvailable"]);
            (request.str_at(&["name"]), alternatives.iter().map(|request| request.str_at(&["name"])).collect())
        })
        .collect()
}

fn is_request(name: &str, requests: &RequestNames<'_>) -> bool {
    match name.split_once('/') {
        None => requests.contains_key(name),
        Some((request, alternative)) => {
            requests.get(request).is_some_and(|alternatives| alternatives.contains(alternative))
        }
    }
}

fn validate_request_name(name: &str, requests: &RequestNames<'_>, path: &Path<'_>, errors: &mut Errors) {
    if name.split('/').count() <= 2 {
        for part in name.split('/') {
            names::check(path, part, names::dns1123_label, errors);
        }
        if is_request(name, requests) {
            return;
        }
    }
    errors.invalid_str(path, name, NOT_A_REQUEST);
}

fn validate_request_names(owner: &Value, requests: &RequestNames<'_>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("requests");
    device::each_once(
        owner.list_at(&["requests"]),
        REQUESTS_MAX,
        Value::clone,
        &path,
        errors,
        &mut |name, path, errors| {
            validate_request_name(name.as_str().unwrap_or(""), requests, path, errors);
        },
    );
}

fn validate_devices(devices: &Value, path: &Path<'_>, errors: &mut Errors) {
    let requests = request_names(devices);
    device::each_once(
        devices.list_at(&["requests"]),
        REQUESTS_MAX,
        device::name_of,
        &path.child("requests"),
        errors,
        &mut validate_request,
    );
    let constraints = devices.list_at(&["constraints"]);
    device::each(constraints, CONSTRAINTS_MAX, &path.child("constraints"), errors, &mut |constraint, path, errors| {
        validate_request_names(constraint, &requests, path, errors);
        let attribute = ["matchAttribute", "distinctAttribute"].into_iter().find_map(|field| {
            let name = constraint.at(&[field]).as_str()?;
            Some((field, name))
        });
        match attribute {
            Some((field, name)) => device::validate_full_name(name, &path.child(field), errors),
            None => errors.required(path, ATTRIBUTE_REQUIRED),
        }
    });
    let config = devices.list_at(&["config"]);
    device::each(config, CONSTRAINTS_MAX, &path.child("config"), errors, &mut |config, path, errors| {
        validate_request_names(config, &requests, path, errors);
        device::validate_configuration(config, false, path, errors);
    });
}

fn validate_request(request: &Value, path: &Path<'_>, errors: &mut Errors) {
    names::check(&path.child("name"), request.str_at(&["name"]), names::dns1123_label, errors);
    let (exactly, alternatives) = (request.at(&["exactly"]), request.list_at(&["firstAvailable"]));
    match (!exactly.is_null(), !alternatives.is_empty()) {
        (false, false) => errors.required(path, ONE_OF),
        (true, true) => errors.invalid(path, &Value::Null, format!("{ONE_OF}, but multiple fields are set")),
        (true, false) => validate_exactly(exactly, &path.child("exactly"), errors),
        (false, true) => {
            let path = path.child("firstAvailable");
            let validate = &mut |request: &Value, path: &Path<'_>, errors: &mut Errors| {
                names::check(&path.child("name"), request.str_at(&["name"]), names::dns1123_label, errors);
                validate_exactly(request, path, errors);
            };
            device::each_once(alternatives, ALTERNATIVES_MAX, device::name_of, &path, errors, validate);
        }
    }
}

fn validate_exactly(request: &Value, path: &Path<'_>, errors: &mut Errors) {
    match request.str_at(&["deviceClassName"]) {
        "" => errors.required(&path.child("deviceClassName"), ""),
        class => names::check(&path.child("deviceClassName"), class, names::dns1123_subdomain, errors),
    }
    device::validate_selectors(request.list_at(&["selectors"]), false, &path.child("selectors"), errors);
    let count = request.int_at(&["count"]).unwrap_or(0);
    match request.str_at(&["allocationMode"]) {
        "All" if count != 0 => {
            let why = "must not be specified when allocationMode is 'All'";
            errors.invalid(&path.child("count"), &count.into(), why);
        }
        "ExactCount" if count <= 0 => errors.invalid(&path.child("count"), &count.into(), "must be greater than zero"),
        "All" | "ExactCount" => {}
        mode => errors.not_supported(&path.child("allocationMode"), mode, &["All", "ExactCount"]),
    }
    let tolerations = path.child("tolerations");
    for (index, toleration) in request.list_at(&["tolerations"]).iter().enumerate() {
        device::validate_toleration(toleration, &tolerations.index(index), errors);
    }
}

/// Returns the identity of an allocated device, or of a share of one.
fn identity(device: &Value) -> Value {
    let field = |name: &str| device.str_at(&[name]);
    value!({
        "Driver": (field("driver")),
        "Pool": (field("pool")),
        "Device": (field("device")),
        "ShareID": (field("shareID"))
    })
}

fn allocated(object: &Value) -> Vec<Value> {
    object.list_at(&["status", "allocation", "devices", "results"]).iter().map(identity).collect()
}

/// Drops the status of devices that are no longer allocated.
fn prepare_status(object: &mut Value, old: &Value) {
    metadata::reset_for_status(object, old);
    let (before, after) = (allocated(old), allocated(object));
    let Some(Value::Array(devices)) = object.get_mut("status").and_then(|status| status.get_mut("devices")) else {
        return;
    };
    devices.retain(|device| {
        let identity = identity(device);
        after.contains(&identity) || !before.contains(&identity)
    });
    if devices.is_empty() {
        object.remove_at(&["status", "devices"]);
    }
}

fn validate_status(object: &Value, old: &Value, errors: &mut Errors) {
    let (path, status) = (Path::root("status"), object.at(&["status"]));
    let users = status.list_at(&["reservedFor"]);
    let uid = |user: &Value| user.str_at(&["uid"]).into();
    device::each_once(users, USERS_MAX, uid, &path.child("reservedFor"), errors, &mut |user, path, errors| {
        for field in ["resource", "name", "uid"] {
            if user.str_at(&[field]).is_empty() {
                errors.required(&path.child(field), "");
            }
        }
    });
    let known = allocated(object);
    let devices = status.list_at(&["devices"]);
    device::each_once(devices, usize::MAX, identity, &path.child("devices"), errors, &mut |device, path, errors| {
        validate_device(device, &known, path, errors);
    });
    let allocation = status.at(&["allocation"]);
    if !users.is_empty() {
        let before = old.list_at(&["status", "reservedFor"]);
        let going = !object.at(&["metadata", "deletionTimestamp"]).is_null();
        if allocation.is_null() {
            errors.forbidden(&path.child("reservedFor"), NO_ALLOCATION);
        } else if going && users.iter().any(|user| !before.contains(user)) {
            errors.forbidden(&path.child("reservedFor"), GOING);
        }
    }
    let path = path.child("allocation");
    if !allocation.is_null() && !old.at(&["status", "allocation"]).is_null() {
        immutable("AllocationResult", &["status", "allocation"], object, old, &path, errors);
    } else if !allocation.is_null() {
        validate_allocation(allocation, &request_names(object.at(&["spec", "devices"])), &path, errors);
    }
}

fn validate_allocation(allocation: &Value, requests: &RequestNames<'_>, path: &Path<'_>, errors: &mut Errors) {
    let (devices, place) = (allocation.at(&["devices"]), path.child("devices"));
    let results = devices.list_at(&["results"]);
    device::each(results, REQUESTS_MAX, &place.child("results"), errors, &mut |result, path, errors| {
        validate_request_name(result.str_at(&["request"]), requests, &path.child("request"), errors);
        validate_names(result, path, errors);
        device::validate_binding(result, path, errors);
        if let Some(share) = result.at(&["shareID"]).as_str() {
            device::validate_uid(share, &path.child("shareID"), errors);
        }
    });
    let config = devices.list_at(&["config"]);
    device::each(config, 2 * CONSTRAINTS_MAX, &place.child("config"), errors, &mut |config, path, errors| {
        let source = config.str_at(&["source"]);
        names::check_choice(&path.child("source"), source, &["FromClaim", "FromClass"], errors);
        validate_request_names(config, requests, path, errors);
        device::validate_configuration(config, false, path, errors);
    });
    let selector = allocation.at(&["nodeSelector"]);
    if !selector.is_null() {
        node_selector::validate(selector, false, &path.child("nodeSelector"), errors);
    }
}

/// Checks the names of a device, its pool and its driver.
fn validate_names(device: &Value, path: &Path<'_>, errors: &mut Errors) {
    volume_source::validate_driver(device.str_at(&["driver"]), &path.child("driver"), errors);
    device::validate_pool(device.str_at(&["pool"]), &path.child("pool"), errors);
    names::check(&path.child("device"), device.str_at(&["device"]), names::dns1123_label, errors);
}

fn validate_device(device: &Value, known: &[Value], path: &Path<'_>, errors: &mut Errors) {
    validate_names(device, path, errors);
    if let Some(share) = device.at(&["shareID"]).as_str() {
        device::validate_uid(share, &path.child("shareID"), errors);
    }
    let identity = identity(device);
    if !known.contains(&identity) {
        errors.invalid(path, &identity, "must be an allocated device in the claim");
    }
    let (conditions, place) = (device.list_at(&["conditions"]), path.child("conditions"));
    if conditions.len() > CONDITIONS_MAX {
        errors.too_many(&place, conditions.len(), CONDITIONS_MAX);
    }
    conditions::validate(conditions, &place, errors);
    let data = device.at(&["data"]);
    if !data.is_null() {
        device::validate_parameters(data, false, &path.child("data"), errors);
    }
    let (network, path) = (device.at(&["networkData"]), path.child("networkData"));
    for (field, max) in [("interfaceName", INTERFACE_BYTES_MAX), ("hardwareAddress", HARDWARE_ADDRESS_BYTES_MAX)] {
        if network.str_at(&[field]).len() > max {
            errors.too_long(&path.child(field), max);
        }
    }
    let addresses = network.list_at(&["ips"]);
    device::each_once(
        addresses,
        NETWORK_ADDRESSES_MAX,
        Value::clone,
        &path.child("ips"),
        errors,
        &mut |text, path, errors| addresses::check_interface(path, text.as_str().unwrap_or(""), errors),
    );
}

#[cfg(test)]
#[path = "resource_claim_tests.rs"]
mod tests;
