//! Endpoints: addresses and ports behind a service.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::printing::{Printer, services};
use crate::rules::{Generation, NameRule, Strategy, addresses, metadata, names};

/// Protocols that a port may have, as messages list them.
pub const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";

/// Rules of Endpoints.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    create_on_update: true,
    default,
    validate: |object, errors| validate_subsets(object.list_at(&["subsets"]), errors),
    validate_update,
    warnings,
    printer: Some(Printer::of(services::endpoints)),
    ..Strategy::DEFAULT
};

fn default(object: &mut Value) {
    let Some(subsets) = object.get_mut("subsets").and_then(Value::as_array_mut) else { return };
    for port in subsets.iter_mut().filter_map(|subset| subset.get_mut("ports")?.as_array_mut()).flatten() {
        if port.str_at(&["protocol"]).is_empty() {
            port.set_at(&["protocol"], "TCP");
        }
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut Errors) {
    metadata::validate_again(STRATEGY.name, true, object, errors);
    // Subsets that were accepted once stay valid as long as they do not change.
    if object.list_at(&["subsets"]) != old.list_at(&["subsets"]) {
        validate_subsets(object.list_at(&["subsets"]), errors);
    }
}

fn validate_subsets(subsets: &[Value], errors: &mut Errors) {
    let path = Path::root("subsets");
    for (index, subset) in subsets.iter().enumerate() {
        let path = path.index(index);
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| subset.list_at(&[list]).is_empty()) {
            errors.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for list in lists {
            for (index, address) in subset.list_at(&[list]).iter().enumerate() {
                validate_address(address, &path.child(list).index(index), errors);
            }
        }
        let ports = subset.list_at(&["ports"]);
        for (index, port) in ports.iter().enumerate() {
            validate_port(port, ports.len() > 1, &path.child("ports").index(index), errors);
        }
    }
}

fn validate_address(address: &Value, path: &Path<'_>, errors: &mut Errors) {
    let ip = address.str_at(&["ip"]);
    addresses::check_legacy(&path.child("ip"), ip, &[], errors);
    let hostname = address.str_at(&["hostname"]);
    if !hostname.is_empty() {
        names::check(&path.child("hostname"), hostname, names::dns1123_label, errors);
    }
    if let Some(node) = address.at(&["nodeName"]).as_str() {
        names::check(&path.child("nodeName"), node, names::dns1123_subdomain, errors);
    }
    addresses::check_endpoint(&path.child("ip"), ip, errors);
}

fn validate_port(port: &Value, named: bool, path: &Path<'_>, errors: &mut Errors) {
    let name = port.str_at(&["name"]);
    if !name.is_empty() {
        names::check(&path.child("name"), name, names::dns1123_label, errors);
    } else if named {
        errors.required(&path.child("name"), "");
    }
    let number = port.int_at(&["port"]).unwrap_or(0);
    for message in names::port_number(number) {
        errors.invalid(&path.child("port"), &number.into(), message);
    }
    let protocol = port.str_at(&["protocol"]);
    if protocol.is_empty() {
        errors.required(&path.child("protocol"), "");
    } else if !PROTOCOLS.contains(&protocol) {
        errors.not_supported(&path.child("protocol"), protocol, &PROTOCOLS);
    }
    if let Some(application) = port.at(&["appProtocol"]).as_str() {
        names::check(&path.child("appProtocol"), application, names::qualified_name, errors);
    }
}

fn warnings(object: &Value, _old: Option<&Value>, warnings: &mut Vec<String>) {
    if object.str_at(&["metadata", "labels", MANAGED_BY]) == CONTROLLER {
        return;
    }
    let path = Path::root("subsets");
    for (index, subset) in object.list_at(&["subsets"]).iter().enumerate() {
        let path = path.index(index);
        for list in ["addresses", "notReadyAddresses"] {
            for (index, address) in subset.list_at(&[list]).iter().enumerate() {
                let path = path.child(list);
                let path = path.index(index);
                addresses::warn_address(&path.child("ip"), address.str_at(&["ip"]), warnings);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn subsets_are_checked_once_they_change() {
        let mut object = value!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]});
        default(&mut object);
        let mut errors = Errors::default();
        validate_subsets(object.list_at(&["subsets"]), &mut errors);
        assert!(errors.is_empty());
        let bad = value!({"subsets": [{"ports": [{"port": 0}, {"port": 1, "name": "a", "protocol": "X"}]}]});
        validate_subsets(bad.list_at(&["subsets"]), &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "subsets[0]",
                "subsets[0].ports[0].name",
                "subsets[0].ports[0].port",
                "subsets[0].ports[0].protocol",
                "subsets[0].ports[1].protocol"
            ]
        );
        let mut errors = Errors::default();
        validate_update(&bad, &bad, &mut errors);
        assert!(errors.is_empty());
    }
}
