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

/// Whether a watch from a revision is refused, because the history begins later.
fn is_past(watch: Result<Watch, Answer>) -> bool {
    match watch {
        Ok(mut watch) => watch.next().is_ok_and(|event| is_gone(&event)),
        Err(answer) => answer.status == 410,
    }
}

/// Whether an event says that the history begins later.
fn is_gone(event: &Value) -> bool {
    event["object"]["code"] == 410
}

/// A revision is as old as history goes back, which it may be where the machine is slow: what is from there may be
/// refused, and has to be tried again with a later one.
struct TooLate;

/// When a revision was asked for: from then on it is good for as long as history goes back, at least.
struct Asked(Instant);

impl Asked {
    /// Only what is too late may be refused.
    fn refused(&self, answer: &str) -> TooLate {
        assert!(self.0.elapsed() >= HISTORY, "{answer} after {:?}", self.0.elapsed());
        TooLate
    }

    /// Watches secrets from a revision.
    fn watch(&self, server: &Server, from: u64, more: &str) -> Result<Watch, TooLate> {
        let path = format!("{SECRETS}?watch=1&resourceVersion={from}{more}");
        server.connect().watch(&path).expect("an answer").map_err(|answer| {
            assert_eq!(answer.status, 410, "{}", answer.text());
            self.refused(&answer.text())
        })
    }

    /// What a watch is told of next.
    fn told(&self, watch: &mut Watch) -> Result<Value, TooLate> {
        let event = watch.next().expect("an event");
        if is_gone(&event) { Err(self.refused(&event.to_string())) } else { Ok(event) }
    }

    /// Checks what a watch is told of next: that this was created.
    fn tells(&self, watch: &mut Watch, created: &Value) -> Result<(), TooLate> {
        let event = self.told(watch)?;
        assert_eq!((&event["type"], &event["object"]["metadata"]), (&json!("ADDED"), &created["metadata"]));
        Ok(())
    }
}

/// Three members.
struct Idle {
    servers: [Server; 3],
    /// Kept as long as they are used.
    _places: Places,
}

impl Idle {
    fn start(flags: &[&str]) -> Idle {
        let (mut places, history) = (Places::new(), HISTORY.as_secs().to_string());
        places.more = flags.iter().chain(&["--history-seconds", &history]).map(|flag| (*flag).to_owned()).collect();
        Idle { servers: places.start_all(), _places: places }
    }

    /// Lets the history of secrets pass, while much else is written. A watch of one member that begins then goes on at
    /// the others. The revision of the bookmark that it ended with, and that of a change of what is in the group
    /// `default`, which came later than the secrets did.
    fn goes_on_elsewhere(&self) -> (u64, u64) {
        let began = Instant::now();
        for attempt in 0.. {
            let beside = self.pass(attempt);
            if let Ok(bookmarked) = self.go_on(attempt) {
                return (bookmarked, beside);
            }
            assert!(began.elapsed() < 4 * PATIENCE, "the machine is too slow for a history of {HISTORY:?}");
        }
        unreachable!("attempts end")
    }

    fn pass(&self, attempt: usize) -> u64 {
        let servers = &self.servers;
        let made = revision(&servers[2].connect().post(SECRETS, &secret(&format!("made-{attempt}"))).expect(201));
        let listed = revision(&servers[0].connect().get(SECRETS).expect(200));
        assert!(listed >= made, "{listed}, {made}");
        let account = json!({"metadata": {"name": format!("beside-{attempt}")}});
        let beside = servers[2].connect().post(ACCOUNTS, &account).expect(201);
        // Who has been asked for it has it.
        servers[0].connect().get(&format!("{ACCOUNTS}/beside-{attempt}")).expect(200);
        keep_busy(&servers[1], &format!("busy-{attempt}"), HISTORY);
        for server in servers {
            until("what was told is too old, although there are no new secrets", || {
                let path = format!("{SECRETS}?watch=1&resourceVersion={listed}&timeoutSeconds=1");
                is_past(server.connect().watch(&path).expect("an answer"))
            });
        }
        revision(&beside)
    }

    /// Somebody who has listed anew watches, and goes on elsewhere from where that ended: others tell of what comes
    /// next, once.
    fn go_on(&self, attempt: usize) -> Result<u64, TooLate> {
        let [a, b, c] = &self.servers;
        let asked = Asked(Instant::now());
        let anew = revision(&a.connect().get(SECRETS).expect(200));
        let options = format!("&allowWatchBookmarks=1&timeoutSeconds={SECONDS}");
        let bookmark = asked.told(&mut asked.watch(a, anew, &options)?)?;
        assert_eq!(bookmark["type"], "BOOKMARK", "{bookmark}");
        let bookmarked = revision(&bookmark["object"]);
        assert!(bookmarked >= anew, "{bookmarked}, {anew}");
        let mut watches = vec![asked.watch(b, bookmarked, "")?, asked.watch(c, bookmarked, "")?];
        let next = a.connect().post(SECRETS, &secret(&format!("next-{attempt}"))).expect(201);
        watches.extend([asked.watch(b, bookmarked, "")?, asked.watch(c, bookmarked, "")?]);
        let last = b.connect().post(SECRETS, &secret(&format!("last-{attempt}"))).expect(201);
        for watch in &mut watches {
            asked.tells(watch, &next)?;
            asked.tells(watch, &last)?;
        }
        Ok(bookmarked)
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
fn keep_busy(server: &Server, prefix: &str, how_long: Duration) {
    let (mut client, began, mut written) = (server.connect(), Instant::now(), 0);
    for number in 0.. {
        if written >= WRITES && began.elapsed() > how_long {
            return;
        }
        assert!(began.elapsed() < 4 * PATIENCE, "{written} writes in {:?}", began.elapsed());
        let answer = client.post(CONFIG_MAPS, &config_map(&format!("{prefix}-{number}"), "1"));
        // On a busy machine a group may be without a leader for a moment.
        assert!(matches!(answer.status, 201 | 503 | 504), "{}", answer.text());
        written += usize::from(answer.status == 201);
    }
}

#[test]
fn a_watch_of_one_idle_shard_goes_on_at_another_member() {
    let (bookmarked, beside) = Idle::start(&["--shards", "configmaps=8"]).goes_on_elsewhere();
    assert!(bookmarked >= beside, "bookmarks come along with what else its group writes");
}

#[test]
fn a_watch_of_idle_shards_in_busy_groups_goes_on_at_another_member() {
    let idle = Idle::start(&["--shards", "configmaps=8,secrets=3"]);
    let busy = idle.groups("configmaps");
    assert!(idle.groups("secrets").iter().all(|group| busy.contains(group)));
    idle.goes_on_elsewhere();
}

#[test]
fn a_watch_of_shards_whose_groups_are_all_idle_goes_on_at_another_member() {
    // Pods, of which there are none, make as many groups possible.
    let idle = Idle::start(&["--shards", "configmaps=2,secrets=3,pods=6", "--groups", "11"]);
    let busy = idle.groups("configmaps");
    assert!(!idle.groups("secrets").iter().any(|group| busy.contains(group)));
    idle.goes_on_elsewhere();
}
