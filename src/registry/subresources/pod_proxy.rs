//! `proxy` of pods: passes HTTP requests to a port of a pod.

use flotilla_proto::value::Value;

use super::remote::{self, split_name};
use super::{Connect, Connected, Pending};
use crate::field::quote;
use crate::outbound::check_proxyable;
use crate::status::ApiError;
use crate::streams::{Destination, ForwardMode};
use crate::tables::stored_value;

/// Serves all methods on a pod's `proxy`. The name may be `[scheme:]name[:port]`.
pub(super) fn connect(request: Connect<'_>) -> Pending<'_, Connected> {
    Box::pin(async move {
        let Connect { registry, target, rest, query, .. } = request;
        let parts = split_name(target.name);
        let invalid = || ApiError::bad_request(format!("invalid pod request {}", quote(target.name)));
        let (scheme, name, port) = parts.ok_or_else(invalid)?;
        let pod = stored_value(&*registry.tables.get(target.served, target.namespace, name, None).await?)?;
        let address = pod.str_at(&["status", "podIP"]);
        check_proxyable(if address.parse::<std::net::IpAddr>().is_ok() { address } else { "" })?;
        let peer = remote::proxied(scheme, address.to_owned(), number(&pod, port, scheme));
        let path = remote::proxied_path(rest, query);
        Ok(Connected::To(Box::new(Destination { peer, path, manner: ForwardMode::Proxy })))
    })
}

/// Returns the port with this number or name, or the first port that a container states if `port` is empty.
fn number(pod: &Value, port: &str, scheme: &str) -> u16 {
    let ports = || pod.list_at(&["spec", "containers"]).iter().flat_map(|container| container.list_at(&["ports"]));
    let stated = |port: &Value| port.int_at(&["containerPort"]);
    let number = match port {
        "" => ports().find_map(stated),
        text => text.parse().ok().or_else(|| ports().find(|port| port.str_at(&["name"]) == text).and_then(stated)),
    };
    number.and_then(|number| u16::try_from(number).ok()).unwrap_or(if scheme == "https" { 443 } else { 80 })
}
