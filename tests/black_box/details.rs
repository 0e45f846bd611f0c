//! Details of answers that differed from Kubernetes for some client; each test stands for a class of answers.

use serde_json::{Value, json};

use crate::cluster::until;
use crate::support::{Answer, CONFIG_MAPS, Connection, DataDir, Server};

const NAMESPACE: &str = "/api/v1/namespaces/default";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE: &str = "application/merge-patch+json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn start(directory: &DataDir) -> (Server, Connection) {
    let server = directory.start();
    let client = server.connect();
    (server, client)
}

fn patch(client: &mut Connection, path: &str, change: &Value) -> Answer {
    client.request("PATCH", path, MERGE, change.to_string().as_bytes())
}

/// Returns the message of a refusal with this status.
fn message(answer: &Answer, status: u16) -> String {
    answer.expect(status)["message"].as_str().expect("a message").to_owned()
}

fn template() -> Value {
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
    json!({"metadata": {"labels": {"app": "x"}}, "spec": spec})
}

#[test]
fn jobs_without_labels_have_those_of_their_pods() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = |metadata: Value| json!({"metadata": metadata, "spec": {"template": template()}});
    for name in ["a", "b"] {
        client.post(jobs, &job(json!({"name": name}))).expect(201);
    }
    client.post(jobs, &job(json!({"name": "own", "labels": {"own": "y"}}))).expect(201);
    let found = client.get(&format!("{jobs}?labelSelector=job-name%3Da,app%3Dx")).expect(200);
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(client.get(&format!("{jobs}/own")).expect(200)["metadata"]["labels"], json!({"own": "y"}));
    let generated = client.post(jobs, &job(json!({"generateName": "g-"}))).expect(201);
    assert_eq!(generated["metadata"]["labels"], json!({"app": "x"}));
}

#[test]
fn annotations_of_an_autoscaler_are_validated() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let scalers = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    let scaler = |behavior: &str| {
        json!({"metadata": {"name": "a", "annotations": {"autoscaling.alpha.kubernetes.io/behavior": behavior}},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "D", "name": "d"}}})
    };
    let why = message(&client.post(scalers, &scaler(r#"{"ScaleDown":{"StabilizationWindowSeconds":7}}"#)), 422);
    assert!(
        why.ends_with("spec.behavior.scaleDown.policies: Required value: must specify at least one Policy"),
        "{why}"
    );
    let policies = r#"{"scaleUp":{"selectPolicy":"Max","policies":[{"type":"Pods","value":1,"periodSeconds":15}]}}"#;
    client.post(scalers, &scaler(policies)).expect(201);
    let shown = client.get(&format!("{}/a", scalers.replace("v1/", "v2/"))).expect(200);
    assert_eq!(shown["spec"]["behavior"]["scaleUp"]["stabilizationWindowSeconds"], 0);
    assert_eq!(shown["spec"]["behavior"]["scaleDown"]["selectPolicy"], "Max");
}

#[test]
fn times_bytes_and_revisions_are_parsed_as_in_go() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"},
        "firstTimestamp": "0001-01-01T00:00:00Z", "lastTimestamp": "2024-01-02T3:04:05,5Z"});
    let event = client.post(&format!("{NAMESPACE}/events"), &event).expect(201);
    assert_eq!((&event["firstTimestamp"], &event["lastTimestamp"]), (&Value::Null, &json!("2024-01-02T03:04:05Z")));
    let secret = json!({"metadata": {"name": "s"}, "data": {"a": [104, 105, null]}});
    let secret = client.post(&format!("{NAMESPACE}/secrets"), &secret).expect(201);
    assert_eq!(secret["data"]["a"], "aGkA");
    let map = json!({"metadata": {"name": "m"}, "binaryData": {"a": [256]}});
    assert!(
        message(&client.post(CONFIG_MAPS, &map), 400)
            .ends_with("number 256 into Go struct field ConfigMap.binaryData of type uint8")
    );
    let named = |name: &str| json!({"metadata": {"name": name, "resourceVersion": "5"}});
    assert_eq!(
        message(&client.post(CONFIG_MAPS, &named("n")), 500),
        "resourceVersion should not be set on objects to be created"
    );
    assert!(message(&client.post(CONFIG_MAPS, &named("N_")), 422).contains("metadata.name: Invalid value"));
    let tried = client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &named("n")).expect(201);
    assert_eq!(tried["metadata"]["resourceVersion"], "5");
}

#[test]
fn collision_counts_cannot_be_decremented() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("Always");
    let spec = json!({"serviceName": "s", "selector": {"matchLabels": {"app": "x"}}, "template": template});
    for resource in ["statefulsets", "daemonsets", "deployments"] {
        let path = format!("/apis/apps/v1/namespaces/default/{resource}");
        client.post(&path, &json!({"metadata": {"name": "w"}, "spec": spec.clone()})).expect(201);
        let status = format!("{path}/w/status");
        patch(&mut client, &status, &json!({"status": {"collisionCount": 3}})).expect(200);
        for (count, shown) in [(json!(2), 2), (Value::Null, 0)] {
            let why = message(&patch(&mut client, &status, &json!({"status": {"collisionCount": count}})), 422);
            assert!(
                why.ends_with(&format!("status.collisionCount: Invalid value: {shown}: cannot be decremented")),
                "{why}"
            );
        }
    }
}

#[test]
fn refusals_have_the_messages_of_kubernetes() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let service = json!({"metadata": {"name": "s"}, "spec": {"clusterIP": "1.2.3.4", "ports": [{"port": 1}]}});
    let services = format!("{NAMESPACE}/services");
    let why = message(&client.post(&format!("{services}?dryRun=All"), &service), 422);
    assert!(
        why.ends_with("the provided IP (1.2.3.4) is not in the valid range. The range of valid IPs is 10.96.0.0/16"),
        "{why}"
    );
    assert!(message(&client.post(&services, &service), 422).ends_with("does not match the current range"));
    let log = |client: &mut Connection, query: &str| client.get(&format!("{NAMESPACE}/pods/none/log?{query}"));
    assert!(message(&log(&mut client, "tailLines=-1"), 422).starts_with("PodLogOptions \"none\" is invalid"));
    assert!(message(&log(&mut client, "sinceTime=x"), 400).starts_with("parsing time \"x\""));
    client.post(CONFIG_MAPS, &json!({"metadata": {"name": "m"}})).expect(201);
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": "1"}});
    let path = format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dm");
    client.request("DELETE", &path, "application/json", options.to_string().as_bytes()).expect(409);
    client.post("/api/v1/namespaces", &json!({"metadata": {"name": "going"}})).expect(201);
    let held = json!({"metadata": {"name": "held", "finalizers": ["a.b/c"]}});
    client.post("/api/v1/namespaces/going/serviceaccounts", &held).expect(201);
    client.delete("/api/v1/namespaces/going").expect(200);
    let token = client.post("/api/v1/namespaces/going/serviceaccounts/held/token", &json!({"spec": {}}));
    assert!(message(&token, 403).starts_with("serviceaccounts \"held\" is forbidden: unable to create new content"));
}

#[test]
fn custom_resources_are_shown_and_described_as_they_are_defined() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let keys = json!({"type": "object", "properties": {"b": {"type": "string"}, "z": {"type": "string"}}, "x-kubernetes-map-type": "atomic"});
    let spec = json!({"type": "object", "required": ["set"], "properties": {
        "set": {"type": "array", "nullable": true, "x-kubernetes-list-type": "set", "items": keys},
        "name": {"type": "string"}}});
    let status =
        json!({"type": "object", "default": {}, "properties": {"phase": {"type": "string", "default": "New"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": ".spec.name"}],
        "additionalPrinterColumns": [{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}]});
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com",
        "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"}, "versions": [version]}});
    client.post(DEFINITIONS, &definition).expect(201);
    let things = "/apis/example.com/v1/things";
    until("things are served", || client.get(things).status == 200);
    let thing = |set: Value| json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"set": set}});
    let item = json!({"z": "1", "b": "2"});
    let why = message(&client.post(things, &thing(json!([item, item]))), 422);
    assert!(why.ends_with(r#"spec.set[1]: Duplicate value: {"b":"2","z":"1"}"#), "{why}");
    client.post(things, &thing(json!([item]))).expect(201);
    let other = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}).to_string();
    let path = format!("{DEFINITIONS}/things.example.com");
    let why = message(&client.request("DELETE", &path, "application/json", other.as_bytes()), 409);
    assert!(
        why.contains("\"things.example.com\": Precondition failed: UID in precondition: other, UID in object"),
        "{why}"
    );
    let table = client.call("GET", things, &[("Accept", TABLE)], b"").expect("an answer").expect(200);
    assert_eq!(table["rows"][0]["cells"], json!(["a", "New"]));
    let fields = json!([{"fieldPath": "spec.name"}]);
    let document = "/openapi/v3/apis/example.com/v1";
    until("they are described", || client.get(document).status == 200);
    let published = client.get(document).expect(200);
    let published = &published["components"]["schemas"]["com.example.v1.Thing"];
    assert_eq!(published["x-kubernetes-selectable-fields"], fields);
    assert_eq!(published["properties"]["spec"]["required"], json!(["set"]));
    let second = client.get("/openapi/v2").expect(200);
    let second = &second["definitions"]["com.example.v1.Thing"];
    assert_eq!(second["x-kubernetes-selectable-fields"], fields);
    assert_eq!(second["properties"]["spec"]["required"], Value::Null, "the field may be null");
    assert_eq!(second["properties"]["spec"]["properties"]["set"], json!({"x-kubernetes-list-type": "set"}));
}

/// Asks for devices of a class.
fn devices(name: &str, exactly: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}})
}

#[test]
fn claims_of_devices_are_charged_by_their_class() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let hard = json!({"gpu.deviceclass.resource.k8s.io/devices": "5", "count/resourceclaims.resource.k8s.io": "9"});
    client.post(&format!("{NAMESPACE}/resourcequotas"), &json!({"metadata": {"name": "q"}, "spec": {"hard": hard}}));
    let path = format!("{NAMESPACE}/resourcequotas/q");
    let used = |client: &mut Connection| client.get(&path).expect(200)["status"]["used"].clone();
    let of_class = "gpu.deviceclass.resource.k8s.io/devices";
    until("the quota is counted", || used(&mut client)[of_class] == "0");
    client.post(claims, &devices("three", &json!({"deviceClassName": "gpu", "count": 3}))).expect(201);
    client.post(claims, &devices("other", &json!({"deviceClassName": "nic", "count": 9}))).expect(201);
    let alternatives =
        json!([{"name": "a", "deviceClassName": "nic"}, {"name": "b", "deviceClassName": "gpu", "count": 2}]);
    let either = json!({"metadata": {"name": "either"},
        "spec": {"devices": {"requests": [{"name": "r", "firstAvailable": alternatives}]}}});
    client.post(claims, &either).expect(201);
    let charged = json!({of_class: "5", "count/resourceclaims.resource.k8s.io": "3"});
    // A count that the controller has just begun may miss the last claims, and the next one does not.
    until("the claims are charged", || used(&mut client) == charged);
    let one = devices("one", &json!({"deviceClassName": "gpu"}));
    let why = message(&client.post(claims, &one), 403);
    assert!(why.ends_with(&format!("requested: {of_class}=1, used: {of_class}=5, limited: {of_class}=5")), "{why}");
    let all = devices("all", &json!({"deviceClassName": "gpu", "allocationMode": "All"}));
    assert!(message(&client.post(claims, &all), 403).contains(&format!("requested: {of_class}=32")));
    client.delete(&format!("{claims}/three")).expect(200);
    until("what is gone does not count", || used(&mut client)[of_class] == "2");
    client.post(claims, &one).expect(201);
}

#[test]
fn administrative_access_to_devices_needs_a_label_of_the_namespace() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let group = "/apis/resource.k8s.io/v1/namespaces/default";
    let asks = json!({"deviceClassName": "gpu", "adminAccess": true});
    let template = json!({"metadata": {"name": "t"}, "spec": {"spec": devices("", &asks)["spec"]}});
    let claims = format!("{group}/resourceclaims");
    let places = [(claims.clone(), devices("c", &asks)), (format!("{group}/resourceclaimtemplates"), template)];
    for (path, object) in &places {
        let why = message(&client.post(path, object), 422);
        let field = "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the";
        let label = "`resource.kubernetes.io/admin-access: true` label on the containing namespace";
        assert!(why.ends_with(&format!("{field} {label}")), "{why}");
    }
    client.post(&claims, &devices("plain", &json!({"deviceClassName": "gpu", "adminAccess": false}))).expect(201);
    let granted = json!({"request": "r", "driver": "d.e", "pool": "p", "device": "d", "adminAccess": true});
    let status = json!({"status": {"allocation": {"devices": {"results": [granted]}}}});
    let plain = format!("{claims}/plain/status");
    let why = message(&patch(&mut client, &plain, &status), 422);
    assert!(why.contains("status.allocation.devices.results[0].adminAccess: Forbidden"), "{why}");
    let label = json!({"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}});
    patch(&mut client, NAMESPACE, &label).expect(200);
    for (path, object) in &places {
        client.post(path, object).expect(201);
    }
    patch(&mut client, &plain, &status).expect(200);
    let label = json!({"metadata": {"labels": {"resource.kubernetes.io/admin-access": null}}});
    patch(&mut client, NAMESPACE, &label).expect(200);
    patch(&mut client, &plain, &json!({"metadata": {"labels": {"a": "b"}}})).expect(200);
}

#[test]
fn empty_lists_are_shown_and_not_stored() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com",
        "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"}, "versions": []}});
    let why = message(&client.post(DEFINITIONS, &definition), 422);
    assert!(why.contains("spec.versions: Invalid value: []: must have exactly one version"), "{why}");
    assert!(why.contains("status.storedVersions: Invalid value: null: must have at least one"), "{why}");
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let made = client.post(roles, &json!({"metadata": {"name": "r"}, "rules": []})).expect(201);
    assert_eq!(made["rules"], Value::Null);
    let mut sent = made.clone();
    sent["rules"] = json!([]);
    assert_eq!(client.put(&format!("{roles}/r"), &sent).expect(200), made, "nothing was changed");
    let rule = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    patch(&mut client, &format!("{roles}/r"), &rule).expect(200);
    assert_eq!(patch(&mut client, &format!("{roles}/r"), &json!({"rules": []})).expect(200)["rules"], Value::Null);
}

#[test]
fn a_patch_is_read_in_the_version_that_it_states() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    let [first, second] =
        ["v1", "v2"].map(|version| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers"));
    let target = json!({"apiVersion": "apps/v1", "kind": "D", "name": "d"});
    let scaler = json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}});
    client.post(&first, &scaler).expect(201);
    let memory = json!({"type": "Resource",
        "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 7}}});
    let change = json!({"apiVersion": "autoscaling/v2", "spec": {"maxReplicas": 5, "metrics": [memory]}});
    let changed = patch(&mut client, &format!("{first}/a"), &change).expect(200);
    assert_eq!((&changed["apiVersion"], &changed["spec"]["maxReplicas"]), (&json!("autoscaling/v1"), &json!(5)));
    let shown = client.get(&format!("{second}/a")).expect(200);
    assert_eq!(shown["spec"]["metrics"], json!([memory]));
    for version in ["autoscaling/v3", "apps/v1"] {
        patch(&mut client, &format!("{first}/a"), &json!({"apiVersion": version})).expect(422);
    }
}

#[test]
fn repeated_members_of_a_json_patch_are_reported() {
    let directory = DataDir::new();
    let (_server, mut client) = start(&directory);
    client.post(CONFIG_MAPS, &json!({"metadata": {"name": "m"}})).expect(201);
    let body = br#"[{"op": "add", "op": "add", "path": "/data", "value": {"q": "0", "q": "1", "q": "<"}},
        {"op": "add", "path": "/x", "value": 1}]"#;
    let send = |client: &mut Connection, validation: &str| {
        let path = format!("{CONFIG_MAPS}/m?fieldValidation={validation}");
        client.request("PATCH", &path, "application/json-patch+json", body)
    };
    let why = message(&send(&mut client, "Strict"), 422);
    assert!(why.contains(r#"\"data\":{\"q\":\"0\",\"q\":\"1\",\"q\":\"\\u003c\"}"#), "{why}");
    let expected = r#"json patch duplicate field "[0].op", json patch duplicate field "[0].value.q", "#.to_owned()
        + r#"duplicate field "data.q", unknown field "x""#;
    assert!(why.ends_with(&format!("strict decoding error: {expected}")), "{why}");
    assert_eq!(send(&mut client, "Warn").expect(200)["data"], json!({"q": "<"}));
}
