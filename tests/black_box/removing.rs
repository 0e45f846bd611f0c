//! Members are removed while others fail, and a cluster grows beyond its initial members.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use serde_json::json;

use crate::cluster::{NAMES, Places, cluster, each, output_of, read, status, until, until_members, write};
use crate::support::{CONFIG_MAPS, Connection, Credentials, Server, config_map};

/// How long a client waits for an answer before it retries.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The pause between two writes of a client, which leaves the machine time for other work.
const PAUSE: Duration = Duration::from_millis(5);
/// How long clients write before and after an event.
const AROUND: Duration = Duration::from_millis(400);

/// Stops the clients, even when a test fails: otherwise a scope would wait for them forever.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Creates objects through a member until `is_ending` is set, and continues after failures. Returns the names of those
/// that were acknowledged, whose number `count` shows meanwhile.
fn keep_creating(member: &Credentials, prefix: &str, count: &AtomicUsize, is_ending: &AtomicBool) -> Vec<String> {
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
            201 => {
                acknowledged.push(name);
                count.store(acknowledged.len(), Ordering::SeqCst);
            }
            // The member was removed, or has no majority for now.
            status => assert!(matches!(status, 503 | 504), "{name}: {status} {}", answer.text()),
        }
        client = Some(connection);
    }
    acknowledged
}

/// Checks that a member serves every object that was acknowledged to any client.
fn has_all(server: &Server, acknowledged: &[String]) {
    let list = server.connect().read(CONFIG_MAPS);
    let items = list["items"].as_array().expect("items").iter();
    let there: BTreeSet<&str> = items.filter_map(|item| item["metadata"]["name"].as_str()).collect();
    let lost: Vec<&String> = acknowledged.iter().filter(|name| !there.contains(name.as_str())).collect();
    assert!(lost.is_empty(), "{} of {} acknowledged writes are lost: {lost:?}", lost.len(), acknowledged.len());
}

/// Waits until each server lists these members, each with a vote in every group.
fn are_members(servers: &[&Server], names: &[&str]) {
    for server in servers {
        until("the server is ready", || server.connect().get("/readyz").status == 200);
        until_members(server, names);
    }
}

/// Runs a command that must succeed, and returns its output.
fn done(server: &Server, arguments: &[&str]) -> String {
    output_of(server, &[arguments, &["--timeout", "60"]].concat())
}

/// Removes `c` through `b`, kills the leader `a` after the time `after`, and removes `c` again once `a` is back.
/// Returns `a` and `b`, and the names that were acknowledged to clients of `b` and `c` meanwhile.
fn remove_while_the_leader_is_killed(
    places: &Places,
    [a, b, c]: [Server; 3],
    after: Duration,
) -> ([Server; 2], Vec<String>) {
    // On a busy machine, a transfer may fail. The test needs `a` as leader.
    until("a leads", || cluster(&b, &["transfer", "a"]).status.success());
    let (is_ending, counts) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    let (a, mut acknowledged) = scope(|scope| {
        let ending = Ending(&is_ending);
        let members = [("b", b.credentials(), &counts[0]), ("c", c.credentials(), &counts[1])];
        let writers = members.map(|(name, member, count)| {
            let (prefix, is_ending) = (format!("{}-ms-{name}", after.as_millis()), &is_ending);
            scope.spawn(move || keep_creating(&member, &prefix, count, is_ending))
        });
        sleep(AROUND);
        until("an object was created through each member", || {
            counts.iter().all(|count| count.load(Ordering::SeqCst) > 0)
        });
        let removing = scope.spawn(|| cluster(&b, &["remove", "c", "--timeout", "5"]));
        sleep(after);
        a.kill();
        removing.join().expect("the command ends");
        let a = places.start(0);
        until("b reaches a", || each(&status(&b), "reachable").first() == Some(&json!(true)));
        let output = done(&b, &["remove", "c"]);
        assert!(matches!(&*output, "c is not a member any more\n" | "there is no member \"c\"\n"), "{output}");
        until("c is removed from every group", || each(&status(&b), "name") == ["a", "b"]);
        sleep(AROUND);
        drop(ending);
        let acknowledged = writers.map(|writer| writer.join().expect("a writer"));
        assert!(acknowledged.iter().all(|by_one| !by_one.is_empty()), "no object was created through a member");
        (a, acknowledged.concat())
    });
    are_members(&[&a, &b], &["a", "b"]);
    // The other members report the removal of `c` in every group.
    until("c knows", || c.connect().get("/readyz/etcd").text().contains("this server was removed from its cluster"));
    for (server, name) in [(&a, "a"), (&b, "b")] {
        let last = format!("{}-ms-last-{name}", after.as_millis());
        write(server, &last);
        acknowledged.push(last);
    }
    ([a, b], acknowledged)
}

#[test]
fn a_removal_interrupted_by_the_leaders_death_can_be_repeated() {
    let mut places = Places::new();
    places.more = ["--shards", "configmaps=3", "--groups", "3"].map(String::from).to_vec();
    let mut servers = places.start_all();
    write(&servers[2], "first");
    let mut acknowledged = vec!["first".to_owned()];
    for after in [20, 60, 120, 200].map(Duration::from_millis) {
        let ([a, b], meanwhile) = remove_while_the_leader_is_killed(&places, servers, after);
        acknowledged.extend(meanwhile);
        [&a, &b].into_iter().for_each(|server| has_all(server, &acknowledged));

        // An empty disk makes c a new replica: it must be admitted, and receives all data.
        fs::remove_dir_all(places.directories[2].path()).expect("an empty disk");
        let c = places.begin(2);
        let join = format!("c={}", places.address(2));
        assert_eq!(done(&b, &["join", &join]), "c is a member\n");
        are_members(&[&a, &b, &c], &NAMES);
        has_all(&c, &acknowledged);
        servers = [a, b, c];
    }
    // c votes: a majority remains when one of the others ends.
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
        // Every member accepts the command, even one that was just admitted.
        assert_eq!(done(by, &["join", &join]), format!("{name} is a member\n"));
    }
    let all = [&a, &b, &c, &d, &e];
    are_members(&all, &["a", "b", "c", "d", "e"]);
    for (server, name) in all.into_iter().zip('a'..) {
        assert_eq!(status(server)["groups"].as_array().map(Vec::len), Some(9), "the status shows every group");
        read(server, "first");
        write(server, &format!("through-{name}"));
    }

    // Members that joined later form a majority just as initial ones do.
    let (is_ending, rest) = (AtomicBool::new(false), [&c, &d, &e]);
    let acknowledged = scope(|scope| {
        let ending = Ending(&is_ending);
        let writers = rest.map(|server| {
            let (member, count, is_ending) = (server.credentials(), AtomicUsize::new(0), &is_ending);
            scope.spawn(move || keep_creating(&member, &format!("by-{}", member.address.port()), &count, is_ending))
        });
        sleep(AROUND);
        a.kill();
        b.kill();
        for (server, name) in rest.into_iter().zip('c'..) {
            let name = format!("without-two-{name}");
            until("a write succeeds", || {
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
    // Again three members: one of them may fail, and two are a majority.
    c.kill();
    for (server, name) in [(&d, "with-two-d"), (&e, "with-two-e")] {
        write(server, name);
        has_all(server, &acknowledged);
        ["first", "through-a", "without-two-c", name].into_iter().for_each(|name| read(server, name));
    }
}
