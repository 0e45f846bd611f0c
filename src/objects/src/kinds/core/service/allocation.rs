//! Decides which cluster IPs and node ports a service requests, needs, keeps or releases.
//!
//! These functions run before the service is prepared and validated. If the write fails afterwards, the caller must
//! release the addresses and ports that they allocated.

use std::collections::HashSet;
use std::net::IpAddr;

use flotilla_proto::value::Value;

use self::cluster_ips::{take_addresses, update_addresses};
use self::families::choose_families;
use self::ports::{take_health_port, take_new_ports, update_ports};
use super::change;
use crate::field::{Errors, Path};
use crate::kinds::core::service;
use crate::rules::addresses;
use crate::status::{ApiError, ApiResult};

mod cluster_ips;
mod families;
mod ports;

/// The reason why an address or port is not allocated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another service has the address.
    #[error("provided IP is already allocated")]
    AddressTaken,
    /// No range holds the address.
    #[error("the provided network does not match the current range")]
    AddressOutside,
    /// The range that a dry run checks does not hold the address.
    #[error("the provided IP ({0}) is not in the valid range. The range of valid IPs is {1}")]
    AddressNotInRange(IpAddr, String),
    /// Every address is taken.
    #[error("range is full")]
    Full,
    /// Another service has the port.
    #[error("provided port is already allocated")]
    PortTaken,
    /// The range does not hold the port.
    #[error("provided port is not in the valid range. The range of valid ports is {0}-{1}")]
    PortOutside(u16, u16),
}

/// The source of addresses and ports. An implementation remembers its allocations, to release them when the write
/// fails; for a dry run it allocates nothing.
pub trait Allocations {
    /// Returns the address families that the cluster serves, the preferred one first; never empty.
    fn families(&self) -> &[&'static str];
    /// Allocates the wanted address, or any free one of a family.
    fn take_address(&mut self, family: &str, wanted: Option<IpAddr>) -> Result<IpAddr, Refusal>;
    /// Allocates the wanted node port, which can be any number, or any free one.
    fn take_port(&mut self, wanted: Option<i64>) -> Result<i64, Refusal>;
}

/// The addresses and ports that a service holds, or that an update releases once it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Cluster IPs.
    pub addresses: Vec<IpAddr>,
    /// Node ports, health check ports among them.
    pub ports: Vec<u16>,
}

/// Returns everything that a stored service holds, to be released when it is deleted.
pub fn held(object: &Value) -> Held {
    let mut held = Held::default();
    if service::kind(object) != "ExternalName" {
        let list = object.list_at(&["spec", "clusterIPs"]).iter();
        held.addresses = list.filter_map(Value::as_str).filter_map(addresses::parse_sloppy).collect();
    }
    held.ports = change::node_ports(object).filter_map(|port| u16::try_from(port).ok()).collect();
    if service::needs_health_port(object) {
        held.ports.extend(health_port(object));
    }
    held
}

fn health_port(object: &Value) -> Option<u16> {
    object.int_at(&["spec", "healthCheckNodePort"]).and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
}

fn invalid(object: &Value, errors: &Errors) -> ApiError {
    ApiError::invalid("", "Service", object.str_at(&["metadata", "name"]), &errors.0)
}

fn invalid_field(object: &Value, path: &Path<'_>, value: &Value, why: String) -> ApiError {
    let mut errors = Errors::default();
    errors.invalid(path, value, why);
    invalid(object, &errors)
}

/// Allocates the addresses and ports that a new service needs, and writes them into it.
pub fn allocate_create(object: &mut Value, allocations: &mut dyn Allocations) -> ApiResult<()> {
    if object.list_at(&["spec", "clusterIPs"]).is_empty() && !object.str_at(&["spec", "clusterIP"]).is_empty() {
        let first = object.at(&["spec", "clusterIP"]).clone();
        object.set_at(&["spec", "clusterIPs"], vec![first]);
    }
    choose_families(object, None, allocations)?;
    take_addresses(object, allocations)?;
    if matches!(service::kind(object), "NodePort" | "LoadBalancer") {
        take_new_ports(object, allocations)?;
    }
    if service::needs_health_port(object) {
        take_health_port(object, allocations)?;
    }
    Ok(())
}

/// Allocates the addresses and ports that a changed service needs in addition to those that it has. Returns those that
/// it no longer needs.
pub fn allocate_update(object: &mut Value, old: &Value, allocations: &mut dyn Allocations) -> ApiResult<Held> {
    keep_given(object, old);
    normalize(object, old);
    choose_families(object, Some(old), allocations)?;
    let mut released = Held { addresses: update_addresses(object, old, allocations)?, ports: Vec::new() };
    update_ports(object, old, allocations, &mut released)?;
    match (service::needs_health_port(old), service::needs_health_port(object)) {
        (false, true) => take_health_port(object, allocations)?,
        (true, false) => released.ports.extend(health_port(old)),
        _ => {}
    }
    Ok(released)
}

/// Restores allocated addresses and ports that the client omits.
fn keep_given(object: &mut Value, old: &Value) {
    let addressed = |object: &Value| service::kind(object) != "ExternalName";
    if addressed(old) && addressed(object) {
        for field in ["clusterIP", "clusterIPs"] {
            let given = old.at(&["spec", field]);
            let empty = match object.at(&["spec", field]) {
                Value::Array(list) => list.is_empty(),
                other => other.as_str().unwrap_or("").is_empty(),
            };
            if empty && !given.is_null() {
                object.set_at(&["spec", field], given.clone());
            }
        }
    }
    if wants_node_ports(old) && wants_node_ports(object) {
        let kept: HashSet<i64> = {
            let before: HashSet<i64> = change::node_ports(old).collect();
            change::node_ports(object).filter(|port| before.contains(port)).collect()
        };
        let ports = object.get_mut("spec").and_then(|spec| spec.get_mut("ports")).and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            if port.int_at(&["nodePort"]).unwrap_or(0) != 0 {
                continue;
            }
            let same = |before: &&Value| before.str_at(&["name"]) == port.str_at(&["name"]);
            let given = old.list_at(&["spec", "ports"]).iter().rfind(same);
            let given = given.and_then(|port| port.int_at(&["nodePort"])).unwrap_or(0);
            if given != 0 && !kept.contains(&given) {
                port.set_at(&["nodePort"], given);
            }
        }
    }
    if service::needs_health_port(old) && service::needs_health_port(object) && health_port(object).is_none() {
        let given = old.int_at(&["spec", "healthCheckNodePort"]).unwrap_or(0);
        if object.int_at(&["spec", "healthCheckNodePort"]).unwrap_or(0) == 0 && given != 0 {
            object.set_at(&["spec", "healthCheckNodePort"], given);
        }
    }
}

fn wants_node_ports(object: &Value) -> bool {
    match service::kind(object) {
        "NodePort" => true,
        "LoadBalancer" => object.at(&["spec", "allocateLoadBalancerNodePorts"]).as_bool().unwrap_or(true),
        _ => false,
    }
}

/// Makes `clusterIP` and `clusterIPs` agree, whichever of them the client changed.
fn normalize(object: &mut Value, old: &Value) {
    let (before, after) = (old.str_at(&["spec", "clusterIP"]), object.str_at(&["spec", "clusterIP"]));
    let list = object.list_at(&["spec", "clusterIPs"]);
    let before_list = old.list_at(&["spec", "clusterIPs"]);
    if !before_list.is_empty() && list.is_empty() && before == after {
        let list = before_list.to_vec();
        object.set_at(&["spec", "clusterIPs"], list);
        return;
    }
    if before == after || list != before_list {
        return;
    }
    if !before.is_empty() && after.is_empty() {
        object.remove_at(&["spec", "clusterIPs"]);
    } else {
        let first = vec![Value::from(after)];
        object.set_at(&["spec", "clusterIPs"], first);
    }
}

#[cfg(test)]
#[path = "allocation_tests.rs"]
mod tests;
