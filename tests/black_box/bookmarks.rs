//! Bookmarks: a watch ends with one, and a client can resume from it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::{Places, status, until};
use crate::support::{Answer, CONFIG_MAPS, DataDir, PATIENCE, Server, Watch, config_map, revision};

/// A second resource, whose changes the watches do not receive.
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// A resource in the same group as secrets.
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
/// How long a watch lasts whose history window passes soon.
const SECONDS: u64 = 5;
/// How long a watch lasts that must see a write before its final bookmark, even on a busy machine.
const LONG_SECONDS: u64 = 30;
/// The history windows, in seconds, of one attempt after another in tests that wait until the window has passed. The
/// first one is enough for the requests of a test on a quiet machine.
const HISTORY_SECONDS: [u64; 5] = [8, 16, 32, 64, 128];
/// The smallest number of other writes.
const WRITES: usize = 20;

fn watch(server: &Server, more: &str) -> Watch {
    // Controllers also write to this namespace.
    let own = "fieldSelector=metadata.name!%3Dkube-root-ca.crt";
    let path = format!("{CONFIG_MAPS}?watch=1&{own}&timeoutSeconds={LONG_SECONDS}{more}");
    let watch = server.connect().watch(&path).expect("an answer");
    watch.unwrap_or_else(|refused| panic!("{}", refused.text()))
}

/// Checks that a watch gets one bookmark before it ends, and that a watch from there misses nothing. `flags` decide how
/// many shards the resource has.
fn a_watch_ends_with_a_bookmark(flags: &[&str]) {
    let directory = DataDir::new();
    let server = directory.start_with(flags);
    let first = revision(&server.connect().post(CONFIG_MAPS, &config_map("first", "1")).expect(201));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "beside"}});
    let beside = revision(&server.connect().post(SECRETS, &secret).expect(201));
    let mut without = watch(&server, &format!("&resourceVersion={first}"));
    let mut with = watch(&server, &format!("&resourceVersion={first}&allowWatchBookmarks=1"));
    let second = revision(&server.connect().post(CONFIG_MAPS, &config_map("second", "1")).expect(201));
    assert_eq!(with.next().expect("an event")["object"]["metadata"]["name"], "second");
    let bookmark = with.next().expect("a bookmark");
    let bookmarked = bookmark["object"]["metadata"]["resourceVersion"].clone();
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": bookmarked}});
    assert_eq!((&bookmark["type"], &bookmark["object"]["kind"]), (&json!("BOOKMARK"), &object["kind"]));
    assert_eq!(bookmark["object"]["metadata"], object["metadata"], "a bookmark contains only a revision");
    assert!(revision(&bookmark["object"]) >= second && second > beside);
    with.next().expect_err("the watch ends after one bookmark");
    assert_eq!(without.next().expect("an event")["object"]["metadata"]["name"], "second");
    without.next().expect_err("without the option, the watch has no bookmark");

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

/// Returns a Secret of this name.
fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
}

/// Returns whether a watch is refused because its revision is older than the history.
fn is_past(watch: Result<Watch, Answer>) -> bool {
    match watch {
        Ok(mut watch) => watch.next().is_ok_and(|event| is_gone(&event)),
        Err(answer) => answer.status == 410,
    }
}

/// Returns whether an event is a 410: the revision is older than the history.
fn is_gone(event: &Value) -> bool {
    event["object"]["code"] == 410
}

/// Says that the revision became older than the history window, as may happen on a slow machine. The attempt must be
/// repeated with a newer revision.
struct TooLate;

/// When a revision was read. Watches can resume from it for at least the history window.
struct Asked {
    at: Instant,
    history: Duration,
}

impl Asked {
    /// Checks that the history window has passed, because nothing else justifies a 410.
    fn refused(&self, answer: &str) -> TooLate {
        assert!(self.at.elapsed() >= self.history, "{answer} after {:?}", self.at.elapsed());
        TooLate
    }

    /// Watches secrets from a revision.
    fn watch(&self, server: &Server, from: u64, more: &str) -> Result<Watch, TooLate> {
        let path = format!("{SECRETS}?watch=1&resourceVersion={from}{more}");
        server.watch(&path).map_err(|answer| {
            assert_eq!(answer.status, 410, "{}", answer.text());
            self.refused(&answer.text())
        })
    }

    /// Returns the next event of a watch.
    fn next_event(&self, watch: &mut Watch) -> Result<Value, TooLate> {
        let event = watch.next().expect("an event");
        if is_gone(&event) { Err(self.refused(&event.to_string())) } else { Ok(event) }
    }

    /// Checks that the next event of a watch is the creation of this object.
    fn expect_created(&self, watch: &mut Watch, created: &Value) -> Result<(), TooLate> {
        let event = self.next_event(watch)?;
        assert_eq!((&event["type"], &event["object"]["metadata"]), (&json!("ADDED"), &created["metadata"]));
        Ok(())
    }
}

/// A cluster of three members.
struct Idle {
    servers: [Server; 3],
    history: Duration,
    /// Keeps the data directories until the servers have ended.
    _places: Places,
}

impl Idle {
    fn start(flags: &[&str], history: Duration) -> Idle {
        let (mut places, seconds) = (Places::new(), history.as_secs().to_string());
        places.more = flags.iter().chain(&["--history-seconds", &seconds]).map(|flag| (*flag).to_owned()).collect();
        Idle { servers: places.start_all(), history, _places: places }
    }

    /// Waits until the history window of secrets has passed, while other resources are written. Returns the revision of
    /// a ServiceAccount, which was created before the wait.
    fn pass(&self) -> u64 {
        let servers = &self.servers;
        let made = revision(&servers[2].connect().create(SECRETS, &secret("made")));
        let listed = revision(&servers[0].connect().read(SECRETS));
        assert!(listed >= made, "{listed}, {made}");
        let beside = servers[2].connect().create(ACCOUNTS, &json!({"metadata": {"name": "beside"}}));
        // A member that answers this read has applied the object.
        servers[0].connect().read(&format!("{ACCOUNTS}/beside"));
        keep_busy(&servers[1], self.history);
        for server in servers {
            until("the listed revision is too old, although no secret was written", || {
                let path = format!("{SECRETS}?watch=1&resourceVersion={listed}&timeoutSeconds=1");
                is_past(server.watch(&path))
            });
        }
        revision(&beside)
    }

    /// Lists and watches through one member, and resumes through the others after that watch's bookmark. Each of them
    /// must deliver later changes exactly once. Returns the revision of the bookmark.
    fn go_on(&self) -> Result<u64, TooLate> {
        let [a, b, c] = &self.servers;
        let asked = Asked { at: Instant::now(), history: self.history };
        let anew = revision(&a.connect().read(SECRETS));
        let options = format!("&allowWatchBookmarks=1&timeoutSeconds={SECONDS}");
        let bookmark = asked.next_event(&mut asked.watch(a, anew, &options)?)?;
        assert_eq!(bookmark["type"], "BOOKMARK", "{bookmark}");
        let bookmarked = revision(&bookmark["object"]);
        assert!(bookmarked >= anew, "{bookmarked}, {anew}");
        let mut watches = vec![asked.watch(b, bookmarked, "")?, asked.watch(c, bookmarked, "")?];
        let next = a.connect().create(SECRETS, &secret("next"));
        watches.extend([asked.watch(b, bookmarked, "")?, asked.watch(c, bookmarked, "")?]);
        let last = b.connect().create(SECRETS, &secret("last"));
        for watch in &mut watches {
            asked.expect_created(watch, &next)?;
            asked.expect_created(watch, &last)?;
        }
        Ok(bookmarked)
    }

    /// Returns the groups of a resource, according to a member.
    fn groups(&self, resource: &str) -> Vec<Value> {
        let status = status(&self.servers[0]);
        let mut tables = status["shards"].as_array().expect("tables").iter();
        let table = tables.find(|table| table["resource"] == resource).expect("the table");
        table["groups"].as_array().expect("groups").clone()
    }
}

/// Creates ConfigMaps for this long.
fn keep_busy(server: &Server, how_long: Duration) {
    let (mut client, began, mut written) = (server.connect(), Instant::now(), 0);
    for number in 0.. {
        if written >= WRITES && began.elapsed() > how_long {
            return;
        }
        assert!(began.elapsed() < 4 * PATIENCE, "{written} writes in {:?}", began.elapsed());
        let answer = client.post(CONFIG_MAPS, &config_map(&format!("busy-{number}"), "1"));
        // On a busy machine, a group may have no leader for a moment.
        assert!(matches!(answer.status, 201 | 503 | 504), "{}", answer.text());
        written += usize::from(answer.status == 201);
    }
}

/// Starts three members with these flags, and lets `check` look at them. Waits until the history window of secrets has
/// passed, while other resources are written. Then checks that a watch through one member can be resumed through the
/// others. Returns the revision of that watch's last bookmark, and the revision of a ServiceAccount, which was created
/// before the wait.
fn goes_on_elsewhere(flags: &[&str], check: impl Fn(&Idle)) -> (u64, u64) {
    for seconds in HISTORY_SECONDS {
        let idle = Idle::start(flags, Duration::from_secs(seconds));
        check(&idle);
        let beside = idle.pass();
        if let Ok(bookmarked) = idle.go_on() {
            return (bookmarked, beside);
        }
    }
    panic!("the machine is too slow for history windows of {HISTORY_SECONDS:?} seconds");
}

#[test]
fn a_watch_of_one_idle_shard_resumes_on_another_member() {
    let (bookmarked, beside) = goes_on_elsewhere(&["--shards", "configmaps=8"], |_| {});
    assert!(bookmarked >= beside, "bookmarks advance with other writes of the same group");
}

#[test]
fn a_watch_of_idle_shards_in_busy_groups_resumes_on_another_member() {
    goes_on_elsewhere(&["--shards", "configmaps=8,secrets=3"], |idle| {
        let busy = idle.groups("configmaps");
        assert!(idle.groups("secrets").iter().all(|group| busy.contains(group)));
    });
}

#[test]
fn a_watch_of_shards_in_idle_groups_resumes_on_another_member() {
    // No pod exists: the shards of pods only allow this many groups.
    goes_on_elsewhere(&["--shards", "configmaps=2,secrets=3,pods=6", "--groups", "11"], |idle| {
        let busy = idle.groups("configmaps");
        assert!(!idle.groups("secrets").iter().any(|group| busy.contains(group)));
    });
}
