//! The cluster IPs of a service.

use std::net::IpAddr;

use flotilla_proto::value::Value;

use super::{Allocations, Refusal, invalid_field};
use crate::field::Path;
use crate::kinds::core::service;
use crate::kinds::core::service::change;
use crate::rules::addresses;
use crate::status::{ApiError, ApiResult};

/// Allocates an address for every family of the service.
pub(super) fn take_addresses(object: &mut Value, allocations: &mut dyn Allocations) -> ApiResult<()> {
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

/// Allocates the addresses that a changed service needs in addition to those that it has. Returns those that it no
/// longer needs.
pub(super) fn update_addresses(
    object: &mut Value,
    old: &Value,
    allocations: &mut dyn Allocations,
) -> ApiResult<Vec<IpAddr>> {
    if change::keeps_preferred(object, old) {
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
