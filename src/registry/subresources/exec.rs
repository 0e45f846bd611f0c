//! `exec` and `attach`: connect clients with the streams of a process in a container.

use flotilla_proto::value::Value;

use super::remote;
use super::{Connect, Connected, Pending};
use crate::status::{ApiError, ApiResult};
use crate::streams::{Destination, ForwardMode, Process};
use crate::tables::stored_value;

/// Lists of containers, in the order in which errors name them.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Serves GET and POST of a pod's `exec` or `attach`.
pub(super) fn connect(request: Connect<'_>) -> Pending<'_, Connected> {
    Box::pin(async move {
        let Connect { registry, target, query, .. } = request;
        let pod = stored_value(&*registry.tables.get(target.served, target.namespace, target.name, None).await?)?;
        let container = container(&pod, query.text("container"))?;
        let kubelet = remote::kubelet(registry, assigned(&pod, target.name)?, &target.served.resource.name)?;
        let asked = |name: &str| query.flag(name).unwrap_or(false);
        let process = Process {
            stdin: asked("stdin"),
            stdout: asked("stdout"),
            stderr: asked("stderr"),
            tty: asked("tty"),
            by_websocket: kubelet.by_websocket,
        };
        // Kubelets use these names.
        let switches =
            [("input", process.stdin), ("output", process.stdout), ("error", process.stderr), ("tty", process.tty)];
        let mut parameters: Vec<(&str, String)> =
            switches.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| (*name, "1".to_owned())).collect();
        if target.subresource == "exec" {
            parameters.extend(query.all("command").map(|part| ("command", part.to_owned())));
        }
        let path = remote::kubelet_path(&[target.subresource, target.namespace, target.name, &container], parameters);
        let peer = kubelet.peer(&registry.kubelets, false);
        remote::count(registry, target.subresource, kubelet.by_websocket);
        Ok(Connected::To(Box::new(Destination { peer, path, manner: ForwardMode::Process(process) })))
    })
}

/// Returns the node of a pod; empty when it has none yet.
pub(super) fn host(pod: &Value) -> &str {
    pod.str_at(&["spec", "nodeName"])
}

/// Returns the node of a pod, or 400 when it has none.
pub(super) fn assigned<'p>(pod: &'p Value, name: &str) -> ApiResult<&'p str> {
    let host = host(pod);
    if host.is_empty() {
        return Err(ApiError::bad_request(format!("pod {name} does not have a host assigned")));
    }
    Ok(host)
}

/// Returns the name of the container that the request means: the named one, or the only one.
pub(super) fn container(pod: &Value, wanted: &str) -> ApiResult<String> {
    let pod_name = pod.str_at(&["metadata", "name"]);
    let names = || LISTS.iter().flat_map(|list| pod.list_at(&["spec", list])).map(|c| c.str_at(&["name"]));
    if !wanted.is_empty() {
        return match names().find(|name| *name == wanted) {
            Some(name) => Ok(name.to_owned()),
            None => Err(ApiError::bad_request(format!("container {wanted} is not valid for pod {pod_name}"))),
        };
    }
    match pod.list_at(&["spec", "containers"]) {
        [only] => Ok(only.str_at(&["name"]).to_owned()),
        [] => Err(ApiError::bad_request(format!("a container name must be specified for pod {pod_name}"))),
        _ => {
            let all = names().collect::<Vec<_>>().join(" ");
            let why = format!("a container name must be specified for pod {pod_name}, choose one of: [{all}]");
            Err(ApiError::bad_request(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn the_container_must_be_named_if_there_are_several() {
        let one = value!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}});
        assert_eq!(container(&one, "").unwrap(), "c");
        assert_eq!(container(&one, "x").unwrap_err().message, "container x is not valid for pod p");
        let two = value!({"metadata": {"name": "p"}, "spec": {
            "containers": [{"name": "c"}, {"name": "d"}], "initContainers": [{"name": "i"}]
        }});
        assert_eq!(container(&two, "i").unwrap(), "i");
        let message = container(&two, "").unwrap_err().message;
        assert_eq!(message, "a container name must be specified for pod p, choose one of: [i c d]");
    }
}
