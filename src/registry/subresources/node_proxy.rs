//! `proxy` of nodes: HTTP requests to a node's kubelet, or to another port of the node.

use super::remote::{self, split_name};
use super::{Connect, Connected, Pending};
use crate::field::quote;
use crate::outbound::check_proxyable;
use crate::status::ApiError;

/// Any method on a node's `proxy`. The name may be `[scheme:]name[:port]`.
pub(super) fn connect(request: Connect<'_>) -> Pending<'_, Connected> {
    Box::pin(async move {
        let Connect { registry, target, rest, .. } = request;
        let invalid = || ApiError::bad_request(format!("invalid node request {}", quote(target.name)));
        let (_, name, port) = split_name(target.name).ok_or_else(invalid)?;
        let kubelet = remote::kubelet(registry, name, &target.served.resource.name)?;
        check_proxyable(&kubelet.host)?;
        if rest.is_none() {
            return Ok(Connected::WithSlash);
        }
        Err(remote::pass_on(&kubelet.host, port.parse().unwrap_or(kubelet.port)).await)
    })
}
