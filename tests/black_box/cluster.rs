//! Clusters of three servers, and their administration by `flotilla cluster`.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{as_admin, errors, successful};
use crate::support::{
    Answer, CONFIG_MAPS, Connection, DataDir, PATIENCE, Server, config_map, config_map_path, ports, revision,
};

pub const NAMES: [&str; 3] = ["a", "b", "c"];
/// The names of members that join later.
const MORE_NAMES: [&str; 2] = ["d", "e"];
const CLUSTER: &str = "/flotilla/v1/cluster";

/// The names, addresses and directories of a cluster's servers: three initial members, and servers that join later.
pub struct Places {
    pub directories: Vec<DataDir>,
    ports: Vec<u16>,
    pub pki: PathBuf,
    /// Flags for every server.
    pub more: Vec<String>,
}

impl Places {
    pub fn new() -> Places {
        Places::of(NAMES.len())
    }

    /// Makes places for `count` servers, at most five.
    pub fn of(count: usize) -> Places {
        let directories = (0..count).map(|_| DataDir::new()).collect::<Vec<_>>();
        let ports = ports::free(count).iter().map(SocketAddr::port).collect();
        let pki = directories[0].path().with_file_name("shared-pki");
        Places { directories, ports, pki, more: Vec::new() }
    }

    pub fn address(&self, member: usize) -> String {
        format!("127.0.0.1:{}", self.ports[member])
    }

    /// Starts a member, and waits until it is ready.
    pub fn start(&self, member: usize) -> Server {
        let flags = self.flags(member);
        self.directories[member].start_with(&flags.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts a member, and waits until it answers, ready or not.
    pub fn begin(&self, member: usize) -> Server {
        let flags = self.flags(member);
        self.directories[member].begin_with(&flags.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn flags(&self, member: usize) -> Vec<String> {
        let names = [&NAMES[..], &MORE_NAMES].concat();
        // A server that joins later lists the initial members and itself.
        let initial = (0..self.ports.len()).filter(|other| *other < NAMES.len() || *other == member);
        let initial: Vec<_> = initial.map(|other| format!("{}={}", names[other], self.address(other))).collect();
        let (initial, pki) = (initial.join(","), self.pki.display().to_string());
        let address = self.address(member);
        let (name, peer_listen) = (names[member].to_owned(), "--peer-listen".to_owned());
        let initial_cluster = "--initial-cluster".to_owned();
        let own =
            ["--name".to_owned(), name, peer_listen, address, initial_cluster, initial, "--pki-dir".to_owned(), pki];
        own.into_iter().chain(self.more.iter().cloned()).collect()
    }

    /// Starts the three initial members, which form a cluster.
    pub fn start_all(&self) -> [Server; 3] {
        scope(|scope| {
            let starting = [0, 1, 2].map(|member| scope.spawn(move || self.start(member)));
            starting.map(|started| started.join().expect("a server"))
        })
    }
}

/// Runs `flotilla cluster` against a server.
pub fn cluster(server: &Server, arguments: &[&str]) -> Output {
    as_admin(server, &[&["cluster"], arguments].concat(), &[])
}

/// Errors of `flotilla cluster` that pass: on a busy machine, a group may have no leader for a moment, or a member may
/// not answer or not keep up in time.
const PASSING: [&str; 9] = [
    "has no leader",
    "does not answer", // the server, within the time that the command allows
    "did not answer in time",
    "the peer cannot be reached",
    "the member does not keep up",
    "the member has not taken over",
    "nobody takes over from it",
    "nobody else can lead",
    "members that would vote can be reached and have what was written",
];

/// Runs a command that must succeed, and returns its output. Only [`PASSING`] errors permit another attempt.
pub fn output_of(server: &Server, arguments: &[&str]) -> String {
    output_and_attempts(server, arguments).0
}

/// Does the same as [`output_of`]. Also returns the number of attempts.
fn output_and_attempts(server: &Server, arguments: &[&str]) -> (String, usize) {
    let (deadline, mut attempts) = (Instant::now() + PATIENCE, 1);
    loop {
        let output = cluster(server, arguments);
        let error = errors(&output);
        let passes = PASSING.iter().any(|text| error.contains(text));
        if output.status.success() || !passes || Instant::now() > deadline {
            return (successful(output), attempts);
        }
        attempts += 1;
        sleep(Duration::from_millis(20));
    }
}

/// Runs a command that must fail, and returns its error output.
fn refused(server: &Server, arguments: &[&str]) -> String {
    let output = cluster(server, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).expect("text")
}

pub fn status(server: &Server) -> Value {
    serde_json::from_str(&output_of(server, &["status", "-o", "json"])).expect("JSON")
}

/// Returns one field of every member.
pub fn each(status: &Value, field: &str) -> Vec<Value> {
    status["members"].as_array().expect("members").iter().map(|member| member[field].clone()).collect()
}

/// Returns how many groups a member leads, according to a server.
fn led(server: &Server, name: &str) -> usize {
    let status = status(server);
    let members = status["members"].as_array().expect("members");
    let member = members.iter().find(|member| member["name"] == name).expect("the member");
    member["leads"].as_array().expect("groups").len()
}

pub fn until(what: &str, holds: impl FnMut() -> bool) {
    until_within(PATIENCE, what, holds);
}

pub fn until_within(patience: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        sleep(Duration::from_millis(20));
    }
}

/// Creates an object through a member, as soon as its group has a leader.
pub fn write(server: &Server, name: &str) {
    server.connect().create(CONFIG_MAPS, &config_map(name, name));
}

/// Checks that a member serves an object, as soon as its group has a leader.
pub fn read(server: &Server, name: &str) {
    assert_eq!(server.connect().read(&config_map_path(name))["data"]["value"], name);
}

/// Waits until a server lists these members, each with a vote. It may learn of a change later than others.
pub fn until_members(server: &Server, names: &[&str]) {
    let wanted: (Vec<Value>, _) = (names.iter().map(|name| json!(name)).collect(), vec![json!(true); names.len()]);
    until(&format!("{names:?} are the members and vote"), || {
        let status = status(server);
        (each(&status, "name"), each(&status, "votes")) == wanted
    });
}

#[test]
fn a_member_that_lost_its_disk_is_replaced_and_members_are_removed() {
    let places = Places::new();
    let [a, b, c] = places.start_all();
    let before = status(&a);
    assert_eq!(each(&before, "name"), NAMES);
    assert_eq!(each(&before, "votes"), [true; 3]);
    until("all members reach each other", || each(&status(&a), "reachable") == [true; 3]);
    write(&a, "first");
    read(&b, "first");
    write(&c, "second");
    read(&a, "second");

    c.kill();
    fs::remove_dir_all(places.directories[2].path()).expect("the disk is lost");
    let address = places.address(2);
    let join = format!("c={address}");
    assert!(refused(&a, &["join", &join]).contains("nobody answers at"));
    write(&b, "meanwhile");
    let c = scope(|scope| {
        // The command waits for a server that is about to start.
        let admitted = scope.spawn(|| output_of(&a, &["join", &join]));
        sleep(Duration::from_millis(500));
        // The server is ready only after its admission.
        let c = places.start(2);
        assert_eq!(admitted.join().expect("a command"), "c is a member\n");
        c
    });
    for name in ["first", "second", "meanwhile"] {
        read(&c, name);
    }
    until_members(&c, &NAMES);
    assert_ne!(each(&before, "id")[2], each(&status(&c), "id")[2]);
    assert_eq!(output_of(&b, &["join", &join]), "c is a member\n");

    // c votes: a majority remains when one of the others ends.
    b.kill();
    write(&c, "with-two");
    read(&a, "with-two");
    let b = places.start(1);
    read(&b, "with-two");

    let mut watch = c.watch(&format!("{CONFIG_MAPS}?watch=1")).expect("a watch");
    let (removed, attempts) = output_and_attempts(&a, &["remove", "c"]);
    // An attempt whose outcome is unknown may have removed it.
    let is_told = removed == "c is not a member any more\n";
    assert!(is_told || attempts > 1 && removed == "there is no member \"c\"\n", "{removed}");
    until("c is not ready", || c.connect().get("/readyz").status == 500);
    let why = "this server was removed from its cluster";
    until("c says why", || c.connect().get("/readyz/etcd").text().contains(why));
    unavailable(&c.connect().get(&format!("{CONFIG_MAPS}?resourceVersion=0")));
    unavailable(&c.connect().get(CONFIG_MAPS));
    while watch.next().is_ok() {} // until the watch ends
    until("c reports that", || c.messages().contains("removed from its cluster"));
    assert_eq!(output_of(&a, &["remove", "c"]), "there is no member \"c\"\n");
    until_members(&b, &["a", "b"]);
    drop(c);
    write(&b, "without-c");
    read(&a, "without-c");
}

#[test]
fn a_replacement_serves_nothing_before_it_has_caught_up_in_every_group() {
    let mut places = Places::new();
    places.more = ["--shards", "configmaps=6", "--groups", "6"].map(String::from).to_vec();
    let [a, b, c] = places.start_all();
    let names: Vec<String> = (0..24).map(|number| format!("object-{number}")).collect();
    names.iter().for_each(|name| write(&b, name));
    c.kill();
    fs::remove_dir_all(places.directories[2].path()).expect("the disk is lost");
    let c = places.begin(2);
    let is_ready = AtomicBool::new(false);
    scope(|scope| {
        // Reads of any state are answered from local data, which must never be incomplete.
        let reading = scope.spawn(|| {
            let mut client = c.connect();
            let mut next = names.iter().cycle();
            while !is_ready.load(Ordering::SeqCst) {
                let name = next.next().expect("a name");
                let answer = client.get(&format!("{}?resourceVersion=0", config_map_path(name)));
                assert!(matches!(answer.status, 200 | 503), "{name}: {}", answer.text());
            }
        });
        let join = format!("c={}", places.address(2));
        until("the replacement is admitted", || cluster(&a, &["join", &join]).status.success());
        until("c is ready", || reading.is_finished() || c.connect().get("/readyz").status == 200);
        is_ready.store(true, Ordering::SeqCst);
        reading.join().expect("no object seems to be missing");
    });
    names.iter().for_each(|name| read(&c, name));
}

/// Checks that an answer is 503, with a `Status` and the time after which to try again.
pub fn unavailable(answer: &Answer) {
    let status = answer.expect(503);
    assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!("ServiceUnavailable")));
    assert!(answer.header("retry-after").is_some());
}

#[test]
fn a_member_that_starts_alone_serves_its_own_state() {
    let places = Places::new();
    let servers = places.start_all();
    write(&servers[0], "first");
    let first = revision(&servers[0].connect().read(&config_map_path("first")));
    write(&servers[1], "second");
    read(&servers[2], "second");
    for server in servers {
        assert_eq!(server.terminate().code(), Some(0));
    }

    let c = places.begin(2);
    let mut client = c.connect();
    assert_eq!(client.get("/livez").status, 200);
    let unready = client.get("/readyz");
    assert!(unready.status == 500 && unready.text().contains("[-]etcd failed: reason withheld"), "{}", unready.text());
    until("c knows that it is a member", || client.get(&format!("{CONFIG_MAPS}?resourceVersion=0")).status == 200);
    assert!(client.get("/readyz/etcd").text().contains("no majority of the members is reached"));
    let local = client.get(&format!("{}?resourceVersion=0", config_map_path("second"))).expect(200);
    assert_eq!(local["data"]["value"], "second");
    let watch = c.connect().watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={first}")).expect("an answer");
    let mut watch = watch.expect("a watch");
    // Controllers may have written to this namespace as well.
    while watch.next().expect("an event")["object"]["metadata"]["name"] != "second" {}
    unavailable(&client.get(&config_map_path("second")));
    unavailable(&client.post(CONFIG_MAPS, &config_map("third", "third")));

    let b = places.start(1);
    until("two of three are enough", || client.get("/readyz").status == 200);
    write(&c, "third");
    read(&b, "third");
    drop(b);
    until("c is alone again", || client.get("/readyz").status == 500);
    assert_eq!(c.terminate().code(), Some(0));
}

#[test]
fn a_join_interrupted_by_the_leaders_death_can_be_repeated() {
    let places = Places::new();
    let [a, b, c] = places.start_all();
    write(&a, "first");
    output_of(&b, &["transfer", "a"]);
    c.kill();
    fs::remove_dir_all(places.directories[2].path()).expect("the disk is lost");
    let c = places.begin(2);
    let join = format!("c={}", places.address(2));
    scope(|scope| {
        let joining = scope.spawn(|| cluster(&b, &["join", &join, "--timeout", "5"]));
        sleep(Duration::from_millis(60));
        a.kill();
        joining.join().expect("the command ends");
    });
    let a = places.begin(0);
    until("a repeated join succeeds", || cluster(&b, &["join", &join]).status.success());
    for server in [&a, &b, &c] {
        until("the server is ready", || server.connect().get("/readyz").status == 200);
        until_members(server, &NAMES);
        read(server, "first");
    }
    // c, which lost its disk, votes.
    b.kill();
    write(&c, "second");
}

/// That no request fails meanwhile is tested by the rolling restarts of the fault tests.
#[test]
fn leadership_is_handed_over() {
    let places = Places::new();
    let [a, b, c] = places.start_all();
    // Another one may be elected by chance between the command and the check.
    until("b leads", || {
        assert_eq!(output_of(&a, &["transfer", "b"]), "b leads every group\n");
        led(&c, "b") == 1
    });
    write(&a, "first");
    assert_eq!(output_of(&c, &["transfer", "b", "--group", "default"]), "b leads the group default\n");
    assert_eq!(output_of(&a, &["drain", "b"]), "others lead what b led\n");
    until("b leads nothing", || led(&b, "b") == 0);
    until("c shows that", || output_of(&c, &["status"]).contains("0 (drained)"));
    until("b is drained", || refused(&a, &["transfer", "b"]).contains("b: the member is drained"));
    assert_eq!(output_of(&a, &["drain", "b", "--undo"]), "b may lead again\n");
    until("b is not drained", || !output_of(&b, &["status"]).contains("drained"));
    write(&b, "second");
    read(&c, "second");
    let text = output_of(&c, &["status"]);
    assert!(text.contains("as c sees it") && text.contains("MEMBER") && text.contains("default"), "{text}");
    until("d is unknown", || refused(&a, &["drain", "d"]).contains("there is no member \"d\""));
    let to_none = ["transfer", "b", "--group", "none"];
    until("the group is unknown", || refused(&a, &to_none).contains("there is no group \"none\""));
    until("all of them are ready", || [&a, &b, &c].iter().all(|server| server.connect().get("/readyz").status == 200));
    for server in [a, b, c] {
        assert_eq!(server.terminate().code(), Some(0));
    }
}

/// Takes turns, each with another number, until so many are decided. A turn without a result is undecided: on a busy
/// machine, a group may have no leader for a moment.
pub fn take_turns(wanted: usize, mut take: impl FnMut(usize) -> Option<()>) {
    let mut decided = 0;
    for turn in 0..10 * wanted {
        decided += usize::from(take(turn).is_some());
        if decided == wanted {
            return;
        }
    }
    panic!("{decided} of {} turns were answered", 10 * wanted);
}

/// Writes one object through one replica after the other without a pause, beginning with another one in each turn.
/// Returns `None` if an answer is unknown: on a busy machine, the group may have no leader for a moment.
fn take_turn(each: &mut [Connection; 3], turn: usize) -> Option<()> {
    const MERGE: &str = "application/merge-patch+json";
    const APPLY: &str = "application/apply-patch+yaml";
    let name = format!("turn-{turn}");
    let (path, made) = (config_map_path(&name), config_map(&name, "made"));
    let mut through = |n: usize, method: &str, content_type: &str, body: &Value| {
        let path = if content_type == APPLY { format!("{path}?fieldManager=test") } else { path.clone() };
        let (body, member) = (body.to_string(), (turn + n) % 3);
        let body = if method == "DELETE" { Vec::new() } else { body.into_bytes() };
        let answer = each[member].request(method, &path, content_type, &body);
        (!matches!(answer.status, 503 | 504)).then_some(answer)
    };
    let nothing = json!({});
    let same = json!({"data": {"value": "put"}});
    assert_eq!(through(0, "PATCH", MERGE, &same)?.status, 404);
    let first = through(0, "PATCH", APPLY, &made)?.expect(201);
    let mut object = through(1, "PATCH", MERGE, &json!({"data": {"value": "patched"}}))?.expect(200);
    assert_eq!(object["data"]["value"], "patched");
    object["data"]["value"] = json!("put");
    let put = through(2, "PUT", "application/json", &object)?.expect(200);
    // The object names a revision that is not the latest any more.
    assert_eq!(through(0, "PUT", "application/json", &object)?.status, 409);
    assert_eq!(through(1, "PATCH", MERGE, &same)?.expect(200), put);
    let bare = json!({"metadata": {"name": name}, "data": {"value": "put"}});
    let replaced = through(0, "PUT", "application/json", &bare)?.expect(200);
    assert_eq!(replaced["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(through(2, "DELETE", "", &nothing)?.expect(200)["status"], "Success");
    assert_eq!(through(0, "DELETE", "", &nothing)?.status, 404);
    let again = through(1, "PATCH", APPLY, &made)?.expect(201);
    assert_ne!(again["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(through(2, "PUT", "application/json", &put)?.status, 409);
    assert_eq!(through(0, "DELETE", "", &nothing)?.status, 200);
    assert_eq!(through(2, "PATCH", MERGE, &json!("no patch"))?.status, 404);
    Some(())
}

/// Each replica must decide by the latest state, however far behind it is.
#[test]
fn every_replica_decides_by_the_latest_state() {
    let places = Places::new();
    let servers = places.start_all();
    let mut each = servers.each_ref().map(Server::connect);
    take_turns(20, |turn| take_turn(&mut each, turn));
}

#[test]
fn administration_is_for_administrators_and_not_discovered() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut administrator = server.connect();
    let alone = administrator.get(CLUSTER).expect(200);
    assert_eq!((each(&alone, "reachable"), &alone["cluster"]), (vec![json!(true)], &json!("")));
    let refused = server.connect_anonymously().get(CLUSTER).expect(403);
    assert_eq!((&refused["kind"], &refused["reason"]), (&json!("Status"), &json!("Forbidden")));
    assert_eq!(server.connect_anonymously().post(&format!("{CLUSTER}/drain"), &json!({})).status, 403);
    assert!(!administrator.get("/").text().contains("flotilla"));
    for (path, body, code) in [
        ("join", json!({"name": "b", "address": "127.0.0.1:1"}), 409), // a server without a cluster accepts no member
        ("join", json!({"name": "b", "address": "here"}), 400),
        ("join", json!({"name": "b"}), 400),
        ("remove", json!({"name": "no name"}), 400),
        ("remove", json!({"name": "b"}), 404),
        ("transfer", json!({"name": "b", "grop": "default"}), 400),
        ("elect", json!({"name": "b"}), 404),
    ] {
        let answer = administrator.post(&format!("{CLUSTER}/{path}"), &body).expect(code);
        assert_eq!((&answer["kind"], &answer["code"]), (&json!("Status"), &json!(code)), "{path} {body}: {answer}");
    }
    assert_eq!(administrator.get(&format!("{CLUSTER}/drain")).expect(405)["reason"], "MethodNotAllowed");
    assert_eq!(administrator.delete(CLUSTER).expect(405)["reason"], "MethodNotAllowed");
}
