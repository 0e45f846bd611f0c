//! Updates of services: the server clears fields that only the old type had, and allocated addresses and ports stay.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::traffic;
use crate::field::{Errors, Path};
use crate::kinds::core::service;
use crate::rules::{addresses, metadata, names};

const SPEC: Path<'static> = Path::root("spec");
const FIXED: &str = "may not change once set";

/// Clears the fields that only the old type had, unless the client set them anew.
pub fn prepare_update(object: &mut Value, old: &Value) {
    let same = |object: &Value, fields: &[&str]| {
        fields.iter().all(|field| object.at(&["spec", field]) == old.at(&["spec", field]))
    };
    let mut wiped: Vec<&str> = Vec::new();
    if service::kind(old) != "ExternalName" && service::kind(object) == "ExternalName" {
        if same(object, &["clusterIP", "clusterIPs"]) {
            wiped.extend(["clusterIP", "clusterIPs"]);
        }
        wiped.extend(["ipFamilies", "ipFamilyPolicy"].into_iter().filter(|field| same(object, &[field])));
    }
    if has_node_ports(old)
        && !has_node_ports(object)
        && node_ports(object).all(|port| node_ports(old).any(|p| p == port))
    {
        let ports = object.get_mut("spec").and_then(|spec| spec.get_mut("ports")).and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
    let balanced = |object: &Value| service::kind(object) == "LoadBalancer";
    let leaves: [(bool, &str); 4] = [
        (service::needs_health_port(old) && !service::needs_health_port(object), "healthCheckNodePort"),
        (balanced(old) && !balanced(object), "allocateLoadBalancerNodePorts"),
        (balanced(old) && !balanced(object), "loadBalancerClass"),
        (service::is_reachable(old) && !service::is_reachable(object), "externalTrafficPolicy"),
    ];
    wiped
        .extend(leaves.into_iter().filter(|(leaves, field)| *leaves && same(object, &[field])).map(|(_, field)| field));
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        for field in wiped {
            spec.remove(field);
        }
    }
    if !balanced(object) {
        object.set_at(&["status", "loadBalancer"], value!({}));
    }
}

fn has_node_ports(object: &Value) -> bool {
    matches!(service::kind(object), "NodePort" | "LoadBalancer")
}

/// Returns the node ports that a service states.
pub fn node_ports(object: &Value) -> impl Iterator<Item = i64> {
    let ports = object.list_at(&["spec", "ports"]).iter();
    ports.filter_map(|port| port.int_at(&["nodePort"])).filter(|port| *port != 0)
}

/// Checks an update.
pub fn validate_update(object: &Value, old: &Value, errors: &mut Errors) {
    let named = |object: &Value| service::kind(object) == "ExternalName";
    if !named(object) && !named(old) {
        let (headless, before) = (service::is_headless(object), service::is_headless(old));
        if !(headless && before) {
            validate_addresses(object, old, errors);
        }
        if !headless && !before {
            validate_families(object, old, errors);
        }
    }
    let class = |object: &Value| object.at(&["spec", "loadBalancerClass"]).clone();
    let balanced = service::kind(object) == "LoadBalancer" && service::kind(old) == "LoadBalancer";
    if balanced && class(object) != class(old) {
        errors.invalid(&SPEC.child("loadBalancerClass"), &class(object), FIXED);
    }
    traffic::validate_class(object, errors);
    let port = |object: &Value| object.int_at(&["spec", "healthCheckNodePort"]).unwrap_or(0);
    if service::needs_health_port(old) && service::needs_health_port(object) && port(old) != port(object) {
        errors.forbidden(&SPEC.child("healthCheckNodePort"), metadata::IMMUTABLE);
    }
    service::validate(object, Some(old), errors);
}

fn validate_addresses(object: &Value, old: &Value, errors: &mut Errors) {
    let (after, before) = (object.list_at(&["spec", "clusterIPs"]), old.list_at(&["spec", "clusterIPs"]));
    let all = object.at(&["spec", "clusterIPs"]);
    let path = SPEC.child("clusterIPs");
    if before.len() == after.len() {
        for (index, _) in before.iter().zip(after).enumerate().filter(|(_, (before, after))| before != after) {
            errors.invalid(&path.index(index), all, FIXED);
        }
        return;
    }
    let shrinks = before.len() > after.len();
    if shrinks && after.is_empty() {
        errors.invalid(&path.index(0), all, "primary clusterIP can not be unset");
    }
    if before.first().zip(after.first()).is_some_and(|(before, after)| before != after) {
        errors.invalid(&path.index(0), all, FIXED);
    }
    if shrinks && after.len() == 1 {
        require_single(object, "must be set to 'SingleStack' when releasing the secondary clusterIP", errors);
    }
}

fn require_single(object: &Value, why: &str, errors: &mut Errors) {
    let policy = object.at(&["spec", "ipFamilyPolicy"]);
    if policy.as_str() != Some("SingleStack") {
        errors.invalid(&SPEC.child("ipFamilyPolicy"), policy, why);
    }
}

fn validate_families(object: &Value, old: &Value, errors: &mut Errors) {
    let (after, before) = (object.list_at(&["spec", "ipFamilies"]), old.list_at(&["spec", "ipFamilies"]));
    let path = SPEC.child("ipFamilies");
    let families = object.at(&["spec", "ipFamilies"]);
    if before.len() == after.len() {
        for _ in before.iter().zip(after).filter(|(before, after)| before != after) {
            errors.invalid(&path.index(0), families, FIXED);
        }
        return;
    }
    let shrinks = before.len() > after.len();
    if shrinks && object.list_at(&["spec", "clusterIPs"]).is_empty() {
        errors.invalid(&path.index(0), families, "primary ipFamily can not be unset");
    }
    if before.first().zip(after.first()).is_some_and(|(before, after)| before != after) {
        errors.invalid(&path.index(0), object.at(&["spec", "clusterIPs"]), FIXED);
    }
    if shrinks && after.len() == 1 {
        require_single(object, "must be set to 'SingleStack' when releasing the secondary ipFamily", errors);
    }
}

/// Checks a write of `/status`.
pub fn validate_status(object: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::root("status.loadBalancer.ingress");
    let points = object.list_at(&["status", "loadBalancer", "ingress"]);
    if service::kind(object) != "LoadBalancer" && !points.is_empty() {
        errors.forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    let before: Vec<Value> = old
        .list_at(&["status", "loadBalancer", "ingress"])
        .iter()
        .filter(|point| !point.str_at(&["ip"]).is_empty())
        .map(|point| point.at(&["ip"]).clone())
        .collect();
    for (index, point) in points.iter().enumerate() {
        let path = path.index(index);
        let ip = point.str_at(&["ip"]);
        if !ip.is_empty() {
            addresses::check_legacy(&path.child("ip"), ip, &before, errors);
        }
        validate_mode(point.at(&["ipMode"]).as_str(), ip, &path.child("ipMode"), errors);
        validate_hostname(point.str_at(&["hostname"]), &path.child("hostname"), errors);
    }
}

fn validate_mode(mode: Option<&str>, ip: &str, path: &Path<'_>, errors: &mut Errors) {
    match mode {
        None if ip.is_empty() => {}
        None => errors.required(path, "must be specified when `ip` is set"),
        Some(_) if ip.is_empty() => errors.forbidden(path, "may not be specified when `ip` is not set"),
        Some("Proxy" | "VIP") => {}
        Some(mode) => errors.not_supported(path, mode, &["Proxy", "VIP"]),
    }
}

/// Checks the host name of a load balancer; an absent one is valid.
pub fn validate_hostname(hostname: &str, path: &Path<'_>, errors: &mut Errors) {
    if hostname.is_empty() {
        return;
    }
    names::check(path, hostname, names::dns1123_subdomain, errors);
    if addresses::parse_sloppy(hostname).is_some() {
        errors.invalid_str(path, hostname, "must be a DNS name, not an IP address");
    }
}

/// Returns whether a service has the same addresses and families as before, and leaves the choice of families to the
/// server.
pub fn keeps_preferred(object: &Value, old: &Value) -> bool {
    let prefers = |value: &Value| value.as_str() == Some("PreferDualStack");
    let (policy, before) = (object.at(&["spec", "ipFamilyPolicy"]), old.at(&["spec", "ipFamilyPolicy"]));
    let same = |field: &str| object.at(&["spec", field]) == old.at(&["spec", field]);
    prefers(policy)
        && (before.is_null() || prefers(before))
        && service::kind(object) == service::kind(old)
        && matches!(service::kind(object), "ClusterIP" | "NodePort" | "LoadBalancer")
        && same("clusterIPs")
        && same("ipFamilies")
}
