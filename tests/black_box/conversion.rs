//! Custom resources that a webhook converts.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Connection, DataDir, PATIENCE, Reply, Webhook};
use crate::webhooks::{MUTATING, answer, asked, but_probes, configure, hook, patch};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.com/v1/namespaces/default/pots";
const V2: &str = "/apis/example.com/v2/namespaces/default/pots";

fn version(name: &str, field: &str, storage: bool) -> Value {
    let spec = json!({"type": "object", "properties": {field: {"type": "string"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({"name": name, "served": true, "storage": storage, "schema": schema})
}

fn definition(client_config: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pots.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "pots", "kind": "Pot"},
            "versions": [version("v1", "one", true), version("v2", "two", false)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": client_config
            }},
        },
    })
}

fn pot(version: &str, name: &str, value: &str) -> Value {
    let field = if version == "v1" { "one" } else { "two" };
    let api_version = format!("example.com/{version}");
    json!({"apiVersion": api_version, "kind": "Pot", "metadata": {"name": name}, "spec": {field: value}})
}

/// Converts pots: moves a value between the names of the field in the two versions.
fn convert(review: &Value) -> Value {
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str().expect("a version");
    let (from_field, to_field) = if to.ends_with("/v2") { ("one", "two") } else { ("two", "one") };
    let objects = request["objects"].as_array().expect("objects").iter().map(|object| {
        let mut object = object.clone();
        let value = object["spec"][from_field].clone();
        object["apiVersion"] = to.into();
        object["spec"] = json!({to_field: value});
        object["metadata"]["annotations"] = json!({"converted": "yes"});
        object["metadata"]["generation"] = 99.into();
        object
    });
    let objects: Vec<Value> = objects.collect();
    let result = json!({"status": "Success"});
    let response = json!({"uid": request["uid"], "result": result, "convertedObjects": objects});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response})
}

/// Creates the definition, and waits until pots are served.
fn define(client: &mut Connection, client_config: &Value) {
    create(client, &definition(client_config));
}

fn create(client: &mut Connection, definition: &Value) {
    client.post(DEFINITIONS, definition).expect(201);
    let deadline = Instant::now() + PATIENCE;
    while client.get(V1).status != 200 {
        assert!(Instant::now() < deadline, "pots are not served in time");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_webhook_converts_shown_and_stored_objects() {
    let (data, webhook) = (DataDir::new(), Webhook::start(|review| Reply::Document(convert(review))));
    let server = data.start();
    let mut client = server.connect();
    define(&mut client, &webhook.config("/convert"));
    let made = client.post(V2, &pot("v2", "a", "x")).expect(201);
    assert_eq!((&made["spec"], &made["metadata"]["generation"]), (&json!({"two": "x"}), &json!(1)));
    let asked = webhook.asked();
    assert_eq!(asked.len(), 2, "one review to store, one to answer: {asked:?}");
    assert_eq!(
        (&*asked[0].0, &asked[0].1["request"]["desiredAPIVersion"]),
        ("/convert?timeout=30s", &json!("example.com/v1"))
    );
    let shown = client.get(&format!("{V1}/a")).expect(200);
    assert_eq!((&shown["spec"], &shown["metadata"]["generation"]), (&json!({"one": "x"}), &json!(1)));
    assert_eq!(shown["metadata"]["annotations"], json!({"converted": "yes"}));
    let patch = br#"{"spec": {"two": "y"}}"#;
    let changed = client.request("PATCH", &format!("{V2}/a"), "application/merge-patch+json", patch).expect(200);
    assert_eq!(changed["spec"], json!({"two": "y"}));
    assert_eq!(client.get(&format!("{V1}/a")).expect(200)["spec"], json!({"one": "y"}));
    for (n, name) in ["b", "c", "d"].iter().enumerate() {
        client.post(V1, &pot("v1", name, &n.to_string())).expect(201);
    }
    let before = webhook.asked().len();
    let list = client.get(V2).expect(200);
    let values: Vec<&Value> = list["items"].as_array().expect("items").iter().map(|pot| &pot["spec"]["two"]).collect();
    assert_eq!(values, ["y", "0", "1", "2"]);
    let asked = webhook.asked();
    assert_eq!(asked.len(), before + 1, "one review for all objects that are not cached");
    assert_eq!(asked[before].1["request"]["objects"].as_array().map(Vec::len), Some(3));
    client.get(V2).expect(200);
    client.get(V1).expect(200);
    assert_eq!(webhook.asked().len(), before + 1, "cached conversions need no review");
    client.delete(&format!("{V2}/a")).expect(200);
}

/// Returns the names of the objects of a list, page by page.
fn names(client: &mut Connection, path: &str) -> Vec<String> {
    let (mut names, mut token) = (Vec::new(), String::new());
    loop {
        let list = client.get(&format!("{path}&continue={token}")).expect(200);
        let items = list["items"].as_array().expect("items").iter();
        names.extend(items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()));
        token = list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            return names;
        }
    }
}

#[test]
fn field_selectors_compare_the_fields_of_the_version_that_is_asked_for() {
    let (data, webhook) = (DataDir::new(), Webhook::start(|review| Reply::Document(convert(review))));
    let server = data.start();
    let mut client = server.connect();
    let mut definition = definition(&webhook.config("/convert"));
    for (at, path) in [".spec.one", ".spec.two"].into_iter().enumerate() {
        definition["spec"]["versions"][at]["selectableFields"] = json!([{ "jsonPath": path }]);
    }
    create(&mut client, &definition);
    for (name, value) in [("a", "x"), ("b", "x"), ("c", "y")] {
        client.post(V2, &pot("v2", name, value)).expect(201);
    }
    for (query, expected) in [
        ("fieldSelector=spec.two%3Dx", &["a", "b"][..]),
        ("fieldSelector=spec.two!%3Dx", &["c"]),
        ("fieldSelector=spec.two%3Dy&limit=1", &["c"]),
        ("fieldSelector=spec.two%3Dx,metadata.name%3Db", &["b"]),
        ("fieldSelector=spec.two%3Dz", &[]),
    ] {
        assert_eq!(names(&mut client, &format!("{V2}?{query}")), expected, "{query}");
    }
    assert_eq!(names(&mut client, &format!("{V1}?fieldSelector=spec.one%3Dx")), ["a", "b"]);
    client.get(&format!("{V1}?fieldSelector=spec.two%3Dx")).expect(400);

    let watch = server.connect().watch(&format!("{V2}?watch=1&fieldSelector=spec.two%3Dx")).expect("an answer");
    let mut watch = watch.expect("a watch");
    let mut next = || {
        let event = watch.next().expect("an event");
        let (kind, object) = (event["type"].as_str().expect("a type"), &event["object"]);
        format!("{kind} {} {}", object["metadata"]["name"].as_str().expect("a name"), object["spec"]["two"])
    };
    assert_eq!([next(), next()], ["ADDED a \"x\"", "ADDED b \"x\""]);
    for (name, value) in [("a", "y"), ("c", "x"), ("b", "x")] {
        let merge = json!({"metadata": {"labels": {"changed": "1"}}, "spec": {"two": value}}).to_string();
        let path = format!("{V2}/{name}");
        client.request("PATCH", &path, "application/merge-patch+json", merge.as_bytes()).expect(200);
    }
    assert_eq!([next(), next(), next()], ["DELETED a \"x\"", "ADDED c \"x\"", "MODIFIED b \"x\""]);
    client.delete(&format!("{V2}?fieldSelector=spec.two!%3Dx")).expect(200);
    assert_eq!(names(&mut client, &format!("{V2}?limit=500")), ["b", "c"]);
    client.delete(&format!("{V2}/c")).expect(200);
    assert_eq!(next(), "DELETED c \"x\"");
}

#[test]
fn admission_webhooks_see_and_change_converted_objects() {
    let (data, converting) = (DataDir::new(), Webhook::start(|review| Reply::Document(convert(review))));
    let admitting = but_probes(|review| {
        let value = review["request"]["object"]["spec"]["one"].as_str().unwrap_or("nothing");
        let change = json!([{"op": "add", "path": "/spec/one", "value": format!("{value}, seen")}]);
        answer(review, true, patch(&change))
    });
    let server = data.start();
    let mut client = server.connect();
    define(&mut client, &converting.config("/"));
    let rules = json!([{
        "operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["pots"]
    }]);
    configure(&mut client, MUTATING, "m", &[hook("m.example.com", &rules, json!({}))], &admitting);
    let made = client.post(V2, &pot("v2", "a", "x")).expect(201);
    assert_eq!((&made["apiVersion"], &made["spec"]), (&json!("example.com/v2"), &json!({"two": "x, seen"})));
    let merge = br#"{"spec": {"two": "y"}}"#;
    let changed = client.request("PATCH", &format!("{V2}/a"), "application/merge-patch+json", merge).expect(200);
    assert_eq!(changed["spec"], json!({"two": "y, seen"}));
    assert_eq!(client.get(&format!("{V1}/a")).expect(200)["spec"], json!({"one": "y, seen"}));
    let seen = asked(&admitting);
    assert_eq!(seen.len(), 2, "one review for each write: {seen:?}");
    for (review, spec, old) in [(&seen[0], "x", Value::Null), (&seen[1], "y", json!({"one": "x, seen"}))] {
        assert_eq!((&review["kind"]["version"], &review["requestKind"]["version"]), (&json!("v1"), &json!("v2")));
        let object = &review["object"];
        assert_eq!((&object["apiVersion"], &object["spec"]), (&json!("example.com/v1"), &json!({"one": spec})));
        assert_eq!(review["oldObject"]["spec"], old);
    }
}

/// Returns the managers that own something of the `spec`, each with the version and the fields.
fn owners_of_spec(pot: &Value) -> Vec<(&str, &str, &Value)> {
    let entries = pot["metadata"]["managedFields"].as_array().expect("owners").iter();
    let own = entries.filter(|entry| !entry["fieldsV1"]["f:spec"].is_null()).map(|entry| {
        let [manager, version] = ["manager", "apiVersion"].map(|name| entry[name].as_str().expect("a text"));
        (manager, version, &entry["fieldsV1"]["f:spec"])
    });
    own.collect()
}

#[test]
fn owners_of_fields_are_found_in_every_version() {
    let (data, webhook) = (DataDir::new(), Webhook::start(|review| Reply::Document(convert(review))));
    let server = data.start();
    let mut client = server.connect();
    define(&mut client, &webhook.config("/"));
    let apply = "application/apply-patch+yaml";
    let first = pot("v1", "a", "x").to_string();
    client.request("PATCH", &format!("{V1}/a?fieldManager=one"), apply, first.as_bytes()).expect(201);
    let second = pot("v2", "a", "y").to_string();
    let conflict = client.request("PATCH", &format!("{V2}/a?fieldManager=two"), apply, second.as_bytes()).expect(409);
    assert_eq!(conflict["message"], "Apply failed with 1 conflict: conflict with \"one\": .spec.one");
    let path = format!("{V2}/a?fieldManager=two&force=true");
    let forced = client.request("PATCH", &path, apply, second.as_bytes()).expect(200);
    assert_eq!(owners_of_spec(&forced), [("two", "example.com/v2", &json!({"f:two": {}}))]);
    let merge = br#"{"spec": {"one": "z"}}"#;
    let path = format!("{V1}/a?fieldManager=three");
    let changed = client.request("PATCH", &path, "application/merge-patch+json", merge).expect(200);
    assert_eq!(owners_of_spec(&changed), [("three", "example.com/v1", &json!({"f:one": {}}))]);
}

#[test]
fn a_write_that_would_lose_owners_is_refused() {
    let webhook = Webhook::start(|review| {
        let mut converted = review["request"]["objects"].clone();
        for object in converted.as_array_mut().expect("objects") {
            object["apiVersion"] = review["request"]["desiredAPIVersion"].clone();
        }
        Reply::Document(with(review, |answer| answer["response"]["convertedObjects"] = converted))
    });
    let (data, mut definition) = (DataDir::new(), definition(&webhook.config("/")));
    let server = data.start();
    let mut client = server.connect();
    let others: Vec<String> = (3..=42).map(|number| format!("v{number}")).collect();
    let versions = definition["spec"]["versions"].as_array_mut().expect("versions");
    versions.extend(others.iter().map(|name| version(name, "one", false)));
    create(&mut client, &definition);

    let owners = |pot: &Value| pot["metadata"]["managedFields"].as_array().map(Vec::len);
    let owner = |version: &String| {
        json!({
            "manager": version, "operation": "Apply", "apiVersion": format!("example.com/{version}"),
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}},
        })
    };
    for (name, count, status) in [("few", 31, 200), ("many", 33, 500)] {
        let mut first = pot("v1", name, "x");
        first["metadata"]["managedFields"] = others[..count].iter().map(owner).collect();
        let created = client.post(V1, &first).expect(201);
        assert_eq!(owners(&created), Some(count + 1));
        let path = format!("{V1}/{name}");
        let mut second = pot("v1", name, "y");
        second["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
        client.put(&path, &second).expect(status);
        let now = client.get(&path).expect(200);
        assert_eq!((owners(&now), now["spec"]["one"] == "y"), (Some(count + 1), status == 200));
    }
}

#[test]
fn many_watchers_have_an_object_converted_once() {
    let (data, webhook) = (DataDir::new(), Webhook::start(|review| Reply::Document(convert(review))));
    let server = data.start();
    let mut client = server.connect();
    define(&mut client, &webhook.config("/"));
    let path = format!("{V2}?watch=1");
    let begin = |_| server.connect().watch(&path).expect("a connection").expect("a watch");
    let mut watches: Vec<_> = (0..20).map(begin).collect();
    client.post(V1, &pot("v1", "a", "x")).expect(201);
    for watch in &mut watches {
        let event = watch.next().expect("an event");
        assert_eq!((&event["type"], &event["object"]["spec"]), (&json!("ADDED"), &json!({"two": "x"})));
    }
    assert_eq!(webhook.asked().len(), 1);
}

/// Makes a webhook's answer to a review.
type Answers = fn(&Value) -> Reply;

#[test]
fn a_failing_webhook_affects_only_objects_that_need_it() {
    let replies: [(Answers, &str); 8] = [
        (|_| Reply::Close, "EOF"),
        (|_| Reply::of("500 Internal Server Error", "", "oh no"), "an error on the server (\"oh no\") has prevented"),
        (|_| Reply::of("302 Found", "Location: https://127.0.0.1:1/\r\n", ""), "status code 302 but did not return"),
        (|_| Reply::of("200 OK", "Content-Type: text/html\r\n", "<html>"), "cannot unmarshal string into Go value"),
        (|_| Reply::Endless(100 << 20), "response body too large"),
        (|review| Reply::Document(with(review, |answer| answer["response"]["uid"] = "x".into())), "got \"x\""),
        (
            |review| Reply::Document(with(review, |answer| answer["response"]["convertedObjects"] = json!([]))),
            "returned 0 objects, expected 1",
        ),
        (
            |review| {
                let rename =
                    |answer: &mut Value| answer["response"]["convertedObjects"][0]["metadata"]["name"] = "z".into();
                Reply::Document(with(review, rename))
            },
            "must have the same name: a != z",
        ),
    ];
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    for (reply, expected) in replies {
        let webhook = Webhook::start(reply);
        define(&mut client, &webhook.config("/"));
        client.post(V1, &pot("v1", "a", "x")).expect(201);
        for path in [format!("{V2}/a"), V2.to_owned()] {
            let error = client.get(&path).expect(500);
            let message = error["message"].as_str().expect("a message");
            assert!(message.starts_with("conversion webhook for example.com/v1, Kind=Pot"), "{message}");
            assert!(message.contains(expected), "{message} has no {expected}");
        }
        client.get(V1).expect(200);
        client.delete(&format!("{DEFINITIONS}/pots.example.com")).expect(200);
        let deadline = Instant::now() + PATIENCE;
        while client.get(V1).status != 404 {
            assert!(Instant::now() < deadline, "pots are not deleted while their webhook fails");
            sleep(Duration::from_millis(20));
        }
    }
}

/// Returns the answer of a working webhook, with a change.
fn with(review: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut answer = convert(review);
    change(&mut answer);
    answer
}
