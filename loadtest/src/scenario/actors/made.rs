//! The objects that actors create, and their deletion.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hyper::Method;
use serde_json::{Value, json};

use super::node_name;
use crate::connection::{Call, Connector, Error};
use crate::limits;
use crate::scenario::mark::{ANNOTATION, Mark};
use crate::scenario::run::Run;
use crate::seed;

/// The label of objects without a namespace. Its value is the scenario's namespace.
const LABEL: &str = "loadtest";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The API group of the harness's custom resources.
pub const GROUP: &str = "scenario.loadtest.example.com";

/// Formats a time as `metav1.MicroTime`: RFC 3339 with microseconds.
pub fn micro_time(unix_micros: u64) -> String {
    let (seconds, micros) = (unix_micros / 1_000_000, unix_micros % 1_000_000);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Converts days since 1970 to a date. Years start in March, so that leap days come last (Howard Hinnant's
    // civil_from_days).
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Formats the present time as `metav1.Time`: RFC 3339 with seconds.
pub fn time() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    micro_time(now.as_secs() * 1_000_000).replace(".000000Z", "Z")
}

/// Creates nodes from number 0 on. Leaves out those of other parts, and those that were created before.
pub async fn nodes(run: &Rc<Run>, count: usize) -> Result<(), Error> {
    let made = run.nodes.replace(count.max(run.nodes.get()));
    run.each(run.part.numbers(count).filter(|number| *number >= made), |number| async move {
        let body = node(&node_name(number), &run.namespace).to_string();
        run.must(&Call::with_json(Method::POST, "/api/v1/nodes", body), &[409]).await.map(drop)
    })
    .await
}

fn node(name: &str, namespace: &str) -> Value {
    let resources = json!({"cpu": "32", "memory": "131072000Ki", "pods": "110", "ephemeral-storage": "203056560Ki"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            LABEL: namespace, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        }},
        "status": {
            "capacity": resources, "allocatable": resources, "conditions": conditions(&time()),
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "nodeInfo": {
                "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "6.1.0", "osImage": "Debian GNU/Linux",
                "containerRuntimeVersion": "containerd://2.1.0", "kubeletVersion": "v1.36.3", "kubeProxyVersion": "",
                "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    })
}

/// Returns the conditions that a kubelet reports of a healthy node.
pub fn conditions(now: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": "as a kubelet would say it",
            "lastHeartbeatTime": now, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!([
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        condition("Ready", "True", "KubeletReady"),
    ])
}

/// Returns a pod of about 3 KB that is not bound to a node.
pub fn pod(name: &str, mark: &Mark) -> Value {
    let environment: Vec<Value> =
        (0..12).map(|n| json!({"name": format!("SETTING_{n:02}"), "value": "abcdefghijklmnopqrstuvwxyz"})).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "labels": {"app": "loadtest", "pod-template-hash": "5d9c7b8f6"},
            "annotations": {ANNOTATION: mark.text()},
        },
        "spec": {
            "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main", "image": "registry.example.com/team/app:1", "env": environment,
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
            }],
        },
    })
}

/// Returns the status of a running pod.
pub fn running(now: &str) -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    let kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    json!({"status": {
        "phase": "Running", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}], "hostIP": "10.0.0.1", "startTime": now,
        "conditions": kinds.map(condition),
        "containerStatuses": [{
            "name": "main", "ready": true, "started": true, "restartCount": 0, "image": "registry.example.com/team/app:1",
            "imageID": "sha256:0123", "containerID": "containerd://0123", "state": {"running": {"startedAt": now}},
        }],
    }})
}

/// Returns a ConfigMap that contains a text.
pub fn config_map(name: &str, mark: &Mark, payload: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "annotations": {ANNOTATION: mark.text()}}, "data": {"payload": payload},
    })
}

/// Returns a Deployment that no controller acts on.
pub fn deployment(name: &str, mark: &Mark) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": labels, "annotations": {ANNOTATION: mark.text()}},
        "spec": {
            "replicas": 0, "paused": true, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [
                    {"name": "main", "image": "registry.example.com/team/app:1", "ports": [{"containerPort": 8080}]},
                    {"name": "side", "image": "registry.example.com/team/side:1", "env": [{"name": "A", "value": "b"}]},
                ]},
            },
        },
    })
}

/// Returns an event about a pod.
pub fn event(name: &str, namespace: &str, mark: &Mark) -> Value {
    let now = time();
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "annotations": {ANNOTATION: mark.text()}},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "loadtest", "namespace": namespace},
        "reason": "Scheduled", "message": "assigned to a node by the load harness", "type": "Normal", "count": 1,
        "source": {"component": "loadtest"}, "firstTimestamp": now, "lastTimestamp": now,
    })
}

/// Returns an object of one of the harness's custom resources.
pub fn custom(kind: &str, name: &str, mark: &Mark) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": {"name": name, "annotations": {ANNOTATION: mark.text()}},
        "spec": {"image": "registry.example.com/sandbox:1", "cpus": 2, "labels": {"team": "a"}},
    })
}

/// Returns a definition of a custom resource with a status.
pub fn definition(plural: &str, kind: &str, namespace: &str) -> Value {
    let text = json!({"type": "string", "maxLength": 253});
    let spec = json!({"type": "object", "required": ["image"], "properties": {
        "image": text, "cpus": {"type": "integer", "minimum": 1},
        "labels": {"type": "object", "maxProperties": 16, "additionalProperties": text},
    }});
    let status = json!({"type": "object", "properties": {"phase": text, "pod": text}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}"), "labels": {LABEL: namespace}},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema,
                "subresources": {"status": {}}}],
        },
    })
}

/// Creates the definition of a custom resource, and waits until the server serves it.
pub async fn define(run: &Run, plural: &str, kind: &str) -> Result<(), Error> {
    let body = definition(plural, kind, &run.namespace).to_string();
    run.must(&Call::with_json(Method::POST, DEFINITIONS, body), &[409]).await?;
    let list = Call::get(format!("/apis/{GROUP}/v1/{plural}?limit=1"));
    let start = Instant::now();
    while !run.must(&list, &[404]).await?.status.is_success() {
        if start.elapsed() > limits::DEFINITION_WAIT {
            return Err(Error::Timeout);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Deletes all objects that scenarios created for a namespace, and waits until they are gone.
pub async fn clean(connector: &Arc<Connector>, namespace: &str) -> Result<(), Error> {
    let mut client = connector.open().await?;
    let selector = format!("labelSelector={LABEL}%3D{namespace}");
    for path in [DEFINITIONS, "/api/v1/nodes"] {
        let delete = Call { method: Method::DELETE, ..Call::get(format!("{path}?{selector}")) };
        client.must(&delete, &[404]).await?;
    }
    seed::clean(namespace, connector).await?;
    let (start, get) = (Instant::now(), Call::get(format!("/api/v1/namespaces/{namespace}")));
    while client.must(&get, &[404]).await?.status.is_success() {
        if start.elapsed() > limits::CLEAN_WAIT {
            return Err(Error::Timeout);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_form_of_kubernetes() {
        for (unix_micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_001, "2000-02-29T00:00:00.000001Z"),
            (1_709_251_199_999_999, "2024-02-29T23:59:59.999999Z"),
            (4_102_444_800_000_000, "2100-01-01T00:00:00.000000Z"),
        ] {
            assert_eq!(micro_time(unix_micros), text);
        }
    }
}
