//! Requests that are wrong, too large, or meant to exhaust the server: the server refuses each with the API's message,
//! and continues to serve on the same or the next connection.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, CONFIG_MAPS, Connection, DataDir, Server, config_map, config_map_path};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
/// The limit of request bodies in Kubernetes: 3 MiB.
const BODY_BYTES_MAX: usize = 3 << 20;
/// How long a refusal may take for a body of any kind, even on a busy machine.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(60);
/// How much memory a refusal may take, in bytes: several times the body's size.
const REFUSAL_BYTES_MAX: u64 = 256 << 20;

/// Checks that an answer is a `Status` with this code and reason.
fn refused(answer: &Answer, status: u16, reason: &str) -> Value {
    let body = answer.expect(status);
    assert_eq!((&body["kind"], &body["code"]), (&json!("Status"), &json!(status)), "{body}");
    assert_eq!(body["reason"], reason, "{body}");
    body
}

fn start(directory: &DataDir) -> (Server, Connection) {
    let server = directory.start();
    let mut client = server.connect_for_pods();
    client.post(CONFIG_MAPS, &config_map("one", "1")).expect(201);
    (server, client)
}

/// Checks that the server serves requests, and still has its object.
fn still_serves(server: &Server) {
    let list = server.connect().get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Done")).expect(200);
    assert_eq!(list["items"][0]["data"], json!({"value": "1"}), "{list}");
}

#[test]
fn unknown_methods_and_media_types() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    let path = config_map_path("one");
    refused(&client.post(&path, &config_map("one", "1")), 405, "MethodNotAllowed");
    refused(&client.put(CONFIG_MAPS, &config_map("one", "1")), 405, "MethodNotAllowed");
    refused(&client.request("FROB", CONFIG_MAPS, JSON, b""), 405, "MethodNotAllowed");
    refused(&client.request("POST", CONFIG_MAPS, "text/plain", b"x"), 415, "UnsupportedMediaType");
    refused(&client.request("PATCH", &path, JSON, b"{}"), 415, "UnsupportedMediaType");
    let answer = client.call("GET", &path, &[("Accept", "text/html")], b"").expect("an answer");
    refused(&answer, 406, "NotAcceptable");
    let answer = client.call("DELETE", &path, &[("Accept", "text/html")], b"").expect("an answer");
    refused(&answer, 406, "NotAcceptable");
    refused(&client.request("POST", CONFIG_MAPS, "application/json;charset", b"{}"), 415, "UnsupportedMediaType");
    let table = [("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    for (untabled, body) in
        [("/api/v1/namespaces/default/pods/p/resize", ""), ("/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}")]
    {
        let method = if body.is_empty() { "GET" } else { "POST" };
        let answer = client.call(method, untabled, &table, body.as_bytes()).expect("an answer");
        refused(&answer, 406, "NotAcceptable");
    }
    still_serves(&server);
}

#[test]
fn unknown_groups_and_kinds() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    for path in ["/api/v1/namespaces/default/nothings", "/api/v1/nothings/x", "/apis/apps/v9/deployments", "/api/v9"] {
        refused(&client.get(path), 404, "NotFound");
        refused(&client.post(path, &json!({"metadata": {"name": "x"}})), 404, "NotFound");
    }
    // A group that is not served has no version that could answer with a `Status`.
    let nowhere = client.get("/apis/none.example/v1/nothings");
    assert_eq!((nowhere.status, &*nowhere.text()), (404, "404 page not found\n"));
    let escaped = client.get("/api/v1/namespaces/%zz");
    assert_eq!((escaped.status, &*escaped.text()), (400, "400 Bad Request"));
    for (kind, version) in [("Nothing", "v1"), ("ConfigMap", "v9"), ("ConfigMap", "none.example/v1")] {
        let object = json!({"kind": kind, "apiVersion": version, "metadata": {"name": "x"}});
        refused(&client.post(CONFIG_MAPS, &object), 400, "BadRequest");
    }
    still_serves(&server);
}

#[test]
fn patches_that_state_a_kind() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    let path = config_map_path("one");
    let other = br#"{"kind":"Pod"}"#;
    let merge = refused(&client.request("PATCH", &path, "application/merge-patch+json", other), 422, "Invalid");
    let message = merge["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("converting (v1.Pod) to (core.ConfigMap): unknown conversion"), "{message}");
    let strategic = client.request("PATCH", &path, "application/strategic-merge-patch+json", other).expect(200);
    assert_eq!(strategic["kind"], "ConfigMap");
    let apply = config_map_path("two?fieldManager=tests");
    let nameless = br#"{"apiVersion":"v1","kind":"ConfigMap"}"#;
    refused(&client.request("PATCH", &apply, "application/apply-patch+yaml", nameless), 400, "BadRequest");
    still_serves(&server);
}

#[test]
fn bodies_that_cannot_be_read() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    let bodies: [(&str, &[u8]); 9] = [
        (JSON, b"{"),
        (JSON, b"\xff\xfe{}"),
        (JSON, br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":7}}"#),
        (JSON, br#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}"#),
        (YAML, b"a: [1"),
        (YAML, b"a: 'open"),
        ("application/vnd.kubernetes.protobuf", b"k8s\0\xff\xff\xff\xff\xff"),
        ("application/vnd.kubernetes.protobuf", b"not protobuf"),
        ("application/vnd.kubernetes.protobuf", b""),
    ];
    for (media, body) in bodies {
        let answer = client.request("POST", CONFIG_MAPS, media, body);
        assert_eq!(refused(&answer, 400, "BadRequest")["status"], "Failure", "{media}");
    }
    for patch in ["application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"] {
        let answer = client.request("PATCH", &config_map_path("one?fieldManager=tests"), patch, b"[{");
        refused(&answer, 400, "BadRequest");
    }
    still_serves(&server);
}

#[test]
fn fields_of_the_wrong_type() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    let pods = "/api/v1/namespaces/default/pods";
    for (path, object, part) in [
        (CONFIG_MAPS, json!({"metadata": {"name": 7}}), "cannot unmarshal number"),
        (CONFIG_MAPS, json!({"metadata": {"name": "x"}, "data": []}), "cannot unmarshal array"),
        (CONFIG_MAPS, json!({"metadata": {"name": "x"}, "data": {"a": true}}), "cannot unmarshal bool"),
        (CONFIG_MAPS, json!({"metadata": "x"}), "cannot unmarshal string"),
        (pods, json!({"metadata": {"name": "x"}, "spec": {"containers": {}}}), "cannot unmarshal object"),
        (pods, json!({"metadata": {"name": "x"}, "spec": {"priority": 3_000_000_000_u32}}), "cannot unmarshal number"),
        (pods, json!({"metadata": {"name": "x", "creationTimestamp": "now"}}), "cannot parse"),
    ] {
        let refusal = refused(&client.post(path, &object), 400, "BadRequest");
        assert!(refusal["message"].as_str().is_some_and(|text| text.contains(part)), "{object}: {refusal}");
    }
    still_serves(&server);
}

#[test]
fn required_fields_that_are_missing() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    let named = json!({"name": "x"});
    for (path, object, fields) in [
        (CONFIG_MAPS, json!({}), &["metadata.name"][..]),
        ("/api/v1/namespaces/default/pods", json!({"metadata": named, "spec": {}}), &["spec.containers"]),
        (
            "/api/v1/namespaces/default/pods",
            json!({"metadata": named, "spec": {"containers": [{}]}}),
            &["spec.containers[0].name", "spec.containers[0].image"],
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": named}),
            &["spec.selector", "spec.template.spec.containers"],
        ),
        ("/apis/storage.k8s.io/v1/storageclasses", json!({"metadata": named}), &["provisioner"]),
    ] {
        let refusal = refused(&client.post(path, &object), 422, "Invalid");
        let causes = refusal["details"]["causes"].as_array().expect("causes");
        for field in fields {
            let is_missing = |cause: &Value| cause["field"] == *field && cause["reason"] == "FieldValueRequired";
            assert!(causes.iter().any(is_missing), "{field}: {refusal}");
        }
    }
    still_serves(&server);
}

#[test]
fn updates_of_objects_that_have_changed() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    let path = config_map_path("two");
    let before = client.post(CONFIG_MAPS, &config_map("two", "1")).expect(201);
    client.put(&path, &config_map("two", "2")).expect(200);
    refused(&client.put(&path, &before), 409, "Conflict");
    let version = json!({"metadata": {"resourceVersion": before["metadata"]["resourceVersion"]}});
    for patch in ["application/merge-patch+json", "application/strategic-merge-patch+json"] {
        refused(&client.request("PATCH", &path, patch, version.to_string().as_bytes()), 409, "Conflict");
    }
    let condition = json!({"preconditions": version["metadata"]}).to_string();
    refused(&client.request("DELETE", &path, JSON, condition.as_bytes()), 409, "Conflict");
    assert_eq!(client.get(&path).expect(200)["data"], json!({"value": "2"}));
    still_serves(&server);
}

#[test]
fn objects_with_the_wrong_name_or_namespace() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    let elsewhere = json!({"metadata": {"name": "two", "namespace": "kube-system"}});
    let refusal = refused(&client.post(CONFIG_MAPS, &elsewhere), 400, "BadRequest");
    let why = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!(refusal["message"], why);
    let refusal = refused(&client.put(&config_map_path("one"), &config_map("other", "2")), 400, "BadRequest");
    let why = "the name of the object (other) does not match the name on the URL (one)";
    assert_eq!(refusal["message"], why);
    assert_eq!(client.get("/api/v1/namespaces/kube-system/configmaps/two").status, 404);
    still_serves(&server);
}

#[test]
fn invalid_names_and_labels() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    for (metadata, field) in [
        (json!({"name": "Upper_Case"}), "metadata.name"),
        (json!({"name": "n".repeat(254)}), "metadata.name"),
        (json!({"generateName": "-"}), "metadata.generateName"),
        (json!({"name": "two", "labels": {"a b": "c"}}), "metadata.labels"),
        (json!({"name": "two", "labels": {"a": "-"}}), "metadata.labels"),
        (json!({"name": "two", "annotations": {"a/b/c": ""}}), "metadata.annotations"),
    ] {
        let refusal = refused(&client.post(CONFIG_MAPS, &json!({"metadata": metadata})), 422, "Invalid");
        let causes = refusal["details"]["causes"].as_array().expect("causes");
        assert!(causes.iter().any(|cause| cause["field"] == field), "{field}: {refusal}");
    }
    still_serves(&server);
}

#[test]
fn unknown_and_repeated_fields_when_validation_is_strict() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let unknown = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"},"datum":{}}"#;
    let status = refused(&client.request("POST", &strict, JSON, unknown), 400, "BadRequest");
    assert!(status["message"].as_str().is_some_and(|text| text.contains(r#"unknown field "datum""#)), "{status}");
    let repeated = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"},"data":{"a":"1","a":"2"}}"#;
    let status = refused(&client.request("POST", &strict, JSON, repeated), 400, "BadRequest");
    assert!(status["message"].as_str().is_some_and(|text| text.contains(r#"duplicate field "data.a""#)), "{status}");
    // Without strict validation, unknown and repeated fields cause warnings.
    let answer = client.request("POST", CONFIG_MAPS, JSON, unknown);
    answer.expect(201);
    assert!(answer.headers.iter().any(|(name, text)| name == "warning" && text.contains("datum")), "{answer:?}");
    still_serves(&server);
}

#[test]
fn bodies_that_are_too_large() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    let mut body = config_map("large", "1").to_string().into_bytes();
    body.resize(BODY_BYTES_MAX + 1, b' ');
    refused(&client.request("POST", CONFIG_MAPS, JSON, &body), 413, "RequestEntityTooLarge");
    body.truncate(BODY_BYTES_MAX);
    client.request("POST", CONFIG_MAPS, JSON, &body).expect(201);
    // An update reads the body before the options and the media type.
    body.push(b' ');
    let path = format!("{}?fieldValidation=none", config_map_path("large"));
    refused(&client.request("PUT", &path, "text/plain", &body), 413, "RequestEntityTooLarge");

    let operations = |count: usize| json!(vec![json!({"op": "test", "path": "/data/value", "value": "1"}); count]);
    let path = config_map_path("one");
    let mut patch =
        |count| client.request("PATCH", &path, "application/json-patch+json", operations(count).to_string().as_bytes());
    refused(&patch(10_001), 413, "RequestEntityTooLarge");
    patch(10_000).expect(200);
    still_serves(&server);
}

#[test]
fn bodies_meant_to_exhaust_the_server() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    let deep = |open: &str, close: &str| {
        let depth = 1_000_000;
        format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{}{}}}"#, open.repeat(depth), close.repeat(depth))
    };
    let mut bomb =
        String::from("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bomb\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..30 {
        let below = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [&*below; 10].join(",")));
    }
    let bodies = [
        (JSON, deep("[", "]")),
        (JSON, format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","data":{}"#, r#"{"a":"#.repeat(500_000))),
        (YAML, deep("[", "]")),
        (YAML, bomb),
    ];
    let before = server.resident_bytes();
    for (media, body) in bodies {
        let began = Instant::now();
        let answer = client.request("POST", CONFIG_MAPS, media, body.as_bytes());
        assert!(matches!(answer.status, 400 | 413), "{media}: {} {}", answer.status, answer.text());
        assert_eq!(answer.json()["kind"], "Status");
        assert!(began.elapsed() < REFUSAL_TIMEOUT, "{media}: {:?}", began.elapsed());
    }
    let peak = server.peak_resident_bytes();
    assert!(peak < before + REFUSAL_BYTES_MAX, "{before} to {peak} bytes");
    still_serves(&server);
}

#[test]
fn parameters_that_are_wrong() {
    let directory = DataDir::new();
    let (server, mut client) = start(&directory);
    let queries = [
        "labelSelector=a%20b%20c",
        "labelSelector=a%20in%20(",
        "fieldSelector=spec.none%3D1",
        "fieldSelector=metadata.name",
        "limit=many",
        "continue=nonsense",
        "resourceVersion=x",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact&resourceVersion=0",
    ];
    for query in queries {
        let answer = client.get(&format!("{CONFIG_MAPS}?{query}"));
        assert!(matches!(answer.status, 400 | 422), "{query}: {} {}", answer.status, answer.text());
        assert_eq!(answer.json()["kind"], "Status", "{query}");
    }
    let gone = client.get(&format!("{CONFIG_MAPS}?resourceVersion=1&resourceVersionMatch=Exact"));
    refused(&gone, 410, "Expired");
    let watch = server.connect().watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=1")).expect("an answer");
    match watch {
        Ok(mut events) => {
            let event = events.next().expect("an event");
            assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
        }
        Err(answer) => drop(refused(&answer, 410, "Expired")),
    }
    still_serves(&server);
}
