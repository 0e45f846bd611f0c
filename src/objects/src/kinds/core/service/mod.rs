//! Services: defaults, the fields that each type may have, and warnings. `traffic` has the fields about
//! traffic, `change` handles changes of the type, and `allocation` cluster IPs and node ports.

pub mod allocation;
pub mod change;
mod ip_addresses;
mod traffic;

use std::collections::HashSet;

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use self::traffic::drop_unused_policy;
use super::endpoints::PROTOCOLS;
use crate::field::{Errors, Path};
use crate::printing::{Printer, services};
use crate::rules::{Generation, NameRule, Strategy, UpdateBasis, addresses, labels, names};

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
pub(super) const ONLY_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
pub(super) const SPEC: Path<'static> = Path::root("spec");

/// Rules of Services.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::ClientOwned,
    name: NameRule::Service,
    returns_deleted: true,
    status: true,
    create_on_update: true,
    update_basis: UpdateBasis::Tables,
    allocates: true,
    default,
    prepare_create: |object, _| {
        object.set_at(&["status"], value!({"loadBalancer": {}}));
        drop_unused_policy(object);
    },
    prepare_update: |object, old, _| {
        change::prepare_update(object, old);
        drop_unused_policy(object);
    },
    validate: |object, errors| validate(object, None, errors),
    validate_update: change::validate_update,
    validate_status: change::validate_status,
    warnings,
    selectable: &[
        ("spec.clusterIP", |object| object.str_at(&["spec", "clusterIP"]).to_owned()),
        ("spec.type", |object| object.str_at(&["spec", "type"]).to_owned()),
    ],
    printer: Some(Printer::of(services::service)),
    ..Strategy::DEFAULT
};

/// Returns the type of a service.
pub fn kind(service: &Value) -> &str {
    service.str_at(&["spec", "type"])
}

/// Returns whether a service is headless: it has no cluster IP.
pub fn is_headless(service: &Value) -> bool {
    matches!(service.list_at(&["spec", "clusterIPs"]), [only] if only.as_str() == Some("None"))
}

/// Returns whether clients outside of the cluster can reach a service.
pub fn is_reachable(service: &Value) -> bool {
    match kind(service) {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !service.list_at(&["spec", "externalIPs"]).is_empty(),
        _ => false,
    }
}

/// Returns whether a service needs a port at which load balancers check the health of nodes.
pub fn needs_health_port(service: &Value) -> bool {
    kind(service) == "LoadBalancer" && service.str_at(&["spec", "externalTrafficPolicy"]) == "Local"
}

fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    if spec.str_at(&["sessionAffinity"]).is_empty() {
        spec.set_at(&["sessionAffinity"], "None");
    }
    match spec.str_at(&["sessionAffinity"]) {
        "None" => drop(spec.remove_at(&["sessionAffinityConfig"])),
        "ClientIP" if spec.at(&["sessionAffinityConfig", "clientIP", "timeoutSeconds"]).is_null() => {
            spec.set_at(
                &["sessionAffinityConfig"],
                value!({"clientIP": {"timeoutSeconds": (traffic::AFFINITY_SECONDS)}}),
            );
        }
        _ => {}
    }
    if spec.str_at(&["type"]).is_empty() {
        spec.set_at(&["type"], "ClusterIP");
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.str_at(&["protocol"]).is_empty() {
            port.set_at(&["protocol"], "TCP");
        }
        let target = port.at(&["targetPort"]);
        if matches!(target, Value::Null | Value::Int(0)) || target.as_str() == Some("") {
            let number = port.int_at(&["port"]).unwrap_or(0);
            port.set_at(&["targetPort"], number);
        }
    }
    traffic::set_defaults(object);
}

/// Checks a service without its metadata; `old` is the stored service of an update.
pub fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let annotations = object.at(&["metadata", "annotations"]);
    let (mode, hints) = (annotations.at(&[TOPOLOGY_MODE]), annotations.at(&[TOPOLOGY_HINTS]));
    if !mode.is_null() && !hints.is_null() && mode != hints {
        let why = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.invalid(&Path::root("metadata.annotations").key(TOPOLOGY_MODE), mode, why);
    }
    validate_type(object, errors);
    let ports = object.list_at(&["spec", "ports"]);
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        validate_port(port, ports.len() > 1, &mut seen, &SPEC.child("ports").index(index), errors);
    }
    labels::validate_labels(object.at(&["spec", "selector"]), &SPEC.child("selector"), errors);
    traffic::validate_affinity(object, errors);
    ip_addresses::validate(object, old, errors);
    traffic::validate_external(object, old, errors);
    names::check_choice(
        &SPEC.child("type"),
        kind(object),
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
        errors,
    );
    validate_port_numbers(object, errors);
    traffic::validate(object, old, errors);
}

fn validate_type(object: &Value, errors: &mut Errors) {
    let headless = is_headless(object);
    let kind = kind(object);
    if object.list_at(&["spec", "ports"]).is_empty() && !headless && kind != "ExternalName" {
        errors.required(&SPEC.child("ports"), "");
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.invalid_str(&SPEC.child("clusterIPs").index(0), "None", why);
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let value = object.at(&["spec", field]);
                if !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()) {
                    errors.forbidden(&SPEC.child(field), "may not be set for ExternalName services");
                }
            }
            let name = object.str_at(&["spec", "externalName"]);
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                errors.required(&SPEC.child("externalName"), "");
            } else {
                names::check(&SPEC.child("externalName"), name, names::dns1123_subdomain, errors);
            }
        }
        _ => {}
    }
}

fn validate_port<'a>(port: &'a Value, named: bool, seen: &mut HashSet<&'a str>, path: &Path<'_>, errors: &mut Errors) {
    let name = port.str_at(&["name"]);
    if !name.is_empty() {
        names::check(&path.child("name"), name, names::dns1123_label, errors);
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), &name.into());
        }
    } else if named {
        errors.required(&path.child("name"), "");
    }
    let number = port.int_at(&["port"]).unwrap_or(0);
    for message in names::port_number(number) {
        errors.invalid(&path.child("port"), &number.into(), message);
    }
    names::check_choice(&path.child("protocol"), port.str_at(&["protocol"]), &PROTOCOLS, errors);
    let target = port.at(&["targetPort"]);
    let messages = match target {
        Value::Str(name) => names::port_name(name),
        other => names::port_number(other.as_int().unwrap_or(0)),
    };
    for message in messages {
        errors.invalid(&path.child("targetPort"), target, message);
    }
    if let Some(application) = port.at(&["appProtocol"]).as_str() {
        names::check(&path.child("appProtocol"), application, names::qualified_name, errors);
    }
}

fn validate_port_numbers(object: &Value, errors: &mut Errors) {
    let ports = object.list_at(&["spec", "ports"]);
    let path = SPEC.child("ports");
    let node_port = |port: &Value| port.int_at(&["nodePort"]).unwrap_or(0);
    if kind(object) == "ClusterIP" {
        for (index, _) in ports.iter().enumerate().filter(|(_, port)| node_port(port) != 0) {
            let why = "may not be used when `type` is 'ClusterIP'";
            errors.forbidden(&path.index(index).child("nodePort"), why);
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let number = node_port(port);
        if number != 0 && !seen.insert((port.str_at(&["protocol"]), number)) {
            errors.duplicate(&path.index(index).child("nodePort"), &number.into());
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, number) = (port.str_at(&["protocol"]), port.int_at(&["port"]).unwrap_or(0));
        if !seen.insert((protocol, number)) {
            let shown = value!({"Name": "", "Protocol": protocol, "AppProtocol": null, "Port": number,
                "TargetPort": 0, "NodePort": 0});
            errors.duplicate(&path.index(index), &shown);
        }
    }
}

fn warnings(object: &Value, _old: Option<&Value>, warnings: &mut Vec<String>) {
    let spec = object.at(&["spec"]);
    if !object.at(&["metadata", "annotations", TOPOLOGY_HINTS]).is_null() {
        warnings.push(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"));
    }
    let address = spec.str_at(&["clusterIP"]);
    if !matches!(address, "" | "None") {
        warn_list(spec, "clusterIPs", addresses::warn_address, warnings);
    }
    let external = !spec.list_at(&["externalIPs"]).is_empty();
    let headless = kind(object) == "ClusterIP" && address == "None";
    let mut ignored = |holds: bool, text: &str| {
        if holds {
            warnings.push(text.to_owned());
        }
    };
    ignored(
        headless && !spec.str_at(&["loadBalancerIP"]).is_empty(),
        "spec.loadBalancerIP is ignored for headless services",
    );
    ignored(headless && external, "spec.externalIPs is ignored for headless services");
    ignored(
        headless && spec.str_at(&["sessionAffinity"]) != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    warn_list(spec, "externalIPs", addresses::warn_address, warnings);
    let named = kind(object) == "ExternalName";
    if external && !headless && !named {
        warnings.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".into());
    }
    let balancer = spec.str_at(&["loadBalancerIP"]);
    if !balancer.is_empty() {
        addresses::warn_address(&SPEC.child("loadBalancerIP"), balancer, warnings);
    }
    warn_list(spec, "loadBalancerSourceRanges", addresses::warn_block, warnings);
    if named && external {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".into());
    }
    if !named && !spec.str_at(&["externalName"]).is_empty() {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".into());
    }
    if spec.str_at(&["trafficDistribution"]) == "PreferClose" {
        let why = "\"PreferClose\" is deprecated; use \"PreferSameZone\"";
        warnings.push(format!("spec.trafficDistribution: {why}"));
    }
}

fn warn_list(spec: &Value, list: &str, warn: fn(&Path<'_>, &str, &mut Vec<String>), warnings: &mut Vec<String>) {
    let path = SPEC.child(list);
    for (index, item) in spec.list_at(&[list]).iter().enumerate() {
        warn(&path.index(index), item.as_str().unwrap_or(""), warnings);
    }
}

/// Returns whether a service selects no pods.
pub fn selects_nothing(service: &Value) -> bool {
    service.map_at(&["spec", "selector"]).is_none_or(Map::is_empty)
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
