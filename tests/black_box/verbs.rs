//! The verbs for objects and collections, and their refusals.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, DataDir, config_map, config_map_path, revision};

#[test]
fn an_object_is_created_read_changed_and_deleted() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let path = config_map_path("one");

    let created = client.post(CONFIG_MAPS, &config_map("one", "1")).expect(201);
    assert!(created["metadata"]["uid"].as_str().is_some_and(|uid| uid.len() == 36));
    assert_eq!(client.get(&path).expect(200), created);
    assert_eq!(client.post(CONFIG_MAPS, &config_map("one", "1")).expect(409)["reason"], "AlreadyExists");

    let mut changed = created.clone();
    changed["data"]["value"] = json!("2");
    let updated = client.put(&path, &changed).expect(200);
    assert!(revision(&updated) > revision(&created));
    assert_eq!(updated["metadata"]["uid"], created["metadata"]["uid"]);
    // The object that was sent has an old revision now.
    assert_eq!(client.put(&path, &changed).expect(409)["reason"], "Conflict");
    assert_eq!(client.get(&path).expect(200), updated);

    let merge = client.request("PATCH", &path, "application/merge-patch+json", br#"{"data":{"more":"3"}}"#).expect(200);
    assert_eq!(merge["data"], json!({"more": "3", "value": "2"}));
    let operations = br#"[{"op":"test","path":"/data/value","value":"2"},{"op":"remove","path":"/data/value"}]"#;
    let patched = client.request("PATCH", &path, "application/json-patch+json", operations).expect(200);
    assert_eq!(patched["data"], json!({"more": "3"}));
    let strategic = br#"{"metadata":{"labels":{"of":"tests"}}}"#;
    client.request("PATCH", &path, "application/strategic-merge-patch+json", strategic).expect(200);
    let applied = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"applied":"4"}}"#;
    let apply = format!("{path}?fieldManager=tests");
    let applied = client.request("PATCH", &apply, "application/apply-patch+yaml", applied).expect(200);
    assert_eq!(applied["data"], json!({"applied": "4", "more": "3"}));

    // A stated revision must be the current one, even if the patch changes nothing.
    let revision = created["metadata"]["resourceVersion"].as_str().unwrap();
    let stale = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\
         \"metadata\":{{\"name\":\"one\",\"resourceVersion\":\"{revision}\"}},\"data\":{{\"applied\":\"4\"}}}}"
    );
    let refused = client.request("PATCH", &apply, "application/apply-patch+yaml", stale.as_bytes());
    assert_eq!(refused.expect(409)["reason"], "Conflict");

    client.post(CONFIG_MAPS, &config_map("two", "1")).expect(201);
    let list = client.get(&format!("{CONFIG_MAPS}?labelSelector=of%3Dtests")).expect(200);
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(list["items"][0]["metadata"]["name"], "one");
    let named = client.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dtwo")).expect(200);
    assert_eq!(named["items"].as_array().map(Vec::len), Some(1), "{named}");

    assert_eq!(client.delete(&path).expect(200)["status"], "Success");
    assert_eq!(client.get(&path).expect(404)["reason"], "NotFound");
    assert_eq!(client.delete(&path).expect(404)["reason"], "NotFound");
    // An update does not create the object again.
    assert_eq!(client.put(&path, &updated).expect(404)["reason"], "NotFound");
}

#[test]
fn a_deletion_can_have_conditions() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let path = config_map_path("guarded");
    let created = client.post(CONFIG_MAPS, &config_map("guarded", "1")).expect(201);
    let wrong = br#"{"preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}"#;
    assert_eq!(client.request("DELETE", &path, "application/json", wrong).expect(409)["reason"], "Conflict");
    let tried = client.delete(&format!("{path}?dryRun=All"));
    assert_eq!(tried.status, 200, "{}", tried.text());
    assert_eq!(client.get(&path).expect(200), created);
    let right = json!({"preconditions": {"uid": created["metadata"]["uid"]}}).to_string();
    client.request("DELETE", &path, "application/json", right.as_bytes()).expect(200);
    client.get(&path).expect(404);
}

#[test]
fn an_invalid_resize_is_reported_before_a_missing_node() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect_for_pods();
    let pods = "/api/v1/namespaces/default/pods";
    let container = |cpu: &str| json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "none", "containers": [container("1")]}});
    client.post(pods, &pod).expect(201);
    let mut resize = |body: serde_json::Value| {
        let (path, media) = (format!("{pods}/p/resize"), "application/strategic-merge-patch+json");
        client.request("PATCH", &path, media, body.to_string().as_bytes())
    };
    let refused = resize(json!({"spec": {"containers": [container("2")]}})).expect(403);
    assert_eq!(refused["message"], "pods \"p\" is forbidden: node \"none\" not found");
    resize(json!({"spec": {"containers": [{"name": "other"}]}})).expect(422);
}

#[test]
fn a_collection_is_deleted_in_its_order() {
    const OBJECTS: usize = 200;
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    for number in 0..OBJECTS {
        let mut object = config_map(&format!("many-{number:03}"), "1");
        object["metadata"]["labels"] = json!({"many": "yes"});
        client.post(CONFIG_MAPS, &object).expect(201);
    }
    client.post(CONFIG_MAPS, &config_map("other", "1")).expect(201);
    let all = format!("{CONFIG_MAPS}?labelSelector=many%3Dyes");
    let before = client.get(&all).expect(200);
    let revision = before["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = server.connect().watch(&format!("{all}&watch=1&resourceVersion={revision}")).unwrap().ok().unwrap();
    let deleted = client.delete(&all).expect(200);
    assert_eq!(deleted["items"], before["items"]);
    assert_eq!(client.get(&all).expect(200)["items"], json!([]));
    client.get(&config_map_path("other")).expect(200);
    for item in before["items"].as_array().unwrap() {
        let event = watch.next().unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["metadata"]["name"]),
            (&json!("DELETED"), &item["metadata"]["name"])
        );
    }
}

#[test]
fn warnings_about_dependents_come_with_collections_too() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let answer = client.delete(jobs);
    assert_eq!(answer.status, 200);
    assert!(answer.header("warning").is_some_and(|warning| warning.contains("child pods are preserved")));
    assert_eq!(client.delete(&format!("{jobs}?propagationPolicy=Background")).header("warning"), None);
}

#[test]
fn large_answers_are_compressed_if_the_client_accepts_it() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    client.post(CONFIG_MAPS, &config_map("large", &"x".repeat(200_000))).expect(201);
    client.post(CONFIG_MAPS, &config_map("small", "x")).expect(201);
    let mut get = |path: &str, coding| {
        let answer = client.call("GET", path, &[("Accept-Encoding", coding)], b"").expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        (answer.header("content-encoding").map(str::to_owned), answer.body.len())
    };
    for path in [&*config_map_path("large"), CONFIG_MAPS] {
        let (coding, length) = get(path, "deflate, gzip");
        assert!(coding.as_deref() == Some("gzip") && length < 20_000, "{coding:?}, {length} bytes");
        assert_eq!(get(path, "deflate").0, None);
    }
    assert_eq!(get(&config_map_path("small"), "gzip").0, None);
}

#[test]
fn long_lists_are_compressed_while_they_are_made() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let value: String = (0..20_000).map(|number| format!("{number:x} ")).collect();
    for number in 0..8 {
        client.post(CONFIG_MAPS, &config_map(&format!("long-{number}"), &value)).expect(201);
    }
    let revision = client.get(CONFIG_MAPS).expect(200)["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    let exact = format!("{CONFIG_MAPS}?resourceVersionMatch=Exact&resourceVersion={}", revision.expect("a revision"));
    for media in ["application/json", "application/vnd.kubernetes.protobuf"] {
        let mut get = |coding| {
            let headers = [("Accept", media), ("Accept-Encoding", coding)];
            client.call("GET", &exact, &headers, b"").expect("an answer")
        };
        let (plain, packed) = (get("identity"), get("gzip"));
        assert_eq!((packed.status, packed.header("content-encoding")), (200, Some("gzip")), "{media}");
        let mut unpacked = Vec::new();
        GzDecoder::new(&*packed.body).read_to_end(&mut unpacked).expect("gzip");
        assert!(unpacked == plain.body && plain.body.len() > 8 * value.len(), "{media}");
    }
}

#[test]
fn partial_metadata_is_served_in_both_versions() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    for (kind, path) in
        [("PartialObjectMetadata", "/api/v1/namespaces/default"), ("PartialObjectMetadataList", "/api/v1/namespaces")]
    {
        for version in ["v1", "v1beta1"] {
            for media in ["application/json", "application/vnd.kubernetes.protobuf"] {
                let accept = format!("{media};as={kind};g=meta.k8s.io;v={version}");
                let answer = client.call("GET", path, &[("Accept", &accept)], b"").expect("an answer");
                assert_eq!((answer.status, answer.header("content-type")), (200, Some(media)), "{accept}");
                let stated = format!("meta.k8s.io/{version}");
                let body = answer.text();
                assert!(body.contains(&stated) && body.contains(kind), "{accept}: {body}");
            }
        }
    }
}

/// A list from memory is at least as new as an object that was read before.
#[test]
fn lists_from_memory_do_not_go_back() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--shards", "configmaps=8", "--groups", "5"]);
    let mut client = server.connect();
    let (path, list) = (config_map_path("one"), format!("{CONFIG_MAPS}?resourceVersion=0"));
    let in_list = |listed: &Value| {
        let objects = listed["items"].as_array().expect("objects");
        objects.iter().find(|object| object["metadata"]["name"] == "one").map(revision)
    };
    client.post(CONFIG_MAPS, &config_map("one", "0")).expect(201);
    let mut last = 0;
    for number in 1..=20 {
        client.put(&path, &config_map("one", &number.to_string())).expect(200);
        let got = revision(&client.get(&format!("{path}?resourceVersion=0")).expect(200));
        let listed = client.get(&list).expect(200);
        let object = in_list(&listed).expect("the object");
        assert!(last <= got && got <= object && object <= revision(&listed), "{listed} after {got} after {last}");
        last = object;
    }
    client.delete(&path).expect(200);
    while client.get(&format!("{path}?resourceVersion=0")).status != 404 {}
    assert_eq!(in_list(&client.get(&list).expect(200)), None);
}
