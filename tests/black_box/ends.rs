//! The embedded controllers, which finish deletions and count quotas where no kube-controller-manager runs.

use serde_json::{Value, json};

use crate::cluster::until;
use crate::support::{Connection, DataDir, Server};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CLASSES: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses";
const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const MERGE: &str = "application/merge-patch+json";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";

fn patch(client: &mut Connection, path: &str, change: &Value) -> Value {
    client.request("PATCH", path, MERGE, change.to_string().as_bytes()).expect(200)
}

fn start(directory: &DataDir) -> (Server, Connection) {
    let server = directory.start();
    let client = server.connect_for_pods();
    (server, client)
}

fn is_gone(client: &mut Connection, path: &str) -> bool {
    client.get(path).status == 404
}

fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "volumeAttributesClassName": "gold",
        "resources": {"requests": {"storage": "1Gi"}}}})
}

#[test]
fn unused_claims_volumes_and_classes_are_deleted() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    client
        .post(CLASSES, &json!({"metadata": {"name": "gold"}, "driverName": "d.e", "parameters": {"a": "b"}}))
        .expect(201);
    for name in ["used", "unused"] {
        client.post(CLAIMS, &claim(name)).expect(201);
    }
    let volume = json!({"metadata": {"name": "v"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}});
    client.post(VOLUMES, &volume).expect(201);
    patch(&mut client, &format!("{VOLUMES}/v/status"), &json!({"status": {"phase": "Bound"}}));
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "used"}}]}});
    client.post(PODS, &pod).expect(201);
    let (used, unused, bound) = (format!("{CLAIMS}/used"), format!("{CLAIMS}/unused"), format!("{VOLUMES}/v"));
    let class = format!("{CLASSES}/gold");
    for path in [&used, &unused, &bound, &class] {
        client.delete(path).expect(200);
    }
    until("the unused claim is gone", || is_gone(&mut client, &unused));
    for path in [&used, &bound, &class] {
        assert!(!is_gone(&mut client, path), "{path} is used");
    }
    client.request("DELETE", &format!("{PODS}/p?gracePeriodSeconds=0"), "application/json", b"").expect(200);
    patch(&mut client, &format!("{VOLUMES}/v/status"), &json!({"status": {"phase": "Released"}}));
    for path in [&used, &bound, &class] {
        until(path, || is_gone(&mut client, path));
    }
}

#[test]
fn service_cidrs_become_ready_and_are_deleted() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    client.post(RANGES, &json!({"metadata": {"name": "more"}, "spec": {"cidrs": ["192.0.2.0/28"]}})).expect(201);
    let path = format!("{RANGES}/more");
    let has_condition = |client: &mut Connection, status: &str| {
        let range = client.get(&path).json();
        range["status"]["conditions"][0]["status"] == status && range["metadata"]["finalizers"].is_array()
    };
    until("the range is ready", || has_condition(&mut client, "True"));
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"clusterIP": "192.0.2.5", "ports": [{"port": 80}]}});
    client.post(services, &service).expect(201);
    client.delete(&path).expect(200);
    until("the range is not ready because it is in use", || has_condition(&mut client, "False"));
    client.delete(&format!("{services}/s")).expect(200);
    until("the range is gone", || is_gone(&mut client, &path));
}

#[test]
fn quotas_are_counted_at_first_and_after_deletions() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    for name in ["a", "b"] {
        client.post(MAPS, &json!({"metadata": {"name": name}})).expect(201);
    }
    let hard = json!({"count/configmaps": "4", "pods": "5", "requests.cpu": "1", "count/widgets.example.com": "3"});
    client.post(QUOTAS, &json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).expect(201);
    let path = format!("{QUOTAS}/q");
    let counts =
        |client: &mut Connection, name: &str, used: &str| client.get(&path).json()["status"]["used"][name] == used;
    until("objects are counted", || counts(&mut client, "count/configmaps", "3")); // with the root certificate
    client.post(MAPS, &json!({"metadata": {"name": "c"}})).expect(201);
    // A new object is charged at once. A count that the controller has just begun may still miss it, and the next one
    // does not.
    until("the new object is counted", || counts(&mut client, "count/configmaps", "4"));
    assert_eq!(client.post(MAPS, &json!({"metadata": {"name": "d"}})).status, 403);
    for name in ["a", "b"] {
        client.delete(&format!("{MAPS}/{name}")).expect(200);
    }
    until("deleted objects are not counted any more", || counts(&mut client, "count/configmaps", "2"));
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "600m"}}});
    client.post(PODS, &json!({"metadata": {"name": "p"}, "spec": {"containers": [container.clone()]}})).expect(201);
    patch(&mut client, &format!("{PODS}/p/status"), &json!({"status": {"phase": "Succeeded"}}));
    until("ended pods are not counted any more", || counts(&mut client, "requests.cpu", "0"));
    client.post(PODS, &json!({"metadata": {"name": "q"}, "spec": {"containers": [container]}})).expect(201);
    // The controller copies changed limits to the status when it has counted.
    patch(&mut client, &path, &json!({"spec": {"hard": {"pods": "9", "services": "1"}}}));
    until("the status has the new limits", || {
        let status = client.get(&path).json()["status"].clone();
        status["hard"]["pods"] == "9" && status["used"]["services"] == "1" && status["used"]["pods"] == "1"
    });
}

#[test]
fn expired_tokens_and_requests_are_deleted() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let encode = |text: &str| base64(text.as_bytes());
    let token = |name: &str, end: &str| {
        json!({"metadata": {"name": name}, "type": "bootstrap.kubernetes.io/token",
            "data": {"token-id": encode("abcdef"), "expiration": encode(end)}})
    };
    client.post(SECRETS, &token("bootstrap-token-abcdef", "2020-01-01T00:00:00Z")).expect(201);
    client.post(SECRETS, &token("bootstrap-token-ghijkl", "2120-01-01T00:00:00Z")).expect(201);
    for name in ["denied", "pending"] {
        let request = json!({"metadata": {"name": name}, "spec": {
            "signerName": "example.com/x", "usages": ["client auth"], "request": encode(REQUEST)}});
        client.post(REQUESTS, &request).expect(201);
    }
    let mut denied = client.get(&format!("{REQUESTS}/denied")).expect(200);
    denied["status"]["conditions"] =
        json!([{"type": "Denied", "status": "True", "reason": "r", "lastUpdateTime": "2020-01-01T00:00:00Z"}]);
    client.put(&format!("{REQUESTS}/denied/approval"), &denied).expect(200);
    let (token, request) = (format!("{SECRETS}/bootstrap-token-abcdef"), format!("{REQUESTS}/denied"));
    until("the token is gone", || is_gone(&mut client, &token));
    until("the request is gone", || is_gone(&mut client, &request));
    client.get(&format!("{SECRETS}/bootstrap-token-ghijkl")).expect(200);
    client.get(&format!("{REQUESTS}/pending")).expect(200);
}

#[test]
fn expired_events_are_removed_in_spite_of_finalizers() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--event-ttl-seconds=1", "--embedded-controllers=false"]);
    let mut client = server.connect();
    let event = |name: &str| {
        json!({"metadata": {"name": name, "finalizers": ["example.com/f"]},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, "reason": "Tested"})
    };
    let created = client.post(EVENTS, &event("a")).expect(201);
    let since = created["metadata"]["resourceVersion"].as_str().expect("a revision");
    let path = format!("{EVENTS}?watch=1&resourceVersion={since}");
    let mut watch = server.connect().watch(&path).expect("a connection").expect("a watch");
    until("the event is gone", || is_gone(&mut client, &format!("{EVENTS}/a")));
    let deleted = watch.next().expect("an event of the watch");
    assert_eq!((&deleted["type"], &deleted["object"]["metadata"]["name"]), (&json!("DELETED"), &json!("a")));
    client.post(EVENTS, &event("b")).expect(201);
    until("a later one is removed, too", || is_gone(&mut client, &format!("{EVENTS}/b")));
}

#[test]
fn without_embedded_controllers_nothing_is_deleted_or_counted() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--embedded-controllers=false"]);
    let mut client = server.connect();
    client.post(CLAIMS, &claim("a")).expect(201);
    client.delete(&format!("{CLAIMS}/a")).expect(200);
    client.post(QUOTAS, &json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}}})).expect(201);
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert!(!is_gone(&mut client, &format!("{CLAIMS}/a")));
    assert!(client.get(&format!("{QUOTAS}/q")).json()["status"]["used"].is_null());
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A certificate request, for a key that was thrown away.
const REQUEST: &str = include_str!("request.pem");
