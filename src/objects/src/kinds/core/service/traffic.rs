//! Traffic of Services: its sources, the endpoints that get it, and its treatment by load balancers.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::core::service::{self, ONLY_BALANCER, SPEC, is_reachable, needs_health_port};
use crate::rules::{addresses, names};

/// The default time for which a client keeps its endpoint.
pub(super) const AFFINITY_SECONDS: i64 = 10_800;
const AFFINITY_SECONDS_MAX: i64 = 86_400;
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

pub(super) fn set_defaults(object: &mut Value) {
    if is_reachable(object) && object.str_at(&["spec", "externalTrafficPolicy"]).is_empty() {
        object.set_at(&["spec", "externalTrafficPolicy"], "Cluster");
    }
    let unset = |object: &Value, field: &str| object.at(&["spec", field]).is_null();
    if matches!(service::kind(object), "NodePort" | "LoadBalancer" | "ClusterIP")
        && unset(object, "internalTrafficPolicy")
    {
        object.set_at(&["spec", "internalTrafficPolicy"], "Cluster");
    }
    if service::kind(object) != "LoadBalancer" {
        return;
    }
    if unset(object, "allocateLoadBalancerNodePorts") {
        object.set_at(&["spec", "allocateLoadBalancerNodePorts"], true);
    }
    let balancer = object.get_mut("status").and_then(|status| status.get_mut("loadBalancer"));
    let ingress = balancer.and_then(|balancer| balancer.get_mut("ingress")).and_then(Value::as_array_mut);
    for point in ingress.into_iter().flatten() {
        if !point.str_at(&["ip"]).is_empty() && point.at(&["ipMode"]).is_null() {
            point.set_at(&["ipMode"], "VIP");
        }
    }
}

/// Checks the fields that say where traffic comes from and goes; `old` is the stored service of an update.
pub(super) fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    validate_source_ranges(object, old, errors);
    let allocate = object.at(&["spec", "allocateLoadBalancerNodePorts"]);
    if !allocate.is_null() && service::kind(object) != "LoadBalancer" {
        errors.forbidden(&SPEC.child("allocateLoadBalancerNodePorts"), ONLY_BALANCER);
    }
    if allocate.is_null() && service::kind(object) == "LoadBalancer" {
        errors.required(&Path::root("allocateLoadBalancerNodePorts"), "");
    }
    validate_class(object, errors);
    validate_policies(object, errors);
}

/// Checks session affinity.
pub(super) fn validate_affinity(object: &Value, errors: &mut Errors) {
    let affinity = object.str_at(&["spec", "sessionAffinity"]);
    names::check_choice(&SPEC.child("sessionAffinity"), affinity, &["ClientIP", "None"], errors);
    let path = SPEC.child("sessionAffinityConfig");
    let config = object.at(&["spec", "sessionAffinityConfig"]);
    if affinity == "None" && !config.is_null() {
        errors.forbidden(&path, "must not be set when session affinity is None");
    }
    if affinity == "ClientIP" {
        match config.int_at(&["clientIP", "timeoutSeconds"]) {
            None => errors.required(&path, "when session affinity type is ClientIP"),
            Some(1..=AFFINITY_SECONDS_MAX) => {}
            Some(seconds) => {
                let why = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
                errors.invalid(&path.child("clientIP").child("timeoutSeconds"), &seconds.into(), why);
            }
        }
    }
}

/// Checks the external addresses; `old` is the stored service of an update.
pub(super) fn validate_external(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = SPEC.child("externalIPs");
    let before = old.map_or(&[][..], |old| old.list_at(&["spec", "externalIPs"]));
    for (index, address) in object.list_at(&["spec", "externalIPs"]).iter().enumerate() {
        let (path, text) = (path.index(index), address.as_str().unwrap_or(""));
        let found = errors.0.len();
        addresses::check_legacy(&path, text, before, errors);
        if errors.0.len() == found {
            addresses::check_endpoint(&path, text, errors);
        }
    }
}

fn validate_source_ranges(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let ranges = object.list_at(&["spec", "loadBalancerSourceRanges"]);
    let balanced = service::kind(object) == "LoadBalancer";
    if !ranges.is_empty() {
        let path = SPEC.child("LoadBalancerSourceRanges");
        if !balanced {
            errors.forbidden(&path, ONLY_BALANCER);
        }
        let old = old.map_or(&[][..], |old| old.list_at(&["spec", "loadBalancerSourceRanges"]));
        let trimmed: Vec<Value> = old.iter().filter_map(Value::as_str).map(|text| text.trim().into()).collect();
        for (index, range) in ranges.iter().enumerate() {
            let text = range.as_str().unwrap_or("").trim();
            addresses::check_block_legacy(&path.index(index), text, &trimmed, errors);
        }
        return;
    }
    let annotation = |object: &Value| object.at(&["metadata", "annotations", SOURCE_RANGES]).clone();
    let Value::Str(text) = annotation(object) else { return };
    let path = Path::root("metadata.annotations");
    let path = path.key(SOURCE_RANGES);
    if !balanced {
        errors.forbidden(&path, ONLY_BALANCER);
    }
    let changed = old.is_none_or(|old| annotation(old).as_str() != Some(&text));
    if changed && !text.trim().is_empty() {
        for range in text.trim().split(',') {
            addresses::check_block_legacy(&path, range.trim(), &[], errors);
        }
    }
}

/// Checks the class of a load balancer.
pub fn validate_class(object: &Value, errors: &mut Errors) {
    let path = SPEC.child("loadBalancerClass");
    let Some(class) = object.at(&["spec", "loadBalancerClass"]).as_str() else { return };
    if service::kind(object) == "LoadBalancer" {
        names::check(&path, class, names::qualified_name, errors);
    } else {
        errors.forbidden(&path, ONLY_BALANCER);
    }
}

fn validate_policies(object: &Value, errors: &mut Errors) {
    let path = SPEC.child("externalTrafficPolicy");
    let policy = object.str_at(&["spec", "externalTrafficPolicy"]);
    if is_reachable(object) {
        names::check_choice(&path, policy, &["Cluster", "Local"], errors);
    } else if !policy.is_empty() {
        errors.invalid_str(&path, policy, "may only be set for externally-accessible services");
    }
    let path = SPEC.child("healthCheckNodePort");
    let port = object.int_at(&["spec", "healthCheckNodePort"]).unwrap_or(0);
    match (needs_health_port(object), port) {
        (false, 0) => {}
        (false, port) => {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.invalid(&path, &port.into(), why);
        }
        (true, 0) => errors.required(&path, ""),
        (true, port) => {
            for message in names::port_number(port) {
                errors.invalid(&path, &port.into(), message);
            }
        }
    }
    let path = SPEC.child("internalTrafficPolicy");
    match object.at(&["spec", "internalTrafficPolicy"]).as_str() {
        None if matches!(service::kind(object), "NodePort" | "LoadBalancer" | "ClusterIP") => {
            errors.required(&path, "")
        }
        None | Some("Cluster" | "Local") => {}
        Some(policy) => errors.not_supported(&path, policy, &["Cluster", "Local"]),
    }
    if let Some(distribution) = object.at(&["spec", "trafficDistribution"]).as_str() {
        let allowed = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        if !allowed.contains(&distribution) {
            errors.not_supported(&SPEC.child("trafficDistribution"), distribution, &allowed);
        }
    }
}

/// Drops the internal traffic policy of a service of type ExternalName, which has no traffic; keeps an invalid one, so
/// that validation reports it.
pub(super) fn drop_unused_policy(object: &mut Value) {
    let policy = object.str_at(&["spec", "internalTrafficPolicy"]);
    if service::kind(object) == "ExternalName" && matches!(policy, "Cluster" | "Local") {
        object.remove_at(&["spec", "internalTrafficPolicy"]);
    }
}
