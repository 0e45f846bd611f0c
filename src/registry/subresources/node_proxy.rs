//! `proxy` of nodes: passes HTTP requests to a node's kubelet, or to another port of the node.

use super::remote::{self, split_name};
use super::{Connect, Connected, Pending};
use crate::field::quote;
use crate::outbound::check_proxyable;
use crate::status::ApiError;
use crate::streams::{Destination, ForwardMode};

/// Serves all methods on a node's `proxy`. The name may be `[scheme:]name[:port]`.
pub(super) fn connect(request: Connect<'_>) -> Pending<'_, Connected> {
    Box::pin(async move {
        let Connect { registry, target, rest, query, .. } = request;
        let invalid = || ApiError::bad_request(format!("invalid node request {}", quote(target.name)));
        let (scheme, name, port) = split_name(target.name).ok_or_else(invalid)?;
        let kubelet = remote::kubelet(registry, name, &target.served.resource.name)?;
        check_proxyable(&kubelet.host)?;
        let peer = match port {
            "" => kubelet.peer(&registry.kubelets, true),
            port if port == kubelet.port.to_string() => kubelet.peer(&registry.kubelets, true),
            port => remote::proxied(scheme, kubelet.host, port.parse().map_err(|_| invalid())?),
        };
        let path = remote::proxied_path(rest, query);
        Ok(Connected::To(Box::new(Destination { peer, path, manner: ForwardMode::Proxy })))
    })
}
