//! `exec` and `attach`: the streams of a process in a container.

use flotilla_proto::value::Value;

use super::remote;
use super::{Connect, Connected, Pending};
use crate::outbound::dial;
use crate::registry::stored_value;
use crate::status::{ApiError, ApiResult};

/// Lists of containers, in the order in which errors name them.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// GET or POST of a pod's `exec` or `attach`.
pub(super) fn connect(request: Connect<'_>) -> Pending<'_, Connected> {
    Box::pin(async move {
        let Connect { registry, target, query, upgrade, .. } = request;
        let pod = stored_value(&*registry.get(target.served, target.namespace, target.name, None).await?)?;
        container(&pod, query.text("container"))?;
        Err(upgrade_to_kubelet(registry, target, &pod, upgrade).await)
    })
}

/// Switches to a stream with the kubelet of a pod's node.
pub(super) async fn upgrade_to_kubelet(
    registry: &super::Registry,
    target: super::Target<'_>,
    pod: &Value,
    upgrade: bool,
) -> ApiError {
    if host(pod).is_empty() {
        return ApiError::bad_request(format!("pod {} does not have a host assigned", target.name));
    }
    let kubelet = match remote::kubelet(registry, host(pod), &target.served.resource.name) {
        Ok(kubelet) => kubelet,
        Err(error) => return error,
    };
    if !upgrade {
        return ApiError::bad_request("Upgrade request required");
    }
    match dial(&kubelet.host, kubelet.port, false).await {
        Err(why) => ApiError::unknown(format!("error dialing backend: {why}")),
        Ok(_) => remote::not_spoken("streams"),
    }
}

/// The node of a pod; empty when it has none yet.
pub(super) fn host(pod: &Value) -> &str {
    pod.str_at(&["spec", "nodeName"])
}

/// The container that is meant: the named one, or the only one.
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
    fn which_container() {
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
