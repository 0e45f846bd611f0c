//! `portforward`: connections to ports of a pod.

use super::exec::assigned;
use super::{Connect, Connected, Pending, remote};
use crate::registry::stored_value;
use crate::request::query::parse_int;
use crate::streams::{Destination, ForwardMode};

/// Serves GET and POST of a pod's `portforward`.
pub(super) fn connect(request: Connect<'_>) -> Pending<'_, Connected> {
    Box::pin(async move {
        let Connect { registry, target, query, .. } = request;
        let ports: Vec<String> =
            query.all("ports").map(|port| parse_int(port).map(|port| port.to_string())).collect::<Result<_, _>>()?;
        let pod = stored_value(&*registry.get(target.served, target.namespace, target.name, None).await?)?;
        let kubelet = remote::kubelet(registry, assigned(&pod, target.name)?, &target.served.resource.name)?;
        let parameters = if ports.is_empty() { Vec::new() } else { vec![("port", ports.join(","))] };
        let path = remote::kubelet_path(&["portForward", target.namespace, target.name], parameters);
        remote::count(registry, target.subresource, kubelet.by_websocket);
        let manner = ForwardMode::Ports { by_websocket: kubelet.by_websocket };
        Ok(Connected::To(Box::new(Destination { peer: kubelet.peer(&registry.kubelets, false), path, manner })))
    })
}
