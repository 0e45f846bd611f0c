//! The node ports of a service, and the port at which load balancers check the health of nodes.

use flotilla_proto::value::Value;

use super::{Allocations, Held, invalid_field, wants_node_ports};
use crate::field::Path;
use crate::kinds::core::service;
use crate::kinds::core::service_change;
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
    let taken = match wanted {
        0 => allocations
            .take_port(None)
            .map_err(|refusal| ApiError::internal(format!("failed to allocate a nodePort: {refusal}")))?,
        // A number that is no port gets the answer for port 0, which is outside of every range.
        wanted => allocations.take_port(Some(u16::try_from(wanted).unwrap_or(0))).map_err(|refusal| {
            let path = Path::root("spec.ports");
            invalid_field(object, &path.index(index).child("nodePort"), &wanted.into(), refusal.to_string())
        })?,
    };
    Ok(taken.into())
}

/// Allocates the node ports of a new service. Ports of the same number and different protocols share a node port.
pub(super) fn take_new_ports(object: &mut Value, allocations: &mut dyn Allocations) -> ApiResult<()> {
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

pub(super) fn update_ports(
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

pub(super) fn take_health_port(object: &mut Value, allocations: &mut dyn Allocations) -> ApiResult<()> {
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
