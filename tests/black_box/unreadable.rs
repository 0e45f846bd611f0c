//! Stored objects that cannot be decoded: other objects are not affected, errors name the object, and an authorized
//! user can delete it.
//!
//! The tests make such objects by backups in which they replace a number by invalid characters.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::backup::{back_up, beside, restore};
use crate::cluster::cluster;
use crate::program::{errors, successful};
use crate::support::{
    CONFIG_MAPS, Connection, DataDir, PATIENCE, Server, Watch, config_map, config_map_path, revision,
};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Custom resources that keep unknown fields.
pub const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const ALL_WIDGETS: &str = "/apis/example.com/v1/widgets";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const UNSAFE: &str = r#"{"ignoreStoreReadErrorWithClusterBreakingPotential":true}"#;

/// A number in its stored form, and invalid characters of the same length.
const SOUND: &[u8] = b"1e+300";
const BROKEN: &[u8] = b"infe+0";

/// Defines widgets, which keep unknown fields and have a status.
pub fn define_widgets(client: &mut Connection) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}});
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    });
    client.post(DEFINITIONS, &definition).expect(201);
    until(|| client.get(WIDGETS).status == 200);
}

fn until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "the condition does not hold in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// CRC-32C (RFC 3720, appendix B.4).
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0x82f6_3b78 & 0_u32.wrapping_sub(sum & 1)))
    })
}

/// Replaces every [`SOUND`] number of a backup, and corrects the checksums.
fn poison(backup: &Path) {
    let mut bytes = fs::read(backup).expect("a backup");
    let mut at = 12; // after the signature and the version
    let mut poisoned = 0;
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
        let content = &mut bytes[at + 8..at + 8 + length];
        for start in 0..length.saturating_sub(SOUND.len()) {
            if content[start..].starts_with(SOUND) {
                content[start..start + BROKEN.len()].copy_from_slice(BROKEN);
                poisoned += 1;
            }
        }
        let sum = checksum(content).to_le_bytes();
        bytes[at + 4..at + 8].copy_from_slice(&sum);
        at += 8 + length;
    }
    assert!(poisoned > 0, "no number was replaced");
    fs::write(backup, bytes).expect("a backup");
}

fn widget(name: &str, number: f64) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": name, "labels": {"is": name}, "finalizers": ["example.com/held"]}, "n": number,
    })
}

fn controller_revision(name: &str, number: f64) -> Value {
    json!({"metadata": {"name": name, "labels": {"is": name}}, "revision": 1, "data": {"v": number}})
}

/// Starts a server on which the objects named `bad` cannot be decoded. Returns its directory, too.
fn poisoned(flags: &[&str]) -> (DataDir, Server) {
    let (first, second) = (DataDir::new(), DataDir::new());
    let server = first.start();
    let mut client = server.connect();
    define_widgets(&mut client);
    client.post("/api/v1/namespaces", &json!({"metadata": {"name": "ending"}})).expect(201);
    for (name, number) in [("bad", 1e300), ("good", 1.5)] {
        client.post(WIDGETS, &widget(name, number)).expect(201);
        client.post(&WIDGETS.replace("default", "ending"), &widget(name, number)).expect(201);
        client.post(REVISIONS, &controller_revision(name, number)).expect(201);
    }
    client.post(&CONFIG_MAPS.replace("default", "ending"), &config_map("there", "1")).expect(201);
    let backup = beside(&first, "backup");
    back_up(&server, &backup);
    server.kill();
    poison(&backup);
    let restored = restore(&backup, &second);
    assert!(restored.status.success(), "{}", errors(&restored));
    let server = second.start_with(flags);
    (second, server)
}

fn with(client: &mut Connection, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
    let answer = client.call(method, path, headers, body.as_bytes()).expect("an answer");
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

fn message(refusal: &Value) -> &str {
    refusal["message"].as_str().unwrap_or_default()
}

fn expect_unreadable(refusal: &Value) {
    assert_eq!((&refusal["reason"], &refusal["code"]), (&json!("InternalError"), &json!(500)), "{refusal}");
    for part in ["Internal error occurred: StorageError: corrupt object", "/bad", "object not decodable revision="] {
        assert!(message(refusal).contains(part), "{refusal}");
    }
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().into_iter().flatten().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

/// Returns the representations of a collection. Custom resources have no protobuf form.
fn forms(path: &str) -> &'static [&'static str] {
    const ALL: &[&str] = &["application/json", "application/yaml", TABLE, PROTOBUF];
    if path == WIDGETS { &ALL[..3] } else { ALL }
}

#[test]
fn an_unreadable_object_affects_no_other() {
    let (_directory, server) = poisoned(&[]);
    let mut client = server.connect();
    for path in [WIDGETS, REVISIONS] {
        let bad = format!("{path}/bad");
        for accept in forms(path) {
            let answer = client.call("GET", &bad, &[("Accept", accept)], b"").expect("an answer");
            assert_eq!(answer.status, 500, "{accept}: {}", answer.text());
        }
        expect_unreadable(&client.get(&bad).expect(500));
        expect_unreadable(&client.request("PATCH", &bad, "application/merge-patch+json", br#"{"x":1}"#).expect(500));
        expect_unreadable(&client.delete(&bad).expect(500));
        assert_eq!(client.get(&format!("{path}/good")).expect(200)["metadata"]["name"], "good");

        // A list that contains the object names it in its error. Other lists are not affected.
        for accept in forms(path) {
            for _ in 0..2 {
                let (status, refusal) = with(&mut client, "GET", path, &[("Accept", accept)], "");
                assert_eq!(status, 500, "{accept}: {refusal}");
            }
        }
        let refusal = client.get(path).expect(500);
        assert_eq!(refusal["reason"], "StorageReadError");
        assert!(message(&refusal).starts_with("failed to read one or more "), "{refusal}");
        let causes = refusal["details"]["causes"].as_array().expect("causes");
        assert_eq!(causes.len(), 1, "{refusal}");
        assert_eq!(causes[0]["reason"], "UnexpectedServerResponse");
        assert!(causes[0]["field"].as_str().is_some_and(|field| field.ends_with("/default/bad")), "{refusal}");
        for query in ["labelSelector=is%3Dgood", "fieldSelector=metadata.name%3Dgood", "labelSelector=is!%3Dbad"] {
            assert_eq!(names(&client.get(&format!("{path}?{query}")).expect(200)), ["good"]);
        }
        assert!(names(&client.get(&path.replace("default", "kube-system")).expect(200)).is_empty());
        // The metadata can be decoded.
        let (status, metadata) = with(&mut client, "GET", path, &[("Accept", METADATA)], "");
        assert_eq!((status, names(&metadata)), (200, vec!["bad", "good"]));
    }
    assert_eq!(client.get(ALL_WIDGETS).expect(500)["details"]["causes"].as_array().map(Vec::len), Some(2));
    client.post(WIDGETS, &widget("new", 1.0)).expect(201);
    let change = br#"{"n":2}"#;
    client.request("PATCH", &format!("{WIDGETS}/new"), "application/merge-patch+json", change).expect(200);
    assert_eq!(names(&client.get(&format!("{WIDGETS}?labelSelector=is%3Dnew")).expect(200)), ["new"]);

    let metrics = client.get("/metrics").text();
    let line = "flotilla_unreadable_objects_total{group=\"example.com\",resource=\"Widget\"} 2";
    assert!(metrics.contains(line), "{metrics}");
    let messages = server.messages();
    assert!(messages.contains("a stored object cannot be read") && messages.contains("/default/bad"), "{messages}");
}

#[test]
fn an_unreadable_object_is_counted_before_it_is_requested() {
    let (_directory, server) = poisoned(&[]);
    let mut client = server.connect();
    let line = "flotilla_unreadable_objects_total{group=\"apps\",resource=\"controllerrevisions\"} 1";
    until(|| client.get("/metrics").text().contains(line));
    assert_eq!(client.get(REVISIONS).expect(500)["reason"], "StorageReadError");
}

#[test]
fn an_administrator_can_delete_an_unreadable_object() {
    let (directory, server) = poisoned(&[]);
    let mut client = server.connect();
    let (bad, good) = (format!("{WIDGETS}/bad"), format!("{WIDGETS}/good"));
    let role = json!({
        "metadata": {"name": "deleter"},
        "rules": [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["delete", "get"]}],
    });
    let binding = json!({
        "metadata": {"name": "deleter"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "deleter"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    client.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).expect(201);
    client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).expect(201);
    let ann = [("Impersonate-User", "ann"), ("Content-Type", "application/json")];
    until(|| with(&mut client, "GET", &good, &ann, "").0 == 200);

    let (status, refusal) = with(&mut client, "DELETE", &bad, &ann, UNSAFE);
    let why =
        "widgets.example.com \"bad\" is forbidden: not permitted to do \"unsafe-delete-ignore-read-errors\", reason: ";
    assert_eq!((status, message(&refusal)), (403, why));
    let clashes = UNSAFE.replace('}', r#","gracePeriodSeconds":0,"dryRun":["All"]}"#);
    let refusal = client.request("DELETE", &bad, "application/json", clashes.as_bytes()).expect(422);
    let option = "ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with";
    let why = format!("DeleteOptions.meta.k8s.io \"\" is invalid: [{option} .dryRun, {option} .gracePeriodSeconds]");
    assert_eq!(message(&refusal), why);
    assert_eq!(client.get(&bad).status, 500);

    let listed = client.get(&format!("{WIDGETS}?labelSelector=is%3Dgood")).expect(200);
    let path = format!("{WIDGETS}?watch=1&resourceVersion={}", revision(&listed));
    let mut watch: Watch = server.connect().watch(&path).expect("an answer").expect("a watch");
    let deleted = client.request("DELETE", &bad, "application/json", UNSAFE.as_bytes()).expect(200);
    let details = json!({"name": "bad", "kind": "Widget"});
    assert_eq!(
        deleted,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details, "code": 200})
    );
    let event = watch.next().expect("an event");
    assert_eq!((&event["type"], &event["object"]["reason"]), (&json!("ERROR"), &json!("StorageReadError")), "{event}");
    assert!(
        message(&event["object"]).starts_with("saw a DELETED event, but object data is corrupt - object not decodable")
    );
    assert!(watch.next().is_err());

    client.get(&bad).expect(404);
    assert_eq!(names(&client.get(WIDGETS).expect(200)), ["good"]);
    client.post(WIDGETS, &widget("bad", 1.0)).expect(201);
    // For an object that can be decoded the option has no effect, as by default in the reference: finalizers still
    // delay the deletion.
    client.request("DELETE", &good, "application/json", UNSAFE.as_bytes()).expect(200);
    assert!(client.get(&good).expect(200)["metadata"]["deletionTimestamp"].is_string());

    server.kill();
    let server = directory.start();
    assert_eq!(names(&server.connect().get(WIDGETS).expect(200)), ["bad", "good"]);
}

#[test]
fn a_namespace_ends_when_its_unreadable_object_is_deleted() {
    let (_directory, server) = poisoned(&[]);
    let mut client = server.connect();
    let namespace = "/api/v1/namespaces/ending";
    let widgets = WIDGETS.replace("default", "ending");
    let free = br#"{"metadata":{"finalizers":null}}"#;
    client.request("PATCH", &format!("{widgets}/good"), "application/merge-patch+json", free).expect(200);
    client.delete(namespace).expect(200);
    let failure = |namespace: &Value| {
        let conditions = namespace["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| {
            condition["type"] == "NamespaceDeletionContentFailure"
                && condition["status"] == "True"
                && message(condition).contains("corrupt object")
        })
    };
    until(|| failure(&client.get(namespace).expect(200)));
    // All other objects of the namespace are gone.
    client.get(&format!("{widgets}/good")).expect(404);
    client.get(&config_map_path("there").replace("default", "ending")).expect(404);
    client.request("DELETE", &format!("{widgets}/bad"), "application/json", UNSAFE.as_bytes()).expect(200);
    until(|| client.get(namespace).status == 404);
}

#[test]
fn backups_restarts_and_divisions_work_with_unreadable_objects() {
    let (directory, server) = poisoned(&[]);
    successful(cluster(&server, &["shards", "example.com/widgets=3"]));
    let still_there = |server: &Server| {
        let mut client = server.connect();
        expect_unreadable(&client.get(&format!("{WIDGETS}/bad")).expect(500));
        assert_eq!(client.get(&format!("{WIDGETS}/good")).expect(200)["n"], 1.5);
        assert_eq!(client.get(WIDGETS).expect(500)["reason"], "StorageReadError");
        let change = br#"{"metadata":{"labels":{"is":"good"}}}"#;
        client.request("PATCH", &format!("{WIDGETS}/good"), "application/merge-patch+json", change).expect(200);
    };
    still_there(&server);
    server.kill();
    let server = directory.start();
    still_there(&server);
    assert!(server.terminate().success());
    let server = directory.start();
    still_there(&server);
    let (backup, third) = (beside(&directory, "backup"), DataDir::new());
    back_up(&server, &backup);
    server.kill();
    let restored = restore(&backup, &third);
    assert!(restored.status.success(), "{}", errors(&restored));
    still_there(&third.start());
}

#[test]
fn unreadable_definitions_and_roles_have_no_effect() {
    let (first, second) = (DataDir::new(), DataDir::new());
    let server = first.start();
    let mut client = server.connect();
    define_widgets(&mut client);
    let mut other: Value = client.get(&format!("{DEFINITIONS}/widgets.example.com")).expect(200);
    other["metadata"] = json!({"name": "gadgets.example.com"});
    other["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget"});
    other["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
        json!({"n": {"type": "number", "maximum": 1e300}});
    other["status"].take();
    client.post(DEFINITIONS, &other).expect(201);
    until(|| client.get("/apis/example.com/v1/gadgets").status == 200);
    let backup = beside(&first, "backup");
    back_up(&server, &backup);
    server.kill();
    poison(&backup);
    assert!(restore(&backup, &second).status.success());
    let server = second.start();
    let mut client = server.connect();
    client.post(WIDGETS, &widget("works", 1.0)).expect(201);
    client.get("/openapi/v2").expect(200);
    assert_ne!(client.get("/apis/example.com/v1/gadgets").status, 200);
    expect_gadgets(&client.get(&format!("{DEFINITIONS}/gadgets.example.com")).expect(500));
    client
        .request("DELETE", &format!("{DEFINITIONS}/gadgets.example.com"), "application/json", UNSAFE.as_bytes())
        .expect(200);
    client.post(DEFINITIONS, &other).expect(201);
    until(|| client.get("/apis/example.com/v1/gadgets").status == 200);
}

fn expect_gadgets(refusal: &Value) {
    assert!(message(refusal).contains("/gadgets.example.com, ResourceVersion: 0"), "{refusal}");
}
