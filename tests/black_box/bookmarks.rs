//! Bookmarks: what a watch that is about to end can be resumed from.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{CONFIG_MAPS, DataDir, Server, Watch, config_map, revision};

/// Another kind, so that its changes are not what the watches are told of.
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const SECONDS: u64 = 3;

fn watch(server: &Server, more: &str) -> Watch {
    // The controllers write to the namespace too.
    let own = "fieldSelector=metadata.name!%3Dkube-root-ca.crt";
    let path = format!("{CONFIG_MAPS}?watch=1&{own}&timeoutSeconds={SECONDS}{more}");
    let watch = server.connect().watch(&path).expect("an answer");
    watch.unwrap_or_else(|refused| panic!("{}", refused.text()))
}

/// A watch of a server that keeps what is watched in so many shards is sent one bookmark before it ends, and what is
/// resumed from there begins there.
fn a_watch_ends_with_a_bookmark(flags: &[&str]) {
    let directory = DataDir::new();
    let server = directory.start_with(flags);
    let first = revision(&server.connect().post(CONFIG_MAPS, &config_map("first", "1")).expect(201));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "beside"}});
    let beside = revision(&server.connect().post(SECRETS, &secret).expect(201));
    let began = Instant::now();
    let mut without = watch(&server, &format!("&resourceVersion={first}"));
    let mut with = watch(&server, &format!("&resourceVersion={first}&allowWatchBookmarks=1"));
    let second = revision(&server.connect().post(CONFIG_MAPS, &config_map("second", "1")).expect(201));
    assert_eq!(with.next().expect("an event")["object"]["metadata"]["name"], "second");
    let bookmark = with.next().expect("a bookmark");
    let bookmarked = bookmark["object"]["metadata"]["resourceVersion"].clone();
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": bookmarked}});
    assert_eq!((&bookmark["type"], &bookmark["object"]["kind"]), (&json!("BOOKMARK"), &object["kind"]));
    assert_eq!(bookmark["object"]["metadata"], object["metadata"], "it says nothing else");
    assert!(revision(&bookmark["object"]) >= second && second > beside);
    assert!(began.elapsed() < Duration::from_secs(SECONDS), "it comes before the end");
    with.next().expect_err("it ends, with one bookmark");
    assert_eq!(without.next().expect("an event")["object"]["metadata"]["name"], "second");
    without.next().expect_err("who asks for none gets none");

    let third = revision(&server.connect().post(CONFIG_MAPS, &config_map("third", "1")).expect(201));
    let mut resumed = watch(&server, &format!("&resourceVersion={}", revision(&bookmark["object"])));
    assert_eq!(revision(&resumed.next().expect("an event")["object"]), third);
}

#[test]
fn a_watch_of_one_shard_ends_with_a_bookmark() {
    a_watch_ends_with_a_bookmark(&[]);
}

#[test]
fn a_watch_of_several_shards_ends_with_a_bookmark() {
    a_watch_ends_with_a_bookmark(&["--shards", "configmaps=8", "--groups", "5"]);
}
