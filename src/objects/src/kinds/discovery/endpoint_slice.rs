//! EndpointSlices.

use std::collections::HashSet;

use flotilla_proto::value::{Map, Value};

use crate::field::{Errors, Path};
use crate::kinds::core::endpoints::PROTOCOLS;
use crate::printing::{Printer, services};
use crate::rules::{Generation, NameRule, Strategy, addresses, labels, metadata, names};

const ADDRESSES_MAX: usize = 100;
const ENDPOINTS_MAX: usize = 1000;
const PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;
const TOPOLOGY_MAX: usize = 16;
const TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// Rules of EndpointSlices.
pub static STRATEGY: Strategy = Strategy {
    repeats_metadata: false,
    name: NameRule::Subdomain,
    generation: Generation::Own,
    default,
    prepare_create: |object, _| {
        object.set_at(&["metadata", "generation"], 1);
        drop_topology(object, None);
    },
    prepare_update: |object, old, _| prepare_update(object, old),
    validate: |object, errors| validate(object, None, errors),
    validate_update: |object, old, errors| {
        metadata::validate_again(NameRule::Subdomain, true, object, errors);
        validate(object, Some(old), errors);
        let kind = |object: &Value| object.at(&["addressType"]).clone();
        metadata::immutable(&Path::root("addressType"), &kind(object), &kind(old), errors);
    },
    warnings,
    printer: Some(Printer::of(services::endpoint_slice)),
    ..Strategy::DEFAULT
};

fn default(object: &mut Value) {
    for port in object.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        for (field, value) in [("name", ""), ("protocol", "TCP")] {
            if port.at(&[field]).is_null() {
                port.set_at(&[field], value);
            }
        }
    }
}

/// Raises the generation when anything but metadata changes, or when labels change.
fn prepare_update(object: &mut Value, old: &Value) {
    let rest = |object: &Value| {
        let mut rest = object.clone();
        let labels = rest.at(&["metadata", "labels"]).clone();
        rest.set_at(&["metadata"], labels);
        rest
    };
    let generation = old.int_at(&["metadata", "generation"]).unwrap_or(0);
    let changed = rest(object) != rest(old);
    object.set_at(&["metadata", "generation"], generation + i64::from(changed));
    drop_topology(object, Some(old));
}

/// Drops `deprecatedTopology`, a field of an older version, unless the endpoints stay the same.
fn drop_topology(object: &mut Value, old: Option<&Value>) {
    if old.is_some_and(|old| old.list_at(&["endpoints"]) == object.list_at(&["endpoints"])) {
        return;
    }
    for endpoint in object.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        endpoint.remove_at(&["deprecatedTopology"]);
    }
}

fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let kind = object.str_at(&["addressType"]);
    names::check_choice(&Path::root("addressType"), kind, &TYPES, errors);
    validate_ports(object.list_at(&["ports"]), errors);
    // Endpoints that were accepted once stay valid as long as they do not change.
    if old.is_none_or(|old| old.list_at(&["endpoints"]) != object.list_at(&["endpoints"])) {
        validate_endpoints(object.list_at(&["endpoints"]), kind, errors);
    }
}

fn validate_ports(ports: &[Value], errors: &mut Errors) {
    let path = Path::root("ports");
    if ports.len() > PORTS_MAX {
        errors.too_many(&path, ports.len(), PORTS_MAX);
        return;
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = port.str_at(&["name"]);
        if !name.is_empty() {
            names::check(&path.child("name"), name, names::dns1123_label, errors);
        }
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), &name.into());
        }
        match port.at(&["protocol"]).as_str() {
            None => errors.required(&path.child("protocol"), ""),
            Some(protocol) if !PROTOCOLS.contains(&protocol) => {
                errors.not_supported(&path.child("protocol"), protocol, &PROTOCOLS);
            }
            Some(_) => {}
        }
        if let Some(application) = port.at(&["appProtocol"]).as_str() {
            names::check(&path.child("appProtocol"), application, names::qualified_name, errors);
        }
    }
}

fn validate_endpoints(endpoints: &[Value], kind: &str, errors: &mut Errors) {
    let path = Path::root("endpoints");
    if endpoints.len() > ENDPOINTS_MAX {
        errors.too_many(&path, endpoints.len(), ENDPOINTS_MAX);
        return;
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = path.index(index);
        validate_addresses(endpoint.list_at(&["addresses"]), kind, &path.child("addresses"), errors);
        if let Some(node) = endpoint.at(&["nodeName"]).as_str() {
            names::check(&path.child("nodeName"), node, names::dns1123_subdomain, errors);
        }
        let topology = endpoint.at(&["deprecatedTopology"]);
        let place = path.child("deprecatedTopology");
        if let Some(count) = topology.as_object().map(Map::len).filter(|count| *count > TOPOLOGY_MAX) {
            errors.too_many(&place, count, TOPOLOGY_MAX);
        }
        labels::validate_labels(topology, &place, errors);
        if let Some(hostname) = endpoint.at(&["hostname"]).as_str() {
            names::check(&path.child("hostname"), hostname, names::dns1123_label, errors);
        }
        let hints: [(&str, names::Form); 2] =
            [("forZones", names::label_value), ("forNodes", names::dns1123_subdomain)];
        for (list, form) in hints {
            let place = path.child("hints");
            if !validate_hints(endpoint.list_at(&["hints", list]), form, &place.child(list), errors) {
                break;
            }
        }
    }
}

fn validate_addresses(list: &[Value], kind: &str, path: &Path<'_>, errors: &mut Errors) {
    if list.is_empty() {
        errors.required(path, "must contain at least 1 address");
    } else if list.len() > ADDRESSES_MAX {
        errors.too_many(path, list.len(), ADDRESSES_MAX);
    }
    for (index, address) in list.iter().enumerate() {
        let (place, text) = (path.index(index), address.as_str().unwrap_or(""));
        if kind == "FQDN" {
            validate_domain(text, &place, errors);
            continue;
        }
        let before = errors.0.len();
        match kind {
            "IPv4" => addresses::check_legacy(&place, text, &[], errors),
            "IPv6" => addresses::check_address(&place, text, errors),
            _ => continue,
        }
        if errors.0.len() == before {
            if addresses::family(text) != Some(kind) {
                errors.invalid_str(path, text, format!("must be an {kind} address"));
            }
            addresses::check_endpoint(&place, text, errors);
        }
    }
}

fn validate_domain(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let messages = names::dns1123_subdomain(name);
    if !messages.is_empty() {
        errors.invalid_str(path, name, messages.join(","));
    } else if !name.contains('.') {
        errors.invalid_str(path, name, "should be a domain with at least two segments separated by dots");
    } else if let Some(label) = name.split('.').find(|label| !names::dns1123_label(label).is_empty()) {
        errors.invalid_str(path, label, names::dns1123_label(label).join(","));
    }
}

/// Checks the hints of one type. Returns whether their number is allowed.
fn validate_hints(hints: &[Value], form: names::Form, path: &Path<'_>, errors: &mut Errors) -> bool {
    if hints.len() > HINTS_MAX {
        errors.too_many(path, hints.len(), HINTS_MAX);
        return false;
    }
    for (index, hint) in hints.iter().enumerate() {
        let place = path.index(index);
        let (place, name) = (place.child("name"), hint.str_at(&["name"]));
        if hints[..index].iter().any(|other| other.str_at(&["name"]) == name) {
            errors.duplicate(&place, &name.into());
        }
        names::check(&place, name, form, errors);
    }
    true
}

fn warnings(object: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    if old.is_none() && object.str_at(&["addressType"]) == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".into());
    }
    let manager = object.str_at(&["metadata", "labels", MANAGED_BY]);
    if matches!(manager, "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io") {
        return;
    }
    let path = Path::root("endpoints");
    for (index, endpoint) in object.list_at(&["endpoints"]).iter().enumerate() {
        let path = path.index(index);
        let path = path.child("addresses");
        for (index, address) in endpoint.list_at(&["addresses"]).iter().enumerate() {
            addresses::warn_address(&path.index(index), address.as_str().unwrap_or(""), warnings);
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn slices_are_checked_by_type() {
        let broken = |kind: &str, address: &str| {
            let mut object = value!({"addressType": kind, "endpoints": [{"addresses": [address]}], "ports": [{}]});
            default(&mut object);
            let mut errors = Errors::default();
            validate(&object, None, &mut errors);
            errors.0.iter().map(|error| error.field.clone()).collect::<Vec<_>>()
        };
        assert!(broken("IPv4", "10.0.0.1").is_empty() && broken("IPv6", "2001:db8::1").is_empty());
        assert!(broken("FQDN", "a.example.com").is_empty());
        assert_eq!(broken("IPv4", "2001:db8::1"), ["endpoints[0].addresses"]);
        assert_eq!(broken("FQDN", "a"), ["endpoints[0].addresses[0]"]);
        assert_eq!(broken("X", "a"), ["addressType"]);
    }

    #[test]
    fn labels_raise_the_generation() {
        let old = value!({"metadata": {"generation": 3, "labels": {"a": "b"}}, "addressType": "IPv4"});
        let mut same = old.clone();
        same.set_at(&["metadata", "annotations"], value!({"c": "d"}));
        prepare_update(&mut same, &old);
        assert_eq!(same.int_at(&["metadata", "generation"]), Some(3));
        let mut new = old.clone();
        new.set_at(&["metadata", "labels", "a"], "c");
        prepare_update(&mut new, &old);
        assert_eq!(new.int_at(&["metadata", "generation"]), Some(4));
    }
}
