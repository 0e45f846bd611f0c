//! Members that go while others fail, and more members than found a cluster.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use serde_json::json;

use crate::cluster::{NAMES, Places, cluster, each, read, status, until, write};
use crate::support::{CONFIG_MAPS, Connection, Credentials, Server, config_map};

/// How long a client waits for one answer before it tries something else.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Between two writes of a client: others need the machine, too.
const PAUSE: Duration = Duration::from_millis(5);
/// How long clients write before and after something happens.
const AROUND: Duration = Duration::from_millis(400);

/// Tells clients to end, also when a test fails: who waits for them would wait for ever.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Creates one object after the other through a member, whatever becomes of that, until it is told to end; the names
/// of those that were acknowledged.
fn keep_creating(member: &Credentials, prefix: &str, is_ending: &AtomicBool) -> Vec<String> {
    let connect = || Connection::open_within(member.address, &member.administrator, ANSWER_MAX);
    let (mut client, mut acknowledged) = (None, Vec::new());
    for name in (0..).map(|number| format!("{prefix}-{number:05}")) {
        if is_ending.load(Ordering::SeqCst) {
            break;
        }
        sleep(PAUSE);
        let Ok(mut connection) = client.take().map_or_else(connect, Ok) else { continue };
        let object = config_map(&name, &name).to_string();
        let sent = connection.call("POST", CONFIG_MAPS, &[("Content-Type", "application/json")], object.as_bytes());
        let Ok(answer) = sent else { continue };
        match answer.status {
            201 => acknowledged.push(name),
            // It was removed, or there is no majority for now.
            status => assert!(matches!(status, 503 | 504), "{name}: {status} {}", answer.text()),
        }
        client = Some(connection);
    }
    acknowledged
}

/// Checks that a member shows everything that was acknowledged, by whomever.
fn has_all(server: &Server, acknowledged: &[String]) {
    let list = server.connect().get(CONFIG_MAPS).expect(200);
    let items = list["items"].as_array().expect("items").iter();
    let there: BTreeSet<&str> = items.filter_map(|item| item["metadata"]["name"].as_str()).collect();
    let lost: Vec<&String> = acknowledged.iter().filter(|name| !there.contains(name.as_str())).collect();
    assert!(lost.is_empty(), "{} of {} acknowledged writes are lost: {lost:?}", lost.len(), acknowledged.len());
}

/// Waits until members see each other as those that there are, each with a vote in every group.
fn are_members(servers: &[&Server], names: &[&str]) {
    for server in servers {
        until("it is ready", || server.connect().get("/readyz").status == 200);
        let wanted = (names.iter().map(|name| json!(name)).collect(), vec![json!(true); names.len()]);
        until(&format!("{names:?} are the members and vote"), || {
            let status = status(server);
            (each(&status, "name"), each(&status, "votes")) == wanted
        });
    }
}

/// What a command says that succeeds. On a busy machine a group may be without a leader for a moment, which is no
/// reason to fail; every other one is.
fn done(server: &Server, arguments: &[&str]) -> String {
    let arguments = [arguments, &["--timeout", "60"]].concat();
    let mut said = String::new();
    until("somebody leads", || {
        let output = cluster(server, &arguments);
        let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        said = text.into_owned();
        assert!(output.status.success() || error.contains("has no leader"), "{arguments:?}: {error}");
        output.status.success()
    });
    said
}

/// Has `c` removed by a member while the leader `a` is killed so long after that was begun, and once more when `a` is
/// back. Returns `a`, and what was acknowledged to clients of the others all the while.
fn remove_while_the_leader_is_killed(
    places: &Places,
    [a, b, c]: [Server; 3],
    after: Duration,
) -> ([Server; 2], Vec<String>) {
    // On a busy machine it may not take over in time; that it leads is what is needed here.
    until("a leads", || cluster(&b, &["transfer", "a"]).status.success());
    let is_ending = AtomicBool::new(false);
    let (a, mut acknowledged) = scope(|scope| {
        let ending = Ending(&is_ending);
        let writers = [("b", b.credentials()), ("c", c.credentials())].map(|(name, member)| {
            let (prefix, is_ending) = (format!("{}-ms-{name}", after.as_millis()), &is_ending);
            scope.spawn(move || keep_creating(&member, &prefix, is_ending))
        });
        sleep(AROUND);
        let removing = scope.spawn(|| cluster(&b, &["remove", "c", "--timeout", "5"]));
        sleep(after);
        a.kill();
        removing.join().expect("it ends, one way or the other");
        let a = places.start(0);
        until("b has found a again", || each(&status(&b), "reachable").first() == Some(&json!(true)));
        let told = done(&b, &["remove", "c"]);
        assert!(matches!(&*told, "c is not a member any more\n" | "there is no member \"c\"\n"), "{told}");
        assert_eq!(each(&status(&b), "name"), ["a", "b"], "what is told to be done is done, in every group");
        sleep(AROUND);
        drop(ending);
        let acknowledged = writers.map(|writer| writer.join().expect("a writer"));
        assert!(acknowledged.iter().all(|by_one| !by_one.is_empty()), "nothing was written before");
        (a, acknowledged.concat())
    });
    are_members(&[&a, &b], &["a", "b"]);
    // It is told so by the others, of every group.
    until("c knows", || c.connect().get("/readyz/etcd").text().contains("this server was removed from its cluster"));
    for (server, name) in [(&a, "a"), (&b, "b")] {
        let last = format!("{}-ms-last-{name}", after.as_millis());
        write(server, &last);
        acknowledged.push(last);
    }
    ([a, b], acknowledged)
}

#[test]
fn a_removal_whose_leader_is_killed_is_finished_by_asking_again() {
    let mut places = Places::new();
    places.more = ["--shards", "configmaps=3", "--groups", "3"].map(String::from).to_vec();
    let mut servers = places.start_all();
    write(&servers[2], "first");
    let mut acknowledged = vec!["first".to_owned()];
    for after in [20, 60, 120, 200].map(Duration::from_millis) {
        let ([a, b], meanwhile) = remove_while_the_leader_is_killed(&places, servers, after);
        acknowledged.extend(meanwhile);
        [&a, &b].into_iter().for_each(|server| has_all(server, &acknowledged));

        // Who was removed is nobody once its disk is empty, and is sent everything when it is admitted.
        fs::remove_dir_all(places.directories[2].path()).expect("its disk is emptied");
        let c = places.begin(2);
        let join = format!("c={}", places.address(2));
        assert_eq!(done(&b, &["join", &join]), "c is a member\n");
        are_members(&[&a, &b, &c], &NAMES);
        has_all(&c, &acknowledged);
        servers = [a, b, c];
    }
    // It counts: one of the others may fail.
    let [a, b, c] = servers;
    b.kill();
    until("two of three are enough", || c.connect().get("/readyz").status == 200);
    write(&c, "last");
    read(&a, "last");
}

#[test]
fn three_members_become_five_of_which_two_may_fail_and_three_again() {
    let mut places = Places::of(5);
    places.more = ["--shards", "configmaps=8"].map(String::from).to_vec();
    let [a, b, c] = places.start_all();
    write(&a, "first");
    let (d, e) = (places.begin(3), places.begin(4));
    for (name, member, by) in [("d", 3, &a), ("e", 4, &d)] {
        let join = format!("{name}={}", places.address(member));
        // Any member can be asked, also one that has just become one.
        assert_eq!(done(by, &["join", &join]), format!("{name} is a member\n"));
    }
    let all = [&a, &b, &c, &d, &e];
    are_members(&all, &["a", "b", "c", "d", "e"]);
    for (server, name) in all.into_iter().zip('a'..) {
        assert_eq!(status(server)["groups"].as_array().map(Vec::len), Some(9), "it is told of every group");
        read(server, "first");
        write(server, &format!("through-{name}"));
    }

    // Those who came later are as good as those who founded it.
    let (is_ending, rest) = (AtomicBool::new(false), [&c, &d, &e]);
    let acknowledged = scope(|scope| {
        let ending = Ending(&is_ending);
        let writers = rest.map(|server| {
            let (member, is_ending) = (server.credentials(), &is_ending);
            scope.spawn(move || keep_creating(&member, &format!("by-{}", member.address.port()), is_ending))
        });
        sleep(AROUND);
        a.kill();
        b.kill();
        for (server, name) in rest.into_iter().zip('c'..) {
            let name = format!("without-two-{name}");
            until("writes go on", || {
                matches!(server.connect().post(CONFIG_MAPS, &config_map(&name, &name)).status, 201 | 409)
            });
        }
        sleep(AROUND);
        drop(ending);
        writers.map(|writer| writer.join().expect("a writer")).concat()
    });
    rest.into_iter().for_each(|server| has_all(server, &acknowledged));

    for (by, name) in [(&d, "a"), (&e, "b")] {
        done(by, &["remove", name]);
    }
    are_members(&rest, &["c", "d", "e"]);
    // Three again: one of them may fail, and two are a majority.
    c.kill();
    for (server, name) in [(&d, "with-two-d"), (&e, "with-two-e")] {
        write(server, name);
        has_all(server, &acknowledged);
        ["first", "through-a", "without-two-c", name].into_iter().for_each(|name| read(server, name));
    }
}
