//! ResourceSlices.

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Map, Value};

use self::quantities::{validate_attribute, validate_counters, validate_policy};
use super::{device, v1beta1};
use crate::field::{Errors, Path, quote};
use crate::kinds::core::volume_source;
use crate::printing::{Printer, devices};
use crate::rules::{Generation, NameRule, Strategy, defaulting, metadata, names, node_selector};
use crate::rules::{semantic, shown};

mod quantities;

/// Most devices of a slice, and most of a slice whose devices have taints, counters or lists.
const DEVICES_MAX: usize = 128;
const RICH_DEVICES_MAX: usize = 64;
/// Most sets of counters of a slice.
const COUNTER_SETS_MAX: usize = 8;
/// Most sets of counters that a device draws on.
const CONSUMED_MAX: usize = 2;
/// Most attributes and capacities of a device together.
const PROPERTIES_MAX: usize = 32;
/// Most taints of a device.
const TAINTS_MAX: usize = 16;
/// Most bytes of a key that error paths show.
const KEY_BYTES_MAX: usize = 63 + 1 + 32;

const PLACES: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
const DEVICE_PLACES: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
    `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const NO_DEVICE_PLACES: &str = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is \
    set to true in the ResourceSlice spec";
const TRUE_ONLY: &str = "must be either unset or set to true";

/// Rules of ResourceSlices.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    returns_deleted: true,
    default_times,
    prepare_create: |object, _| drop_disabled(object),
    prepare_update: |object, _, _| drop_disabled(object),
    validate: |object, errors| validate(object, None, errors),
    validate_update: |object, old, errors| validate(object, Some(old), errors),
    unknown_field: Some(|version, field| {
        format!("field label not supported for resource.k8s.io/{version}, Kind=ResourceSlice: {field}")
    }),
    warnings: |object, old, warnings| {
        let driver = |object: &Value| object.str_at(&["spec", "driver"]).to_owned();
        let (name, was) = (driver(object), old.map(driver));
        if was.as_ref() != Some(&name) && name.contains(|c: char| c.is_uppercase()) {
            let why = "driver names should be lowercase";
            warnings.push(format!("spec.driver: {why}; {} contains uppercase characters", quote(&name)));
        }
    },
    selectable: &[
        ("spec.driver", |object| object.str_at(&["spec", "driver"]).to_owned()),
        ("spec.nodeName", |object| object.str_at(&["spec", "nodeName"]).to_owned()),
    ],
    conversions: v1beta1::SLICE,
    printer: Some(Printer::of(devices::slice)),
    ..Strategy::DEFAULT
};

fn devices(object: &mut Value) -> impl Iterator<Item = &mut Map> {
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    spec.into_iter().flat_map(|spec| defaulting::objects(spec, "devices"))
}

fn default_times(object: &mut Value, now: Timestamp) {
    for device in devices(object) {
        for taint in defaulting::objects(device, "taints") {
            defaulting::pointer(taint, "timeAdded", now.to_string());
        }
    }
}

/// Drops the fields of features that are off.
fn drop_disabled(object: &mut Value) {
    for device in devices(object) {
        device.remove("nodeAllocatableResourceMappings");
        let attributes = defaulting::object(device, "attributes");
        for (_, attribute) in attributes.into_iter().flat_map(Map::iter_mut) {
            for field in ["ints", "bools", "strings", "versions"] {
                attribute.remove_at(&[field]);
            }
        }
    }
}

fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    volume_source::validate_driver(spec.str_at(&["driver"]), &path.child("driver"), errors);
    let (pool, place) = (spec.at(&["pool"]), path.child("pool"));
    device::validate_pool(pool.str_at(&["name"]), &place.child("name"), errors);
    let number = |field: &str| pool.int_at(&[field]).unwrap_or(0);
    if number("resourceSliceCount") <= 0 {
        let count = number("resourceSliceCount").into();
        errors.invalid(&place.child("resourceSliceCount"), &count, "must be greater than zero");
    }
    if number("generation") < 0 {
        let generation = number("generation").into();
        errors.invalid(&place.child("generation"), &generation, "must be greater than or equal to zero");
    }
    if let Some(old) = old {
        let old = old.at(&["spec"]);
        metadata::immutable(&place.child("name"), pool.at(&["name"]), old.at(&["pool", "name"]), errors);
        for field in ["driver", "nodeName"] {
            metadata::immutable(&path.child(field), spec.at(&[field]), old.at(&[field]), errors);
        }
    }
    validate_places(spec, &path, errors);
    if !spec.at(&["sharedCounters"]).is_null() && !spec.at(&["devices"]).is_null() {
        errors.invalid_str(&path, "", "only one of `sharedCounters` or `devices` is allowed");
    }
    validate_devices(spec, old, &path.child("devices"), errors);
    let sets = spec.list_at(&["sharedCounters"]);
    let path = path.child("sharedCounters");
    device::each_once(sets, COUNTER_SETS_MAX, device::name_of, &path, errors, &mut |set, path, errors| {
        validate_counters(set, "name", path, errors);
    });
}

/// Checks the fields that say on which nodes the devices of a slice are available.
fn validate_places(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut places = validate_node(spec, "must be either unset or set to a non-empty string", path, errors);
    let selector = spec.at(&["nodeSelector"]);
    if !selector.is_null() {
        places.push("`nodeSelector`");
        let path = path.child("nodeSelector");
        node_selector::validate(selector, false, &path, errors);
        let terms = selector.at(&["nodeSelectorTerms"]);
        if terms.as_array().is_none_or(|terms| terms.len() != 1) {
            let text = shown::internal("NodeSelector", selector);
            let path = path.child("nodeSelectorTerms");
            errors.invalid(&path, text.at(&["NodeSelectorTerms"]), "must have exactly one node selector term");
        }
    }
    for (field, name) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")] {
        match spec.at(&[field]) {
            Value::Null => {}
            Value::Bool(true) => places.push(name),
            value => errors.invalid(&path.child(field), value, TRUE_ONLY),
        }
    }
    match places.len() {
        0 => errors.required(path, PLACES),
        1 => {}
        _ => {
            let why = format!("{PLACES}, but multiple fields are set");
            errors.invalid_str(path, &format!("{{{}}}", places.join(", ")), why);
        }
    }
}

fn validate_node(owner: &Value, empty: &'static str, path: &Path<'_>, errors: &mut Errors) -> Vec<&'static str> {
    match owner.at(&["nodeName"]).as_str() {
        None => Vec::new(),
        Some("") => {
            errors.invalid_str(&path.child("nodeName"), "", empty);
            Vec::new()
        }
        Some(name) => {
            names::check(&path.child("nodeName"), name, names::dns1123_subdomain, errors);
            vec!["`nodeName`"]
        }
    }
}

fn validate_devices(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let devices = spec.list_at(&["devices"]);
    let rich =
        |device: &Value| !device.list_at(&["taints"]).is_empty() || !device.list_at(&["consumesCounters"]).is_empty();
    let max = if devices.iter().any(rich) { RICH_DEVICES_MAX } else { DEVICES_MAX };
    let chosen = spec.is_true_at(&["perDeviceNodeSelection"]);
    device::each_once(devices, max, device::name_of, path, errors, &mut |device, path, errors| {
        let old = old.map_or(&[][..], |old| old.list_at(&["spec", "devices"]));
        let before = old.iter().find(|before| before.str_at(&["name"]) == device.str_at(&["name"]));
        validate_device(device, before, chosen, path, errors);
    });
}

fn validate_device(device: &Value, old: Option<&Value>, chosen: bool, path: &Path<'_>, errors: &mut Errors) {
    names::check(&path.child("name"), device.str_at(&["name"]), names::dns1123_label, errors);
    let size = |field: &str| device.map_at(&[field]).map_or(0, Map::len);
    let count = size("attributes") + size("capacity");
    if count > PROPERTIES_MAX {
        let why = format!("the total number of attributes and capacities must not exceed {PROPERTIES_MAX}");
        errors.invalid(path, &Value::Int(i64::try_from(count).unwrap_or(i64::MAX)), why);
    }
    validate_map(device, "attributes", path, errors, &mut validate_attribute);
    let shared = device.is_true_at(&["allowMultipleAllocations"]);
    validate_map(device, "capacity", path, errors, &mut |capacity, path, errors| {
        let (policy, path) = (capacity.at(&["requestPolicy"]), path.child("requestPolicy"));
        if !policy.is_null() && shared {
            validate_policy(capacity.at(&["value"]), policy, &path, errors);
        } else if !policy.is_null() {
            errors.forbidden(&path, "allowMultipleAllocations must be true");
        }
    });
    if old.is_none_or(|old| !semantic::equal_at(old, device, &["taints"])) {
        let taints = device.list_at(&["taints"]);
        device::each(taints, TAINTS_MAX, &path.child("taints"), errors, &mut device::validate_taint);
    }
    let consumed = device.list_at(&["consumesCounters"]);
    let set = |consumed: &Value| consumed.str_at(&["counterSet"]).into();
    let place = path.child("consumesCounters");
    device::each_once(consumed, CONSUMED_MAX, set, &place, errors, &mut |consumed, path, errors| {
        validate_counters(consumed, "counterSet", path, errors);
    });
    validate_device_places(device, chosen, path, errors);
    device::validate_binding(device, path, errors);
}

/// Checks the fields that say on which nodes a device is available; `chosen` says that the slice leaves this to each
/// device.
fn validate_device_places(device: &Value, chosen: bool, path: &Path<'_>, errors: &mut Errors) {
    let (selector, all) = (device.at(&["nodeSelector"]), device.at(&["allNodes"]));
    if !chosen {
        if !device.at(&["nodeName"]).is_null() || !selector.is_null() || !all.is_null() {
            errors.invalid(path, &Value::Null, NO_DEVICE_PLACES);
        }
        return;
    }
    let mut places = validate_node(device, "must not be empty", path, errors);
    if !selector.is_null() {
        places.push("`nodeSelector`");
        node_selector::validate(selector, false, &path.child("nodeSelector"), errors);
    }
    match all {
        Value::Null => {}
        Value::Bool(true) => places.push("`allNodes`"),
        all => errors.invalid(&path.child("allNodes"), all, TRUE_ONLY),
    }
    match places.len() {
        0 => errors.required(path, DEVICE_PLACES),
        1 => {}
        _ => errors.invalid_str(path, &format!("{{{}}}", places.join(", ")), DEVICE_PLACES),
    }
}

/// Checks a map whose keys are qualified names.
fn validate_map(owner: &Value, field: &str, path: &Path<'_>, errors: &mut Errors, item: device::ItemCheck<'_>) {
    let path = path.child(field);
    for (name, value) in owner.map_at(&[field]).into_iter().flat_map(Map::iter) {
        device::validate_qualified_name(name, &path, errors);
        let name = truncated(name);
        item(value, &path.key(&name), errors);
    }
}

/// Returns a key, shortened in the middle if it is longer than any valid one.
fn truncated(key: &str) -> String {
    if key.len() <= KEY_BYTES_MAX {
        return key.to_owned();
    }
    let remaining = KEY_BYTES_MAX - "...".len();
    let (start, end) = (&key.as_bytes()[..remaining.div_ceil(2)], &key.as_bytes()[key.len() - remaining / 2..]);
    format!("{}...{}", String::from_utf8_lossy(start), String::from_utf8_lossy(end))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn slices_state_one_place_and_valid_devices() {
        let slice = value!({"spec": {
            "driver": "d.example.com",
            "allNodes": true,
            "nodeName": "n",
            "pool": {"name": "p", "generation": 0, "resourceSliceCount": 1},
            "devices": [
                {"name": "d", "attributes": {"a": {"int": 1, "bool": true}}},
                {"name": "d", "nodeName": "n"},
                {"name": "e", "capacity": {"m": {"value": "1Gi", "requestPolicy": {}}}}
            ]
        }});
        let mut errors = Errors::default();
        validate(&slice, None, &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec",
                "spec.devices[0].attributes[a]",
                "spec.devices[1]",
                "spec.devices[2].capacity[m].requestPolicy",
                "spec.devices[1]"
            ]
        );
    }
}
