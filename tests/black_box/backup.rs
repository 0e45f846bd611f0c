//! Backups over HTTP and on the command line, and servers that start from restored backups.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::cluster::{Places, cluster, until};
use crate::program::{as_admin, errors, flotilla, successful};
use crate::support::{CONFIG_MAPS, Connection, DataDir, Server, config_map, config_map_path, revision};

const BACKUP: &str = "/flotilla/v1/backup";
const SHARDS: [&str; 2] = ["--shards", "configmaps=3"];

/// Writes a backup of a server to a path.
pub fn back_up(server: &Server, to: &Path) {
    let output = successful(as_admin(server, &["backup"], &[("--to", to)]));
    assert!(output.contains("objects as of revision"), "{output}");
}

pub fn restore(from: &Path, directory: &DataDir) -> Output {
    flotilla(&["restore"], &[("--from", from), ("--data-dir", &directory.path())])
}

/// Returns a path next to the data directory, which is removed with it.
pub fn beside(directory: &DataDir, name: &str) -> PathBuf {
    let path = directory.path().with_file_name(name);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    path
}

/// Returns all objects of some resources without their revisions, and the smallest of these revisions. None of these
/// resources depends on the server's address, as Services do.
fn everything(client: &mut Connection) -> (Value, u64) {
    let paths = [
        "/api/v1/namespaces",
        CONFIG_MAPS,
        "/api/v1/namespaces/default/secrets",
        "/api/v1/namespaces/default/serviceaccounts",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ];
    let mut least = u64::MAX;
    let lists = paths.map(|path| {
        let mut list = client.get(path).expect(200);
        least = least.min(revision(&list));
        list["metadata"].take();
        for item in list["items"].as_array_mut().expect("items") {
            least = least.min(revision(item));
            item["metadata"]["resourceVersion"].take();
        }
        list
    });
    (json!(lists), least)
}

#[test]
fn restored_objects_have_revisions_above_all_earlier_ones() {
    let (first, second) = (DataDir::new(), DataDir::new());
    let server = first.start_with(&SHARDS);
    let mut client = server.connect();
    for number in 0..300 {
        client.post(CONFIG_MAPS, &config_map(&format!("kept-{number:03}"), &"x".repeat(3000))).expect(201);
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kept"}, "data": {"a": "Yg=="}});
    client.post("/api/v1/namespaces/default/secrets", &secret).expect(201);
    client.post(CONFIG_MAPS, &config_map("deleted", "1")).expect(201);
    let before = revision(&client.get(CONFIG_MAPS).expect(200));
    client.delete(&config_map_path("deleted")).expect(200);
    let (original, _) = everything(&mut client);

    let backup = beside(&first, "backup");
    back_up(&server, &backup);
    assert_eq!(fs::metadata(&backup).expect("a file").permissions().mode() & 0o777, 0o600);
    assert!(!beside(&first, "backup.tmp").exists());
    let later = revision(&client.post(CONFIG_MAPS, &config_map("later", "1")).expect(201));
    drop(client);
    server.kill();

    let restored = restore(&backup, &second);
    assert!(restored.status.success(), "{}", errors(&restored));
    let output = String::from_utf8_lossy(&restored.stdout).into_owned();
    assert!(output.contains("--shards configmaps=3 --groups 3"), "{output}");
    // A backup does not contain the certificate authorities. With new ones, the ConfigMap with the root certificate in
    // each namespace would differ.
    let authorities = first.path().join("pki");
    let authorities = authorities.to_str().expect("a text");
    let server = second.start_with(&[SHARDS[0], SHARDS[1], "--pki-dir", authorities]);
    let mut client = server.connect();
    let (again, least) = everything(&mut client);
    assert_eq!(original, again);
    assert!(least > later, "{least} is not above {later}");
    assert_eq!(client.get(&config_map_path("later")).status, 404);
    let kept = client.get(&config_map_path("kept-007")).expect(200);

    // A client that resumes from a revision of the old server gets 410, lists again, and can go on.
    for from in [before, later] {
        let watch = format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}");
        match server.connect().watch(&watch).expect("an answer") {
            Ok(mut watch) => {
                let event = watch.next().expect("an event");
                assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
            }
            Err(refused) => assert_eq!(refused.status, 410, "{}", refused.text()),
        }
    }
    let exact = format!("{CONFIG_MAPS}?resourceVersion={before}&resourceVersionMatch=Exact");
    assert_eq!(client.get(&exact).status, 410);
    let list = revision(&client.get(CONFIG_MAPS).expect(200));
    let watch = server.connect().watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={list}")).expect("an answer");
    let mut watch = watch.unwrap_or_else(|refused| panic!("{}", refused.text()));
    let mut changed = kept.clone();
    changed["data"]["value"] = json!("2");
    let changed = client.put(&config_map_path("kept-007"), &changed).expect(200);
    assert_eq!(changed["metadata"]["uid"], kept["metadata"]["uid"]);
    let event = watch.next().expect("an event");
    assert_eq!((&event["type"], revision(&event["object"])), (&json!("MODIFIED"), revision(&changed)));

    // The old revision of an object does not match the restored one.
    let mut stale = kept;
    stale["metadata"]["resourceVersion"] = json!(before.to_string());
    assert_eq!(client.put(&config_map_path("kept-007"), &stale).status, 409);
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn a_backup_is_complete_or_refused() {
    let (first, second) = (DataDir::new(), DataDir::new());
    let server = first.start();
    let mut client = server.connect();
    client.post(CONFIG_MAPS, &config_map("kept", "1")).expect(201);
    assert_eq!(server.connect_anonymously().get(BACKUP).status, 403);
    assert_eq!(client.request("POST", BACKUP, "", b"").status, 405);
    // Clients abandon backups that are in progress. The server must then accept new ones.
    for _ in 0..5 {
        let mut given_up = server.connect();
        given_up.send(format!("GET {BACKUP} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).expect("a connection");
    }

    until("another backup is accepted", || client.get(BACKUP).status == 200);

    let writing = AtomicBool::new(true);
    let backup = beside(&first, "backup");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.connect();
            for number in 0.. {
                if !writing.load(Ordering::SeqCst) {
                    break;
                }
                client.post(CONFIG_MAPS, &config_map(&format!("more-{number}"), "1")).expect(201);
            }
        });
        // Backups that were given up may still have the places of two.
        let accepted = || as_admin(&server, &["backup"], &[("--to", &backup)]).status.success();
        until("a backup is accepted under writes", accepted);
        until("another one replaces it", accepted);
        writing.store(false, Ordering::SeqCst);
    });

    let bytes = fs::read(&backup).expect("a backup");
    let part = beside(&first, "part");
    fs::write(&part, &bytes[..bytes.len() / 2]).expect("a file");
    let refused = restore(&part, &second);
    assert_eq!(refused.status.code(), Some(1));
    assert!(errors(&refused).contains("incomplete") && !second.path().exists(), "{}", errors(&refused));
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    fs::write(&part, &damaged).expect("a file");
    assert!(errors(&restore(&part, &second)).contains("does not match its checksum"));
    let busy = restore(&backup, &first);
    assert_eq!(busy.status.code(), Some(1));
    assert!(errors(&busy).contains("in use by another process"), "{}", errors(&busy));

    // A backup that cannot be completed leaves an existing file as it is.
    let nobody = beside(&first, "nobody.kubeconfig");
    let kubeconfig = fs::read_to_string(server.data().join("admin.kubeconfig")).expect("a kubeconfig");
    server.kill();
    fs::write(&nobody, kubeconfig).expect("a file");
    let failed = flotilla(&["backup"], &[("--kubeconfig", &nobody), ("--to", &backup)]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(errors(&failed).contains("does not answer"), "{}", errors(&failed));
    assert_eq!(fs::read(&backup).expect("a backup"), bytes);
    assert!(restore(&backup, &second).status.success());
    assert_eq!(second.start().connect().get(&config_map_path("kept")).expect(200)["data"]["value"], "1");
}

/// An informer: it lists, watches from the list's revision, and lists again when the watch gets 410.
struct Informer {
    /// Values and uids by name.
    known: BTreeMap<String, (Value, Value)>,
    revision: u64,
    /// How many times it has listed.
    lists: usize,
}

impl Informer {
    fn new() -> Informer {
        Informer { known: BTreeMap::new(), revision: 0, lists: 0 }
    }

    fn list(&mut self, server: &Server) {
        let list = server.connect().read(CONFIG_MAPS);
        self.known.clear();
        list["items"].as_array().expect("items").iter().for_each(|object| self.learn(object));
        self.revision = revision(&list);
        self.lists += 1;
    }

    fn learn(&mut self, object: &Value) {
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        self.known.insert(name, (object["data"].clone(), object["metadata"]["uid"].clone()));
        self.revision = self.revision.max(revision(object));
    }

    /// Watches from the current revision until an object of this name arrives.
    fn follow(&mut self, server: &Server, name: &str) {
        while !self.known.contains_key(name) {
            let watch = format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", self.revision);
            let mut watch = match server.connect().watch(&watch).expect("an answer") {
                Ok(watch) => watch,
                // On a busy machine, a group may have no leader for a moment.
                Err(answer) if matches!(answer.status, 503 | 504) => continue,
                Err(_) => {
                    self.list(server);
                    continue;
                }
            };
            while let Ok(event) = watch.next() {
                if event["type"] == "ERROR" {
                    assert_eq!(event["object"]["code"], 410, "{event}");
                    self.list(server);
                    break;
                }
                self.learn(&event["object"]);
                if self.known.contains_key(name) {
                    return;
                }
            }
        }
    }
}

#[test]
fn three_members_are_backed_up_under_writes_and_restored_as_three() {
    let (mut first, mut second) = (Places::new(), Places::new());
    first.more = ["--shards", "configmaps=4"].map(str::to_owned).to_vec();
    second.more = first.more.clone();
    second.pki = first.pki.clone(); // stands for a copy of the authorities
    let servers = first.start_all();
    for number in 0..150 {
        let object = config_map(&format!("kept-{number:03}"), &"x".repeat(3000));
        servers[number % 3].connect().create(CONFIG_MAPS, &object);
    }
    let mut informer = Informer::new();
    informer.list(&servers[1]);
    let kept = informer.known.clone();
    let (backup, writing) = (beside(&first.directories[0], "backup"), AtomicBool::new(true));
    let later = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut client, mut last) = (servers[2].connect(), 0);
            for number in 0.. {
                if !writing.load(Ordering::SeqCst) {
                    break;
                }
                let object = config_map(&format!("more-{number}"), "1");
                last = revision(&client.create(CONFIG_MAPS, &object));
            }
            last
        });
        back_up(&servers[1], &backup);
        writing.store(false, Ordering::SeqCst);
        writer.join().expect("a writer")
    });
    informer.revision = informer.revision.max(later);
    servers.into_iter().for_each(Server::kill);

    let address = second.address(0);
    let flags = ["restore", "--name", "a", "--peer-address", &address];
    let made = flotilla(&flags, &[("--from", &backup), ("--data-dir", &second.directories[0].path())]);
    assert!(made.status.success(), "{}", errors(&made));
    let servers = [0, 1, 2].map(|member| second.begin(member));
    for (member, name) in [(1, "b"), (2, "c")] {
        let join = format!("{name}={}", second.address(member));
        until("the server is admitted", || cluster(&servers[0], &["join", &join]).status.success());
    }
    for server in &servers {
        until("the server is ready", || server.connect().get("/readyz").status == 200);
    }
    // Informers of the old cluster catch up with the new one, through any member.
    let after = servers[0].connect().create(CONFIG_MAPS, &config_map("after", "1"));
    assert!(revision(&after) > later);
    for server in &servers {
        let mut informer = Informer { known: informer.known.clone(), ..informer };
        informer.follow(server, "after");
        assert_eq!(informer.lists, 2, "it lists a second time, once");
        assert!(kept.iter().all(|(name, object)| informer.known.get(name) == Some(object)));
        let mut fresh = Informer::new();
        fresh.list(&servers[0]);
        assert_eq!(informer.known, fresh.known);
    }
    assert_eq!(servers.map(|server| server.terminate().code()), [Some(0); 3]);
}
