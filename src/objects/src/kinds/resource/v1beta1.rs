//! The version `v1beta1`: a request has the members of `exactly` itself, and a device has all but its name in `basic`.

use flotilla_proto::value::{Map, Value};

use crate::rules::{Conversion, defaulting};

const GROUP: &str = "resource.k8s.io";
const V1: (&str, &str) = (GROUP, "v1");
const V1BETA1: (&str, &str) = (GROUP, "v1beta1");
/// It has the fields of `v1`.
const V1BETA2: (&str, &str) = (GROUP, "v1beta2");

/// The members of a request that are those of `exactly` in later versions.
const EXACT: [&str; 7] =
    ["deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity"];

macro_rules! conversions {
    ($to_v1:expr, $to_v1beta1:expr) => {
        &[
            Conversion { from: V1BETA1, to: V1, change: $to_v1 },
            Conversion { from: V1BETA1, to: V1BETA2, change: $to_v1 },
            Conversion { from: V1, to: V1BETA1, change: $to_v1beta1 },
            Conversion { from: V1BETA2, to: V1BETA1, change: $to_v1beta1 },
        ]
    };
}

/// Conversions of ResourceClaims.
pub const CLAIM: &[Conversion] =
    conversions!(|claim| requests(claim.get_mut("spec"), nest), |claim| requests(claim.get_mut("spec"), unnest));

/// Conversions of ResourceClaimTemplates.
pub const TEMPLATE: &[Conversion] = conversions!(
    |template| requests(template.get_mut("spec").and_then(|spec| spec.get_mut("spec")), nest),
    |template| requests(template.get_mut("spec").and_then(|spec| spec.get_mut("spec")), unnest)
);

/// Conversions of ResourceSlices.
pub const SLICE: &[Conversion] = conversions!(
    |slice| {
        forget_zeros(slice);
        devices(slice, lift);
    },
    |slice| devices(slice, lower)
);

/// Removes members whose zero value means in this version that they are absent. Later versions refuse these values.
fn forget_zeros(slice: &mut Value) {
    for (field, zero) in [("nodeName", Value::from("")), ("allNodes", false.into())] {
        if *slice.at(&["spec", field]) == zero {
            slice.remove_at(&["spec", field]);
        }
    }
}

/// Changes the requests of a claim.
fn requests(spec: Option<&mut Value>, change: fn(&mut Map)) {
    let devices = spec.and_then(Value::as_object_mut).and_then(|spec| defaulting::object(spec, "devices"));
    devices.into_iter().flat_map(|devices| defaulting::objects(devices, "requests")).for_each(change);
}

/// Changes the devices of a slice.
fn devices(slice: &mut Value, change: fn(&mut Map)) {
    let spec = slice.get_mut("spec").and_then(Value::as_object_mut);
    spec.into_iter().flat_map(|spec| defaulting::objects(spec, "devices")).for_each(change);
}

/// Moves the members of one wish into `exactly`. A request without any has several wishes.
fn nest(request: &mut Map) {
    let mut exactly = Map::new();
    for field in EXACT {
        if let Some(value) = request.remove(field).filter(|value| !is_zero(value)) {
            exactly.insert(field, value);
        }
    }
    if !exactly.is_empty() {
        request.insert("exactly", Value::Object(exactly));
    }
}

fn is_zero(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Int(0)) || value.as_str() == Some("")
}

/// Moves the members of `exactly` into the request.
fn unnest(request: &mut Map) {
    if let Some(Value::Object(exactly)) = request.remove("exactly") {
        exactly.iter().for_each(|(field, value)| drop(request.insert(field, value.clone())));
    }
}

/// Moves the members of `basic` into the device.
fn lift(device: &mut Map) {
    if let Some(Value::Object(basic)) = device.remove("basic") {
        basic.iter().for_each(|(field, value)| drop(device.insert(field, value.clone())));
    }
}

/// Moves all members of a device but its name into `basic`, which every device has.
fn lower(device: &mut Map) {
    let mut basic = std::mem::take(device);
    if let Some(name) = basic.remove("name") {
        device.insert("name", name);
    }
    device.insert("basic", Value::Object(basic));
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn changed(conversions: &[Conversion], from: (&str, &str), to: (&str, &str), object: &Value) -> Value {
        let mut object = object.clone();
        let found = conversions.iter().find(|each| (each.from, each.to) == (from, to));
        (found.expect("there is a conversion").change)(&mut object);
        object
    }

    #[test]
    fn requests_are_nested_and_back() {
        let first = value!({"name": "a", "deviceClassName": "c", "count": 2, "adminAccess": false});
        let several = value!({"name": "b", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]});
        let old = value!({"spec": {"devices": {"requests": [(first), (several.clone())]}}});
        let exactly = value!({"deviceClassName": "c", "count": 2, "adminAccess": false});
        let new = value!({"spec": {"devices": {"requests": [{"name": "a", "exactly": (exactly)}, (several)]}}});
        assert_eq!(changed(CLAIM, V1BETA1, V1, &old), new);
        assert_eq!(changed(CLAIM, V1BETA2, V1BETA1, &new), old);
        let template = |claim: &Value| value!({"spec": (claim.clone())});
        assert_eq!(changed(TEMPLATE, V1BETA1, V1BETA2, &template(&old)), template(&new));
        assert_eq!(changed(TEMPLATE, V1, V1BETA1, &template(&new)), template(&old));
    }

    #[test]
    fn devices_are_lifted_and_back() {
        let old =
            value!({"spec": {"devices": [{"name": "a", "basic": {"allNodes": true}}, {"name": "b", "basic": {}}]}});
        let new = value!({"spec": {"devices": [{"name": "a", "allNodes": true}, {"name": "b"}]}});
        assert_eq!(changed(SLICE, V1BETA1, V1, &old), new);
        assert_eq!(changed(SLICE, V1, V1BETA1, &new), old);
        let zeros = value!({"spec": {"nodeName": "", "allNodes": false, "driver": ""}});
        assert_eq!(changed(SLICE, V1BETA1, V1, &zeros), value!({"spec": {"driver": ""}}));
    }
}
