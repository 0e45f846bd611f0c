//! The objects that rows read and write, and their paths.

use std::fmt::Write as _;

/// The size of a stored ConfigMap without its value, in bytes.
const CONFIG_MAP_BYTES: usize = 500;

/// A part of names that no object has.
pub const MISSING: &str = "missing-on-purpose";

/// The number of nodes that the pods are assigned to.
pub const NODES: usize = 100;

/// Returns the path of a namespace's pods.
pub fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

/// Returns the name of the seeded pod with this number.
pub fn pod_name(number: usize) -> String {
    format!("pod-{number:06}")
}

/// Returns the path of a namespace's ConfigMaps.
pub fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// Returns the JSON of a ConfigMap whose stored size, with managed fields, is about `bytes`.
pub fn config_map(number: usize, bytes: usize) -> String {
    let value = "x".repeat(bytes.saturating_sub(CONFIG_MAP_BYTES));
    format!(
        concat!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"map-{number:07}","#,
            r#""labels":{{"app":"app-{app}"}}}},"data":{{"value":"{value}"}}}}"#,
        ),
        number = number,
        app = number % 500,
        value = value,
    )
}

/// Returns the path of a namespace's leases.
pub fn leases(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

/// Returns the JSON of a pod whose stored size, with defaults and managed fields, is about 11 KB. Like pods of real
/// clusters, it has labels, annotations, many environment variables, probes and volumes.
pub fn pod(name: &str, number: usize) -> String {
    let node = number % NODES;
    let mut environment = String::new();
    for n in 0..ENVIRONMENT_VARIABLES {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(environment, r#"{comma}{{"name":"SETTING_{n:02}","value":"{VALUE}{n:02}"}}"#);
    }
    let probe = r#"{"httpGet":{"path":"/healthz","port":8080},"initialDelaySeconds":5,"periodSeconds":10}"#;
    format!(
        concat!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","#,
            r#""labels":{{"app":"app-{app}","tier":"tier-{tier}","pod-template-hash":"5d9c7b8f6{tier}"}},"#,
            r#""annotations":{{"example.com/checksum":"{value}{value}","example.com/notes":"{value}{value}{value}"}}}},"#,
            r#""spec":{{"nodeName":"node-{node}","automountServiceAccountToken":false,"#,
            r#""containers":[{{"name":"main","image":"registry.example.com/team/app:{tier}","#,
            r#""env":[{environment}],"ports":[{{"containerPort":8080,"name":"http"}}],"#,
            r#""readinessProbe":{probe},"livenessProbe":{probe},"#,
            r#""resources":{{"requests":{{"cpu":"100m","memory":"128Mi"}},"limits":{{"cpu":"1","memory":"256Mi"}}}},"#,
            r#""volumeMounts":[{{"name":"data","mountPath":"/data"}},{{"name":"config","mountPath":"/etc/app"}}]}}],"#,
            r#""volumes":[{{"name":"data","emptyDir":{{}}}},{{"name":"config","configMap":{{"name":"app-{app}"}}}}]}}}}"#,
        ),
        name = name,
        app = number % 500,
        tier = number % 10,
        node = node,
        value = VALUE,
        environment = environment,
        probe = probe,
    )
}

const ENVIRONMENT_VARIABLES: usize = 45;

const VALUE: &str = "abcdefghijklmnopqrstuvwxyz0123456789-abcdefghijklmnopqrstuvwxyz";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_json_of_the_intended_size() {
        let text = pod(&pod_name(7), 7);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["metadata"]["name"], "pod-000007");
        assert_eq!(value["spec"]["containers"][0]["env"].as_array().unwrap().len(), ENVIRONMENT_VARIABLES);
        assert!((5_000..8_000).contains(&text.len()), "{}", text.len());
    }
}
