//! Finds the addresses behind the name of a Service.

use flotilla_proto::value::Value;
use rand::seq::{IndexedRandom as _, SliceRandom as _};

use super::{Tables, stored_value};
use crate::scan::scan;

/// The host and the port at which a port of a Service is reached. The error text is the reference's.
pub type Resolved = Result<(String, u16), String>;

impl Tables {
    /// Returns [`resolve`] bound to these tables, for callers that do not know them.
    pub fn resolver(&self) -> impl FnOnce(&str, &str, u16) -> Resolved {
        move |namespace, name, port| resolve(self, namespace, name, port)
    }
}

/// Finds the host and the port at which a port of a Service is reached: its cluster address, or a ready endpoint. The
/// error text is the reference's.
pub fn resolve(tables: &Tables, namespace: &str, name: &str, port: u16) -> Resolved {
    let missing = || format!("service {name:?} not found");
    let served = tables.resources.of_resource("", "services").ok_or_else(missing)?;
    let object = tables.current(&served, namespace, name).ok_or_else(missing)?;
    let service = stored_value(&object).map_err(|error| error.message)?;
    if tables.routes_by_endpoints {
        let slices = slices(tables, namespace, name);
        return endpoint(&service, slices, name, port);
    }
    cluster_address(&service, name, port)
}

fn cluster_address(service: &Value, name: &str, port: u16) -> Result<(String, u16), String> {
    let address = service.str_at(&["spec", "clusterIP"]);
    match service.str_at(&["spec", "type"]) {
        "ClusterIP" if address == "None" => Err("cannot route to service with ClusterIP \"None\"".into()),
        "ClusterIP" | "LoadBalancer" | "NodePort" => {
            find_port(service, name, port)?;
            Ok((address.to_owned(), port))
        }
        "ExternalName" => Ok((service.str_at(&["spec", "externalName"]).to_owned(), port)),
        other => Err(format!("unsupported service type {other:?}")),
    }
}

fn find_port<'a>(service: &'a Value, name: &str, port: u16) -> Result<&'a Value, String> {
    let mut ports = service.list_at(&["spec", "ports"]).iter();
    let found = ports.find(|own| own.int_at(&["port"]) == Some(i64::from(port)));
    found.ok_or_else(|| format!("no service port {port} found for service {name:?}"))
}

/// Returns a random ready endpoint of a port. Prefers endpoints of the family that the service prefers.
fn endpoint(service: &Value, mut slices: Vec<Value>, name: &str, port: u16) -> Result<(String, u16), String> {
    match service.str_at(&["spec", "type"]) {
        "ClusterIP" | "LoadBalancer" | "NodePort" => {}
        other => return Err(format!("unsupported service type {other:?}")),
    }
    let port_name = find_port(service, name, port)?.str_at(&["name"]).to_owned();
    let preferred = service.list_at(&["spec", "ipFamilies"]).first().and_then(Value::as_str).unwrap_or("").to_owned();
    slices.shuffle(&mut rand::rng());
    slices.sort_by_key(|slice| slice.str_at(&["addressType"]) != preferred);
    for slice in &slices {
        let ports = slice.list_at(&["ports"]).iter().filter(|port| port.str_at(&["name"]) == port_name);
        for number in ports.filter_map(|port| u16::try_from(port.int_at(&["port"])?).ok()) {
            let endpoints = slice.list_at(&["endpoints"]).iter();
            let ready = endpoints.filter(|of| of.at(&["conditions", "ready"]).as_bool() != Some(false));
            let addresses: Vec<&str> = ready.filter_map(|of| of.list_at(&["addresses"]).first()?.as_str()).collect();
            if let Some(address) = addresses.choose(&mut rand::rng()) {
                return Ok(((*address).to_owned(), number));
            }
        }
    }
    Err(format!("no endpoints available for service {name:?}"))
}

/// Returns the endpoint slices of a Service.
pub fn slices(tables: &Tables, namespace: &str, name: &str) -> Vec<Value> {
    use flotilla_cluster::{Scope, Selection};
    let Some(served) = tables.resources.of_resource("discovery.k8s.io", "endpointslices") else { return Vec::new() };
    let scope = Selection { scope: Scope::namespace(namespace), ..Selection::default() };
    let objects = scan(&tables.table(&served).snapshot(), scope).map_while(Result::ok).flatten();
    let values = objects.filter_map(|object| stored_value(&object).ok());
    values.filter(|slice| slice.str_at(&["metadata", "labels", "kubernetes.io/service-name"]) == name).collect()
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn service(kind: &str) -> Value {
        value!({"spec": {"type": kind, "clusterIP": "10.0.0.9", "externalName": "x.example", "ipFamilies": ["IPv4"],
            "ports": [{"name": "web", "port": 443}]}})
    }

    #[test]
    fn a_service_is_reached_at_its_cluster_address_or_external_name() {
        assert_eq!(cluster_address(&service("ClusterIP"), "s", 443), Ok(("10.0.0.9".into(), 443)));
        assert_eq!(cluster_address(&service("ExternalName"), "s", 80), Ok(("x.example".into(), 80)));
        let missing = cluster_address(&service("NodePort"), "s", 1).unwrap_err();
        assert_eq!(missing, "no service port 1 found for service \"s\"");
    }

    #[test]
    fn a_service_is_reached_at_its_ready_endpoints() {
        let slice = |family: &str, address: &str, ready: bool| {
            value!({"addressType": family, "ports": [{"name": "web", "port": 8443}],
                "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}]})
        };
        let slices = vec![slice("IPv6", "2001:db8::1", true), slice("IPv4", "10.1.0.1", true)];
        assert_eq!(endpoint(&service("ClusterIP"), slices, "s", 443), Ok(("10.1.0.1".into(), 8443)));
        let none = endpoint(&service("ClusterIP"), vec![slice("IPv4", "10.1.0.1", false)], "s", 443).unwrap_err();
        assert_eq!(none, "no endpoints available for service \"s\"");
    }
}
