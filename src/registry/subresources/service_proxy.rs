//! `proxy` of services: passes HTTP requests to one of a service's endpoints.

use flotilla_proto::value::Value;
use rand::seq::IteratorRandom;

use super::remote::{self, split_name};
use super::{Connect, Connected, Pending, core};
use crate::field::quote;
use crate::outbound::check_proxyable;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};
use crate::streams::{Destination, ForwardMode};
use crate::tables::stored_value;

/// Serves all methods on a service's `proxy`. The name may be `[scheme:]name[:port]`.
pub(super) fn connect(request: Connect<'_>) -> Pending<'_, Connected> {
    Box::pin(async move {
        let Connect { registry, target, rest, query, .. } = request;
        let invalid = || ApiError::bad_request(format!("invalid service request {}", quote(target.name)));
        let (scheme, name, port) = split_name(target.name).ok_or_else(invalid)?;
        let service = stored_value(&*registry.tables.get(target.served, target.namespace, name, None).await?)?;
        let port = port_name(&service, port)?;
        let endpoints = registry.tables.current(&*core(registry, "endpoints")?, target.namespace, name);
        let endpoints = stored_value(&*endpoints.ok_or_else(|| target.served.not_found(name))?)?;
        let unavailable = || unavailable(format!("no endpoints available for service {}", quote(target.name)));
        let (host, port) = endpoint(registry, &endpoints, port)?.ok_or_else(unavailable)?;
        check_proxyable(&host)?;
        let path = remote::proxied_path(rest, query);
        Ok(Connected::To(Box::new(Destination {
            peer: remote::proxied(scheme, host, port),
            path,
            manner: ForwardMode::Proxy,
        })))
    })
}

fn unavailable(why: String) -> ApiError {
    ApiError::new(503, "ServiceUnavailable", why)
}

/// Returns the name of the service's port with this number. A text that is not a number is already a name.
fn port_name<'s>(service: &'s Value, port: &'s str) -> ApiResult<&'s str> {
    let Ok(number) = port.parse::<i64>() else { return Ok(port) };
    let mut ports = service.list_at(&["spec", "ports"]).iter();
    match ports.find(|port| port.int_at(&["port"]) == Some(number)) {
        Some(port) => Ok(port.str_at(&["name"])),
        None => {
            let name = quote(service.str_at(&["metadata", "name"]));
            Err(unavailable(format!("no service port {number} found for service {name}")))
        }
    }
}

/// Returns a random ready endpoint that has a port of this name and names a pod with its address. Returns `None` if
/// there is none.
fn endpoint(registry: &Registry, endpoints: &Value, port: &str) -> ApiResult<Option<(String, u16)>> {
    let pods = core(registry, "pods")?;
    let is_pod = |address: &Value| {
        let of = |field: &str| address.str_at(&["targetRef", field]);
        of("kind") == "Pod"
            && registry
                .tables
                .current(&pods, of("namespace"), of("name"))
                .and_then(|pod| stored_value(&pod).ok())
                .is_some_and(|pod| {
                    pod.list_at(&["status", "podIPs"]).iter().any(|ip| ip.at(&["ip"]) == address.at(&["ip"]))
                })
    };
    let mut candidates: Vec<(String, u16)> = Vec::new();
    for subset in endpoints.list_at(&["subsets"]) {
        let mut ports = subset.list_at(&["ports"]).iter();
        let found = ports.find(|candidate| candidate.str_at(&["name"]) == port).and_then(|port| port.int_at(&["port"]));
        let Some(number) = found.and_then(|number| u16::try_from(number).ok()) else { continue };
        let addresses = subset.list_at(&["addresses"]).iter().filter(|address| is_pod(address));
        candidates.extend(addresses.map(|address| (address.str_at(&["ip"]).to_owned(), number)));
    }
    Ok(candidates.into_iter().choose(&mut rand::rng()))
}
