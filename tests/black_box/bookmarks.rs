//! Bookmarks: what a watch that is about to end can be resumed from.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::{PATIENCE, Places, status, until};
use crate::support::{Answer, CONFIG_MAPS, DataDir, Server, Watch, config_map, revision};

/// Another kind, so that its changes are not what the watches are told of.
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// What lies beside secrets.
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
/// How long a watch lasts, so that on a busy machine, too, something can be written before its bookmark comes.
const SECONDS: u64 = 5;
/// How long history is kept where what is idle has to outlast it.
const HISTORY: Duration = Duration::from_secs(8);
/// How much else is written at least.
const WRITES: usize = 20;

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

/// A secret by its name.
fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
}

/// Watches secrets from a revision.
fn watch_secrets(server: &Server, from: u64, more: &str) -> Watch {
    let watch = server.connect().watch(&format!("{SECRETS}?watch=1&resourceVersion={from}{more}")).expect("an answer");
    watch.unwrap_or_else(|refused| panic!("{}", refused.text()))
}

/// Checks what a watch is told of next: that this was created.
fn tells(watch: &mut Watch, created: &Value) {
    let event = watch.next().expect("an event");
    assert_eq!((&event["type"], &event["object"]["metadata"]), (&json!("ADDED"), &created["metadata"]));
}

/// Whether a watch from a revision is refused, because the history begins later.
fn is_past(watch: Result<Watch, Answer>) -> bool {
    match watch {
        Ok(mut watch) => watch.next().is_ok_and(|event| event["object"]["code"] == 410),
        Err(answer) => answer.status == 410,
    }
}

/// Three members, one of which was asked to watch secrets, of which there were none new for longer than history goes
/// back, while much else was written.
struct Idle {
    servers: [Server; 3],
    /// A later change of what is in the group `default`, as secrets are unless they are divided.
    beside: u64,
    /// Of the bookmark that the watch ended with.
    bookmarked: u64,
    /// Kept as long as they are used.
    _places: Places,
}

impl Idle {
    /// Lets the history pass, and after it a watch.
    fn pass(flags: &[&str]) -> Idle {
        let (mut places, history) = (Places::new(), HISTORY.as_secs().to_string());
        places.more = flags.iter().chain(&["--history-seconds", &history]).map(|flag| (*flag).to_owned()).collect();
        let servers = places.start_all();
        let made = revision(&servers[2].connect().post(SECRETS, &secret("made")).expect(201));
        let listed = revision(&servers[0].connect().get(SECRETS).expect(200));
        let account = json!({"metadata": {"name": "beside"}});
        let beside = servers[2].connect().post(ACCOUNTS, &account).expect(201);
        // Who has been asked for it has it.
        servers[0].connect().get(&format!("{ACCOUNTS}/beside")).expect(200);
        keep_busy(&servers[1], HISTORY);
        for server in &servers {
            until("what was told is too old, although there are no new secrets", || {
                let path = format!("{SECRETS}?watch=1&resourceVersion={listed}&timeoutSeconds=1");
                is_past(server.connect().watch(&path).expect("an answer"))
            });
        }
        // A watch of somebody who has listed anew.
        let options = format!("&allowWatchBookmarks=1&timeoutSeconds={SECONDS}");
        let anew = revision(&servers[0].connect().get(SECRETS).expect(200));
        let bookmark = watch_secrets(&servers[0], anew, &options).next().expect("a bookmark");
        assert_eq!(bookmark["type"], "BOOKMARK", "{bookmark}");
        let bookmarked = revision(&bookmark["object"]);
        assert!(bookmarked >= anew && anew > listed && listed >= made, "{bookmarked}, {anew}, {listed}, {made}");
        Idle { servers, beside: revision(&beside), bookmarked, _places: places }
    }

    /// Other members go on from where the watch was, and tell of what comes next, once.
    fn goes_on_elsewhere(&self) {
        let [a, b, c] = &self.servers;
        let watch = |server: &Server| watch_secrets(server, self.bookmarked, "");
        let mut before = [b, c].map(watch);
        let next = a.connect().post(SECRETS, &secret("next")).expect(201);
        let mut after = [b, c].map(watch);
        let last = b.connect().post(SECRETS, &secret("last")).expect(201);
        for watch in before.iter_mut().chain(&mut after) {
            tells(watch, &next);
            tells(watch, &last);
        }
    }

    /// The groups of a resource, as a member sees them.
    fn groups(&self, resource: &str) -> Vec<Value> {
        let status = status(&self.servers[0]);
        let mut tables = status["shards"].as_array().expect("tables").iter();
        let table = tables.find(|table| table["resource"] == resource).expect("the table");
        table["groups"].as_array().expect("groups").clone()
    }
}

/// Creates ConfigMaps for so long.
fn keep_busy(server: &Server, how_long: Duration) {
    let (mut client, began, mut written) = (server.connect(), Instant::now(), 0);
    for number in 0.. {
        if written >= WRITES && began.elapsed() > how_long {
            return;
        }
        assert!(began.elapsed() < 4 * PATIENCE, "{written} writes in {:?}", began.elapsed());
        let answer = client.post(CONFIG_MAPS, &config_map(&format!("busy-{number}"), "1"));
        // On a busy machine a group may be without a leader for a moment.
        assert!(matches!(answer.status, 201 | 503 | 504), "{}", answer.text());
        written += usize::from(answer.status == 201);
    }
}

#[test]
fn a_watch_of_one_idle_shard_goes_on_at_another_member() {
    let idle = Idle::pass(&["--shards", "configmaps=8"]);
    assert!(idle.bookmarked >= idle.beside, "bookmarks come along with what else its group writes");
    idle.goes_on_elsewhere();
}

#[test]
fn a_watch_of_idle_shards_in_busy_groups_goes_on_at_another_member() {
    let idle = Idle::pass(&["--shards", "configmaps=8,secrets=3"]);
    let busy = idle.groups("configmaps");
    assert!(idle.groups("secrets").iter().all(|group| busy.contains(group)));
    idle.goes_on_elsewhere();
}

#[test]
fn a_watch_of_shards_whose_groups_are_all_idle_goes_on_at_another_member() {
    // Pods, of which there are none, make as many groups possible.
    let idle = Idle::pass(&["--shards", "configmaps=2,secrets=3,pods=6", "--groups", "11"]);
    let busy = idle.groups("configmaps");
    assert!(!idle.groups("secrets").iter().any(|group| busy.contains(group)));
    idle.goes_on_elsewhere();
}
