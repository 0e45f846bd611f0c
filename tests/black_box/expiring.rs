//! Revisions and continue tokens can be used for the history window and then expire, even if nothing changes.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::until;
use crate::support::{CONFIG_MAPS, Connection, DataDir, config_map};

/// The history window: long enough for a few requests on a busy machine, which must find what they name.
const HISTORY: Duration = Duration::from_secs(30);

/// Returns the flags for this window.
fn flags() -> [String; 2] {
    ["--history-seconds".to_owned(), HISTORY.as_secs().to_string()]
}

fn list(client: &mut Connection, query: &str) -> Value {
    client.get(&format!("{CONFIG_MAPS}?{query}")).expect(200)
}

fn is_expired(client: &mut Connection, query: &str) -> Option<Value> {
    let answer = client.get(&format!("{CONFIG_MAPS}?{query}"));
    (answer.status == 410).then(|| answer.json())
}

#[test]
fn tokens_exact_reads_and_watches_expire_even_without_changes() {
    let directory = DataDir::new();
    let server = directory.start_with(&flags().each_ref().map(String::as_str));
    let mut client = server.connect();
    for name in ["a", "b", "c"] {
        client.post(CONFIG_MAPS, &config_map(name, "value")).expect(201);
    }
    let first = list(&mut client, "limit=1");
    let (token, revision) = (first["metadata"]["continue"].as_str(), first["metadata"]["resourceVersion"].as_str());
    let (token, revision) = (token.expect("a token").to_owned(), revision.expect("a revision").to_owned());
    let exactly = format!("resourceVersion={revision}&resourceVersionMatch=Exact");
    let next = format!("limit=1&continue={token}");
    assert_eq!(list(&mut client, &next)["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    list(&mut client, &exactly);
    let mut expired = Value::Null;
    until("the token is expired", || {
        expired = is_expired(&mut client, &next).unwrap_or_default();
        expired["reason"] == "Expired"
    });
    assert!(is_expired(&mut client, &exactly).is_some());
    let fresh = expired["metadata"]["continue"].as_str().expect("a fresh token");
    let rest = list(&mut client, &format!("limit=9&continue={fresh}"));
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(3), "b, c and the root certificate");
    let watched = server.connect().watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={revision}"));
    let event = watched.expect("an answer").expect("a stream").next().expect("an event");
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[test]
fn a_listed_revision_can_be_used_for_the_window() {
    let directory = DataDir::new();
    let server = directory.start_with(&flags().each_ref().map(String::as_str));
    let mut client = server.connect();
    // Nothing changes for longer than the window. A list must then have a recent revision.
    let before = list(&mut client, "limit=1")["metadata"]["resourceVersion"].clone();
    sleep(HISTORY + Duration::from_secs(3));
    for query in ["", "resourceVersion=0"] {
        let listed = list(&mut client, query)["metadata"]["resourceVersion"].as_str().expect("a revision").to_owned();
        assert_ne!(json!(listed), before);
        list(&mut client, &format!("resourceVersion={listed}&resourceVersionMatch=Exact"));
        let watch = server.connect().watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={listed}"));
        let mut watch = watch.expect("an answer").expect("a stream");
        let name = format!("new-{}", listed);
        client.post(CONFIG_MAPS, &config_map(&name, "value")).expect(201);
        let event = watch.next().expect("an event");
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!(name)));
    }
}
