//! Giving out cluster IPs and node ports: which ones a service asks for, needs, keeps or gives back.
//!
//! These functions run before the service is prepared and validated; what they took must be given back by the caller
//! when the write fails afterwards.

use std::net::IpAddr;

use flotilla_proto::value::Value;

use super::{addresses, service, service_addresses, service_change};
use crate::field::{Errors, Path};
use crate::status::{ApiError, ApiResult};

/// Why an address or port is not given out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another service has the address.
    #[error("provided IP is already allocated")]
    AddressTaken,
    /// No range holds the address.
    #[error("the provided network does not match the current range")]
    AddressOutside,
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

/// Where addresses and ports come from. An implementation remembers what it gave out, to take it back when the write
/// fails; for a dry run it only pretends.
pub trait Allocations {
    /// The families that the cluster serves, the preferred one first; never empty.
    fn families(&self) -> &[&'static str];
    /// Takes a certain address, or any free one of a family.
    fn take_address(&mut self, family: &str, wanted: Option<IpAddr>) -> Result<IpAddr, Refusal>;
    /// Takes a certain node port, or any free one.
    fn take_port(&mut self, wanted: Option<u16>) -> Result<u16, Refusal>;
}

/// What a service holds, or what an update gives back once it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Cluster IPs.
    pub addresses: Vec<IpAddr>,
    /// Node ports, health check ports among them.
    pub ports: Vec<u16>,
}

/// Everything that a stored service holds: to be given back when it is deleted.
pub fn held(object: &Value) -> Held {
    let mut held = Held::default();
    if service::kind(object) != "ExternalName" {
        let list = object.list_at(&["spec", "clusterIPs"]).iter();
        held.addresses = list.filter_map(Value::as_str).filter_map(addresses::parse_sloppy).collect();
    }
    held.ports = service_change::node_ports(object).filter_map(|port| u16::try_from(port).ok()).collect();
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

/// Gives a new service what it needs, and writes it into the service.
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

/// Gives a changed service what it needs besides what it has; what it no longer needs is returned.
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

/// A client that leaves out what the server gave it keeps it.
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
        let kept: Vec<i64> = {
            let before: Vec<i64> = service_change::node_ports(old).collect();
            service_change::node_ports(object).filter(|port| before.contains(port)).collect()
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

/// The single address and the list of addresses say the same, whichever of them the client changed.
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

/// Settles policy and families, as far as addresses, the cluster and the old service leave a choice.
fn choose_families(object: &mut Value, old: Option<&Value>, allocations: &dyn Allocations) -> ApiResult<()> {
    if service::kind(object) == "ExternalName" || old.is_some_and(|old| service_change::keeps_preferred(object, old)) {
        return Ok(());
    }
    let headless_free = object.str_at(&["spec", "clusterIP"]) == "None" && service::selects_nothing(object);
    if object.at(&["spec", "ipFamilyPolicy"]).is_null() {
        let before = old.and_then(|old| old.at(&["spec", "ipFamilyPolicy"]).as_str());
        let policy = before.unwrap_or(if headless_free { "RequireDualStack" } else { "SingleStack" }).to_owned();
        object.set_at(&["spec", "ipFamilyPolicy"], policy);
    }
    let mut errors = Errors::default();
    service_addresses::validate(object, old, &mut errors);
    if !errors.is_empty() {
        return Err(invalid(object, &errors));
    }
    let single = object.str_at(&["spec", "ipFamilyPolicy"]) == "SingleStack";
    if let Some(old) = old {
        reduce(object, old, single, &mut errors);
    }
    check_single(object, single, &mut errors);
    follow_addresses(object, allocations, &mut errors);
    if !errors.is_empty() {
        return Err(invalid(object, &errors));
    }
    if headless_free {
        add_families(object, allocations.families()[0], !single);
        return Ok(());
    }
    check_configured(object, allocations, &mut errors);
    if !errors.is_empty() {
        return Err(invalid(object, &errors));
    }
    add_families(object, allocations.families()[0], !single && allocations.families().len() == 2);
    Ok(())
}

/// A service of one family gives up the second address; others must say that they do.
fn reduce(object: &mut Value, old: &Value, single: bool, errors: &mut Errors) {
    let path = Path::root("spec.ipFamilyPolicy");
    for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (after, before) = (object.list_at(&["spec", field]), old.list_at(&["spec", field]));
        if single && after == before && after.len() > 1 {
            let first = after[..1].to_vec();
            object.set_at(&["spec", field], first);
        } else if !single && !after.is_empty() && after.len() < before.len() {
            let why = format!("must be 'SingleStack' to release the secondary {what}");
            errors.invalid(&path, object.at(&["spec", "ipFamilyPolicy"]), why);
        }
    }
}

fn check_single(object: &Value, single: bool, errors: &mut Errors) {
    for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if single && object.list_at(&["spec", field]).len() == 2 {
            let why = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.invalid(&Path::root("spec.ipFamilyPolicy"), object.at(&["spec", "ipFamilyPolicy"]), why);
        }
    }
}

/// Adds the families of addresses that the client chose.
fn follow_addresses(object: &mut Value, allocations: &dyn Allocations, errors: &mut Errors) {
    let mut families = object.list_at(&["spec", "ipFamilies"]).to_vec();
    let stated = families.len();
    for (index, address) in object.list_at(&["spec", "clusterIPs"]).iter().enumerate() {
        let text = address.as_str().unwrap_or("");
        if text == "None" {
            break;
        }
        if index < families.len() {
            continue;
        }
        let family = addresses::family(text).unwrap_or("unknown");
        if allocations.families().contains(&family) {
            families.push(family.into());
        } else {
            let path = Path::root("spec.clusterIPs");
            let why = format!("{family} is not configured on this cluster");
            errors.invalid(&path.index(index), object.at(&["spec", "clusterIPs"]), why);
        }
    }
    if families.len() > stated {
        object.set_at(&["spec", "ipFamilies"], families);
    }
}

fn check_configured(object: &Value, allocations: &dyn Allocations, errors: &mut Errors) {
    let policy = object.at(&["spec", "ipFamilyPolicy"]);
    if policy.as_str() == Some("RequireDualStack") && allocations.families().len() < 2 {
        let why = "this cluster is not configured for dual-stack services";
        errors.invalid(&Path::root("spec.ipFamilyPolicy"), policy, why);
    }
    let path = Path::root("spec.ipFamilies");
    for (index, family) in object.list_at(&["spec", "ipFamilies"]).iter().enumerate() {
        if !family.as_str().is_some_and(|family| allocations.families().contains(&family)) {
            errors.invalid(&path.index(index), family, "not configured on this cluster");
        }
    }
}

/// Gives a service without families the preferred one, and one of both families the other one.
fn add_families(object: &mut Value, preferred: &str, both: bool) {
    let mut families = object.list_at(&["spec", "ipFamilies"]).to_vec();
    if families.is_empty() {
        families.push(preferred.into());
    }
    if both && families.len() == 1 {
        let other = if families[0].as_str() == Some("IPv4") { "IPv6" } else { "IPv4" };
        families.push(other.into());
    }
    object.set_at(&["spec", "ipFamilies"], families);
}

/// Takes an address for every family of the service.
fn take_addresses(object: &mut Value, allocations: &mut dyn Allocations) -> ApiResult<()> {
    let headless = object.list_at(&["spec", "clusterIPs"]).first().and_then(Value::as_str) == Some("None");
    if service::kind(object) == "ExternalName" || headless {
        return Ok(());
    }
    let wanted = object.list_at(&["spec", "clusterIPs"]).to_vec();
    let families = object.list_at(&["spec", "ipFamilies"]).to_vec();
    let mut taken = Vec::with_capacity(families.len());
    for (index, family) in families.iter().enumerate() {
        let wanted = wanted.get(index).and_then(Value::as_str).unwrap_or("");
        taken.push(take_address(object, family.as_str().unwrap_or(""), wanted, allocations)?);
    }
    if let Some(first) = taken.first() {
        object.set_at(&["spec", "clusterIP"], first.clone());
        object.set_at(&["spec", "clusterIPs"], taken);
    }
    Ok(())
}

fn take_address(object: &Value, family: &str, wanted: &str, allocations: &mut dyn Allocations) -> ApiResult<Value> {
    let all = object.at(&["spec", "clusterIPs"]);
    let path = Path::root("spec.clusterIPs");
    if wanted.is_empty() {
        return match allocations.take_address(family, None) {
            Ok(address) => Ok(addresses::canonical(address).into()),
            Err(Refusal::Full) => {
                let name = crate::field::quote(object.str_at(&["metadata", "name"]));
                let why = format!("failed to allocate a serviceIP for Service {name}: {}", Refusal::Full);
                Err(ApiError::internal(why))
            }
            Err(refusal) => Err(invalid_field(object, &path, all, format!("failed to allocate IP: {refusal}"))),
        };
    }
    let Some(address) = addresses::parse_sloppy(wanted) else {
        let shown = crate::field::quote(wanted);
        return Err(ApiError::internal(format!("failed to parse service IP {shown}")));
    };
    match allocations.take_address(family, Some(address)) {
        Ok(_) => Ok(wanted.into()),
        Err(refusal) => Err(invalid_field(object, &path, all, format!("failed to allocate IP {wanted}: {refusal}"))),
    }
}

/// Takes the addresses that a changed service needs besides those that it has; those that it gives up are returned.
fn update_addresses(object: &mut Value, old: &Value, allocations: &mut dyn Allocations) -> ApiResult<Vec<IpAddr>> {
    if service_change::keeps_preferred(object, old) {
        return Ok(Vec::new());
    }
    let named = |object: &Value| service::kind(object) == "ExternalName";
    if named(old) {
        take_addresses(object, allocations)?;
        return Ok(Vec::new());
    }
    if old.list_at(&["spec", "clusterIPs"]).first().and_then(Value::as_str) == Some("None") {
        return Ok(Vec::new());
    }
    let parsed = |list: &[Value]| -> Vec<IpAddr> {
        list.iter().filter_map(Value::as_str).filter_map(addresses::parse_sloppy).collect()
    };
    if named(object) {
        return Ok(parsed(old.list_at(&["spec", "clusterIPs"])));
    }
    let (before, after) = (old.list_at(&["spec", "ipFamilies"]), object.list_at(&["spec", "ipFamilies"]));
    match (before.len(), after.len()) {
        (1, 2) => {
            let mut list = object.list_at(&["spec", "clusterIPs"]).to_vec();
            let wanted = list.get(1).and_then(Value::as_str).unwrap_or("").to_owned();
            let family = after[1].as_str().unwrap_or("").to_owned();
            list.truncate(1);
            list.push(take_address(object, &family, &wanted, allocations)?);
            object.set_at(&["spec", "clusterIPs"], list);
            Ok(Vec::new())
        }
        (2, 1) => Ok(parsed(old.list_at(&["spec", "clusterIPs"]).get(1..).unwrap_or(&[]))),
        _ => Ok(Vec::new()),
    }
}

fn stated_port(object: &Value, index: usize) -> i64 {
    object.list_at(&["spec", "ports"]).get(index).and_then(|port| port.int_at(&["nodePort"])).unwrap_or(0)
}

fn set_port(object: &mut Value, index: usize, port: i64) {
    let ports = object.get_mut("spec").and_then(|spec| spec.get_mut("ports")).and_then(Value::as_array_mut);
    if let Some(place) = ports.and_then(|ports| ports.get_mut(index)) {
        place.set_at(&["nodePort"], port);
    }
}

fn take_port(object: &Value, index: usize, wanted: i64, allocations: &mut dyn Allocations) -> ApiResult<i64> {
    let taken = match wanted {
        0 => allocations
            .take_port(None)
            .map_err(|refusal| ApiError::internal(format!("failed to allocate a nodePort: {refusal}")))?,
        // What no port can be is outside of every range; any number at its end gives the same answer.
        wanted => allocations.take_port(Some(u16::try_from(wanted).unwrap_or(0))).map_err(|refusal| {
            let path = Path::root("spec.ports");
            invalid_field(object, &path.index(index).child("nodePort"), &wanted.into(), refusal.to_string())
        })?,
    };
    Ok(taken.into())
}

/// Takes the node ports of a new service. Ports of equal number and different protocol share one.
fn take_new_ports(object: &mut Value, allocations: &mut dyn Allocations) -> ApiResult<()> {
    let numbers: Vec<i64> =
        object.list_at(&["spec", "ports"]).iter().map(|port| port.int_at(&["port"]).unwrap_or(0)).collect();
    let mut taken: Vec<(i64, i64)> = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        let stated = stated_port(object, index);
        if stated == 0 && !wants_node_ports(object) {
            continue;
        }
        let shared = taken.iter().find(|(port, _)| port == number).map(|(_, node_port)| *node_port);
        let node_port = match shared {
            None => {
                let requested = numbers.iter().enumerate().filter(|(_, other)| *other == number);
                let requested = requested.map(|(at, _)| stated_port(object, at)).find(|port| *port != 0).unwrap_or(0);
                let node_port = take_port(object, index, requested, allocations)?;
                taken.push((*number, node_port));
                node_port
            }
            Some(shared) if stated == 0 || stated == shared => shared,
            Some(_) => take_port(object, index, stated, allocations)?,
        };
        set_port(object, index, node_port);
    }
    Ok(())
}

fn update_ports(
    object: &mut Value,
    old: &Value,
    allocations: &mut dyn Allocations,
    released: &mut Held,
) -> ApiResult<()> {
    let has = |object: &Value| matches!(service::kind(object), "NodePort" | "LoadBalancer");
    let before: Vec<i64> = service_change::node_ports(old).collect();
    let give_back = |port: &i64| u16::try_from(*port).ok();
    if !has(object) {
        if has(old) {
            released.ports.extend(before.iter().filter_map(give_back));
        }
        return Ok(());
    }
    let mut taken: Vec<i64> = Vec::new();
    let mut settled: Vec<(String, i64)> = Vec::new();
    for index in 0..object.list_at(&["spec", "ports"]).len() {
        let stated = stated_port(object, index);
        if stated == 0 && !wants_node_ports(object) {
            continue;
        }
        let mut node_port = stated;
        if stated == 0 || (!before.contains(&stated) && !taken.contains(&stated)) {
            node_port = take_port(object, index, stated, allocations)?;
            taken.push(node_port);
            set_port(object, index, node_port);
        }
        let protocol = object.list_at(&["spec", "ports"])[index].str_at(&["protocol"]).to_owned();
        if settled.contains(&(protocol.clone(), node_port)) {
            return Err(ApiError::unknown(format!("duplicate nodePort: {{{protocol} {node_port}}}")));
        }
        settled.push((protocol, node_port));
    }
    let after: Vec<i64> = service_change::node_ports(object).collect();
    released.ports.extend(before.iter().filter(|port| !after.contains(port)).filter_map(give_back));
    Ok(())
}

fn take_health_port(object: &mut Value, allocations: &mut dyn Allocations) -> ApiResult<()> {
    let wanted = object.int_at(&["spec", "healthCheckNodePort"]).unwrap_or(0);
    let asked = if wanted == 0 { None } else { Some(u16::try_from(wanted).unwrap_or(0)) };
    let port = allocations.take_port(asked).map_err(|refusal| {
        ApiError::internal(match wanted {
            0 => format!("failed to allocate a HealthCheck NodePort 0: {refusal}"),
            _ => format!("failed to allocate requested HealthCheck NodePort {wanted}: {refusal}"),
        })
    })?;
    object.set_at(&["spec", "healthCheckNodePort"], i64::from(port));
    Ok(())
}

#[cfg(test)]
#[path = "service_allocation_tests.rs"]
mod tests;
