//! The node ports of a service, and the port at which load balancers check the health of nodes.

use std::collections::{HashMap, HashSet};

use flotilla_proto::value::Value;

use super::{Allocations, Held, invalid_field, wants_node_ports};
use crate::field::Path;
use crate::kinds::core::service;
use crate::kinds::core::service::change;
use crate::status::{ApiError, ApiResult};

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
    match wanted {
        0 => allocations
            .take_port(None)
            .map_err(|refusal| ApiError::internal(format!("failed to allocate a nodePort: {refusal}"))),
        wanted => allocations.take_port(Some(wanted)).map_err(|refusal| {
            let path = Path::root("spec.ports");
            invalid_field(object, &path.index(index).child("nodePort"), &wanted.into(), refusal.to_string())
        }),
    }
}

/// Allocates the node ports of a new service. Ports of the same number and different protocols share a node port.
pub(super) fn take_new_ports(object: &mut Value, allocations: &mut dyn Allocations) -> ApiResult<()> {
    let numbers: Vec<i64> =
        object.list_at(&["spec", "ports"]).iter().map(|port| port.int_at(&["port"]).unwrap_or(0)).collect();
    // The first node port that is stated for a number.
    let mut requested: HashMap<i64, i64> = HashMap::new();
    for (index, number) in numbers.iter().enumerate() {
        match stated_port(object, index) {
            0 => {}
            stated => _ = requested.entry(*number).or_insert(stated),
        }
    }
    let mut taken: HashMap<i64, i64> = HashMap::new();
    for (index, number) in numbers.iter().enumerate() {
        let stated = stated_port(object, index);
        if stated == 0 && !wants_node_ports(object) {
            continue;
        }
        let node_port = match taken.get(number).copied() {
            None => {
                let requested = requested.get(number).copied().unwrap_or(0);
                let node_port = take_port(object, index, requested, allocations)?;
                taken.insert(*number, node_port);
                node_port
            }
            Some(shared) if stated == 0 || stated == shared => shared,
            Some(_) => take_port(object, index, stated, allocations)?,
        };
        set_port(object, index, node_port);
    }
    Ok(())
}

pub(super) fn update_ports(
    object: &mut Value,
    old: &Value,
    allocations: &mut dyn Allocations,
    released: &mut Held,
) -> ApiResult<()> {
    let has = |object: &Value| matches!(service::kind(object), "NodePort" | "LoadBalancer");
    let before: HashSet<i64> = change::node_ports(old).collect();
    let give_back = |port: &i64| u16::try_from(*port).ok();
    if !has(object) {
        if has(old) {
            released.ports.extend(before.iter().filter_map(give_back));
        }
        return Ok(());
    }
    let mut taken: HashSet<i64> = HashSet::new();
    let mut settled: HashSet<(String, i64)> = HashSet::new();
    for index in 0..object.list_at(&["spec", "ports"]).len() {
        let stated = stated_port(object, index);
        if stated == 0 && !wants_node_ports(object) {
            continue;
        }
        let mut node_port = stated;
        if stated == 0 || (!before.contains(&stated) && !taken.contains(&stated)) {
            node_port = take_port(object, index, stated, allocations)?;
            taken.insert(node_port);
            set_port(object, index, node_port);
        }
        let protocol = object.list_at(&["spec", "ports"])[index].str_at(&["protocol"]).to_owned();
        if !settled.insert((protocol.clone(), node_port)) {
            return Err(ApiError::unknown(format!("duplicate nodePort: {{{protocol} {node_port}}}")));
        }
    }
    let after: HashSet<i64> = change::node_ports(object).collect();
    released.ports.extend(before.iter().filter(|port| !after.contains(port)).filter_map(give_back));
    Ok(())
}

pub(super) fn take_health_port(object: &mut Value, allocations: &mut dyn Allocations) -> ApiResult<()> {
    let wanted = object.int_at(&["spec", "healthCheckNodePort"]).unwrap_or(0);
    let port = allocations.take_port((wanted != 0).then_some(wanted)).map_err(|refusal| {
        ApiError::internal(match wanted {
            0 => format!("failed to allocate a HealthCheck NodePort 0: {refusal}"),
            _ => format!("failed to allocate requested HealthCheck NodePort {wanted}: {refusal}"),
        })
    })?;
    object.set_at(&["spec", "healthCheckNodePort"], port);
    Ok(())
}
