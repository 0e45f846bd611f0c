//! Cells of Services and their endpoints.

use std::collections::BTreeSet;

use flotilla_proto::time::Timestamp;
use flotilla_proto::value::{Str, Value};

use super::cell::{self, number};
use super::selector;

/// How many endpoints or ports a cell shows.
const SHOWN_MAX: usize = 3;

/// Name, type, cluster IP, external IP, ports, age; selector.
pub fn service(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let cluster_ip = object.list_at(&["spec", "clusterIPs"]).first().and_then(Value::as_str);
    cells.extend([
        cell::name(object),
        cell::text(object, &["spec", "type"]),
        cluster_ip.unwrap_or("<none>").into(),
        external_ip(object).into(),
        ports(object),
        cell::age(object, now),
        selector::labels(object.map_at(&["spec", "selector"])),
    ]);
}

fn external_ip(object: &Value) -> Str {
    let external = cell::strings(object.list_at(&["spec", "externalIPs"]));
    let or = |absent: &'static str, text: Str| if text.is_empty() { Str::const_new(absent) } else { text };
    match object.str_at(&["spec", "type"]) {
        "ClusterIP" | "NodePort" => or("<none>", external),
        "LoadBalancer" => {
            let balancer = load_balancer(object);
            let parts = [balancer.as_str(), external.as_str()];
            or("<pending>", cell::join(parts.into_iter().filter(|part| !part.is_empty()), ","))
        }
        "ExternalName" => object.str_at(&["spec", "externalName"]).into(),
        _ => Str::const_new("<unknown>"),
    }
}

/// Returns the addresses of the load balancer of a service or ingress, sorted, each once.
pub fn load_balancer(object: &Value) -> Str {
    let points = object.list_at(&["status", "loadBalancer", "ingress"]);
    let addresses: BTreeSet<&str> = points
        .iter()
        .map(|point| match point.str_at(&["ip"]) {
            "" => point.str_at(&["hostname"]),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    cell::join(addresses, ",")
}

fn ports(object: &Value) -> Value {
    let mut text = String::new();
    for port in object.list_at(&["spec", "ports"]) {
        let (number_, protocol) = (number(port, &["port"]), port.str_at(&["protocol"]));
        let comma = if text.is_empty() { "" } else { "," };
        text += &match number(port, &["nodePort"]) {
            1.. => format!("{comma}{number_}:{}/{protocol}", number(port, &["nodePort"])),
            _ => format!("{comma}{number_}/{protocol}"),
        };
    }
    if text.is_empty() { "<none>".into() } else { text.into() }
}

/// Name, endpoints, age.
pub fn endpoints(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    cells.extend([cell::name(object), addresses(object.list_at(&["subsets"])), cell::age(object, now)]);
}

fn addresses(subsets: &[Value]) -> Value {
    if subsets.is_empty() {
        return "<none>".into();
    }
    let mut count = 0;
    let mut shown: Vec<String> = Vec::with_capacity(SHOWN_MAX);
    for subset in subsets {
        let addresses = subset.list_at(&["addresses"]);
        let ports = subset.list_at(&["ports"]);
        // A headless service may have no ports: its addresses are shown bare.
        let ports = if ports.is_empty() { vec![None] } else { ports.iter().map(Some).collect() };
        for port in ports {
            count += addresses.len();
            for address in addresses.iter().take(SHOWN_MAX - shown.len()) {
                shown.push(with_port(address.str_at(&["ip"]), port));
            }
        }
    }
    let text = cell::join(shown.iter().map(String::as_str), ",");
    if count > SHOWN_MAX { format!("{text} + {} more...", count - SHOWN_MAX).into() } else { text.into() }
}

fn with_port(address: &str, port: Option<&Value>) -> String {
    match port.map(|port| number(port, &["port"])) {
        None => address.into(),
        Some(port) if address.contains([':', '%']) => format!("[{address}]:{port}"),
        Some(port) => format!("{address}:{port}"),
    }
}

/// Name, address type, ports, endpoints, age.
pub fn endpoint_slice(object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
    let ports: Vec<Str> = object.list_at(&["ports"]).iter().map(slice_port).collect();
    let endpoints = object.list_at(&["endpoints"]).iter();
    let addresses = endpoints.flat_map(|endpoint| endpoint.list_at(&["addresses"])).filter_map(Value::as_str);
    cells.extend([
        cell::name(object),
        cell::text(object, &["addressType"]),
        or_unset(cell::first_few(ports.iter().map(Str::as_str), SHOWN_MAX)),
        or_unset(cell::first_few(addresses, SHOWN_MAX)),
        cell::age(object, now),
    ]);
}

fn slice_port(port: &Value) -> Str {
    match (port.int_at(&["port"]), port.at(&["name"])) {
        (Some(number), _) => number.to_string().into(),
        (None, Value::Str(name)) => name.clone(),
        _ => Str::const_new("*"),
    }
}

fn or_unset((shown, more): (Str, usize)) -> Value {
    match (more, shown.is_empty()) {
        (1.., _) => format!("{shown} + {more} more...").into(),
        (_, true) => "<unset>".into(),
        _ => shown.into(),
    }
}
