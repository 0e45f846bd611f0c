//! The server restores objects that every cluster must have, while it runs.

use serde_json::{Value, json};

use crate::cluster::until;
use crate::support::{Connection, DataDir, Server};

const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const RANGE: &str = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const MERGE: &str = "application/merge-patch+json";

fn patch(client: &mut Connection, path: &str, change: &Value) {
    client.request("PATCH", path, MERGE, change.to_string().as_bytes()).expect(200);
}

/// Deletes an object, and waits until another one of that name exists.
fn comes_back(client: &mut Connection, path: &str) {
    let uid = |client: &mut Connection| client.get(path).json()["metadata"]["uid"].clone();
    let first = uid(client);
    assert!(first.is_string(), "{path} does not exist");
    client.delete(path).expect(200);
    until(path, || {
        let now = uid(client);
        now.is_string() && now != first
    });
}

fn server(directory: &DataDir) -> (Server, Connection) {
    let server = directory.start_with(&["--embedded-controllers=false"]);
    let client = server.connect();
    (server, client)
}

#[test]
fn objects_of_every_cluster_are_restored() {
    let directory = DataDir::new();
    let (_server, mut client) = server(&directory);
    let mut lease = String::new();
    until("the server has its lease", || {
        let leases = client.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases").expect(200);
        lease = leases["items"][0]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        !lease.is_empty()
    });
    for path in [
        "/api/v1/namespaces/default/services/kubernetes",
        "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
        "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking",
        &format!("{FLOW}/flowschemas/exempt"),
        &format!("{FLOW}/flowschemas/service-accounts"),
        &format!("{FLOW}/prioritylevelconfigurations/catch-all"),
        &format!("{FLOW}/prioritylevelconfigurations/workload-low"),
        &format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}"),
    ] {
        comes_back(&mut client, path);
    }
}

#[test]
fn the_default_service_cidr_is_restored() {
    let directory = DataDir::new();
    let (_server, mut client) = server(&directory);
    comes_back(&mut client, RANGE);
    until("the range is ready", || client.get(RANGE).json()["status"]["conditions"][0]["status"] == "True");
    let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
    client.post(SERVICES, &service).expect(201);
}

#[test]
fn system_namespaces_are_restored() {
    let directory = DataDir::new();
    let server = directory.start();
    comes_back(&mut server.connect(), "/api/v1/namespaces/kube-node-lease");
}

#[test]
fn flow_control_follows_its_annotations() {
    let directory = DataDir::new();
    let (_server, mut client) = server(&directory);
    let precedence = |client: &mut Connection, name: &str| {
        client.get(&format!("{FLOW}/flowschemas/{name}")).expect(200)["spec"]["matchingPrecedence"].clone()
    };
    let schema = |name: &str| format!("{FLOW}/flowschemas/{name}");
    let (mandatory, suggested) = (precedence(&mut client, "catch-all"), precedence(&mut client, "global-default"));
    // A suggested object may be changed if its annotation says that it is not updated automatically. A mandatory one
    // may not, whatever its annotation says.
    let own = |value: &str| json!({"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": value}}});
    let other = json!({"spec": {"matchingPrecedence": 7777}});
    patch(&mut client, &schema("system-leader-election"), &own("false"));
    for name in ["system-leader-election", "global-default"] {
        patch(&mut client, &schema(name), &other);
    }
    patch(&mut client, &schema("catch-all"), &own("false"));
    until("the annotation of the mandatory one is restored", || {
        let annotations = client.get(&schema("catch-all")).expect(200)["metadata"]["annotations"].clone();
        annotations["apf.kubernetes.io/autoupdate-spec"] == "true"
    });
    assert_eq!(precedence(&mut client, "catch-all"), mandatory);
    until("the suggested one is restored", || precedence(&mut client, "global-default") == suggested);
    assert_eq!(precedence(&mut client, "system-leader-election"), 7777);
    let mut foreign = json!({"metadata": {"name": "foreign"}, "spec": {
        "priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 5000}});
    client.post(&format!("{FLOW}/flowschemas"), &foreign).expect(201);
    foreign["metadata"] = json!({"name": "claims", "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}});
    client.post(&format!("{FLOW}/flowschemas"), &foreign).expect(201);
    until("an object that only claims to be the server's is deleted", || client.get(&schema("claims")).status == 404);
    client.get(&schema("foreign")).expect(200);
}

#[test]
fn an_api_service_of_a_definition_is_restored() {
    let directory = DataDir::new();
    let (_server, mut client) = server(&directory);
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).expect(201);
    let path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com";
    until("the object exists", || client.get(path).status == 200);
    patch(&mut client, path, &json!({"spec": {"versionPriority": 7}}));
    until("the object is restored", || client.get(path).json()["spec"]["versionPriority"] == 100);
    comes_back(&mut client, path);
    // An APIService without the label belongs to the user, and stays as it is.
    patch(&mut client, path, &json!({"metadata": {"labels": null}, "spec": {"versionPriority": 8}}));
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(client.get(path).expect(200)["spec"]["versionPriority"], 8);
}
