//! Moving data: a server's objects are exported as a snapshot of etcd, or as YAML, and imported into another server.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::backup::beside;
use crate::cluster::until;
use crate::program::{as_admin, errors, flotilla, successful};
use crate::support::{CONFIG_MAPS, Connection, DataDir, Server, config_map, config_map_path, revision};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/move.example.com/v1/namespaces/default/things";
const PODS: &str = "/api/v1/namespaces/default/pods";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

fn export(server: &Server, flag: &str, to: &Path) {
    successful(as_admin(server, &["export"], &[(flag, to)]));
}

fn import(from: &Path, directory: &DataDir, more: &[&str]) -> Output {
    let arguments = [&["import"], more].concat();
    flotilla(&arguments, &[("--from-etcd-snapshot", from), ("--data-dir", &directory.path())])
}

/// Returns all objects of a collection by name, without their revisions, and the revisions.
fn all(client: &mut Connection, path: &str) -> BTreeMap<String, (Value, u64)> {
    let list = client.get(path).expect(200);
    let items = list["items"].as_array().expect("items").iter().map(|item| {
        let (mut item, at) = (item.clone(), revision(item));
        item["metadata"]["resourceVersion"].take();
        (item["metadata"]["name"].as_str().expect("a name").to_owned(), (item, at))
    });
    items.collect()
}

fn without_revisions(all: BTreeMap<String, (Value, u64)>) -> BTreeMap<String, Value> {
    all.into_iter().map(|(name, (object, _))| (name, object)).collect()
}

/// Creates objects of built-in kinds and of a custom resource.
fn fill(client: &mut Connection) {
    for number in 0..40 {
        let bytes = if number == 7 { 200_000 } else { 1_000 };
        client.post(CONFIG_MAPS, &config_map(&format!("kept-{number:03}"), &"x".repeat(bytes))).expect(201);
    }
    let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": schema}]);
    let spec = json!({"group": "move.example.com", "scope": "Namespaced", "names": names, "versions": versions});
    client.post(DEFINITIONS, &json!({"metadata": {"name": "things.move.example.com"}, "spec": spec})).expect(201);
    let thing = json!({
        "apiVersion": "move.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "z": 1, "a": {"c": [1.5]}
    });
    until("the definition is established", || client.post(THINGS, &thing).status == 201);
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.post(PODS, &pod).expect(201);
    let event = json!({
        "metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z", "action": "a", "reason": "r",
        "reportingController": "c.example.com/c", "reportingInstance": "i", "type": "Normal"
    });
    client.post(EVENTS, &event).expect(201);
    until("the root certificate is there", || client.get(&format!("{CONFIG_MAPS}/kube-root-ca.crt")).status == 200);
}

#[test]
fn a_snapshot_of_etcd_can_be_exported_and_imported() {
    let (first, second) = (DataDir::new(), DataDir::new());
    let server = first.start();
    let mut client = server.connect_for_pods();
    fill(&mut client);
    let paths = [CONFIG_MAPS, THINGS, DEFINITIONS, PODS, EVENTS, "/apis/rbac.authorization.k8s.io/v1/clusterroles"];
    let before = paths.map(|path| without_revisions(all(&mut client, path)));
    let last = revision(&client.get(CONFIG_MAPS).expect(200));
    let snapshot = beside(&first, "snapshot.db");
    export(&server, "--to-etcd-snapshot", &snapshot);
    assert_eq!(fs::metadata(&snapshot).expect("a file").permissions().mode() & 0o777, 0o600);
    assert!(!beside(&first, "snapshot.db.backup").exists() && !beside(&first, "snapshot.db.tmp").exists());
    server.kill();

    let tried = import(&snapshot, &second, &["--dry-run"]);
    let output = String::from_utf8_lossy(&tried.stdout).into_owned();
    assert!(tried.status.success() && output.contains("nothing was written"), "{output}{}", errors(&tried));
    assert!(!second.path().exists());
    let imported = import(&snapshot, &second, &[]);
    let output = String::from_utf8_lossy(&imported.stdout).into_owned();
    assert!(imported.status.success(), "{}", errors(&imported));
    assert!(output.contains("flotilla serve --data-dir"), "{output}");
    let line = |name: &str| output.lines().find(|line| line.split_whitespace().next() == Some(name)).map(str::to_owned);
    let counts = |name: &str| line(name).map(|line| line.split_whitespace().skip(1).map(str::to_owned).collect());
    assert_eq!(counts("move.example.com/things"), Some(vec!["1".to_owned(), "0".to_owned()]), "{output}");
    assert!(line("all").is_some_and(|line| line.ends_with(" 0")), "{output}");

    // An export does not contain the certificate authorities. With new ones, the ConfigMap with the root certificate in
    // each namespace would differ.
    let authorities = first.path().join("pki");
    let server = second.start_with(&["--pki-dir", authorities.to_str().expect("a text")]);
    let mut client = server.connect();
    until("the definition is in effect", || client.get(THINGS).status == 200);
    for (path, before) in paths.iter().zip(before) {
        let after = all(&mut client, path);
        let least = after.values().map(|(_, at)| *at).min().expect("objects");
        assert!(least > last, "{path}: {least} is not above {last}");
        assert!(without_revisions(after) == before, "{path}");
    }
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn an_incomplete_snapshot_is_refused() {
    let (first, second) = (DataDir::new(), DataDir::new());
    let server = first.start();
    server.connect().post(CONFIG_MAPS, &config_map("a", "1")).expect(201);
    let snapshot = beside(&first, "snapshot.db");
    export(&server, "--to-etcd-snapshot", &snapshot);
    let whole = fs::read(&snapshot).expect("a snapshot");
    let broken = beside(&first, "broken.db");
    let refused = |bytes: &[u8], why: &str| {
        fs::write(&broken, bytes).expect("a file");
        let refused = import(&broken, &second, &[]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(errors(&refused).contains(why) && !second.path().exists(), "{}", errors(&refused));
    };
    refused(&whole[..whole.len() / 2], "more pages than there are");
    refused(&whole[..whole.len() - 32], "has no hash at its end");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    refused(&changed, "does not match the hash at its end");
    refused(b"something else", "this is no snapshot of etcd");
    assert!(import(&snapshot, &first, &[]).status.code() == Some(1), "the directory is in use");
    assert!(import(&snapshot, &second, &[]).status.success());
    assert!(errors(&import(&snapshot, &second, &[])).contains("is not empty"));
    assert_eq!(server.connect().get(&config_map_path("a")).status, 200);
}

/// Starts an import, and kills it once it has begun to write.
fn kill_while_importing(from: &Path, to: &DataDir) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flotilla"));
    command.args(["import", "--from-etcd-snapshot"]).arg(from).arg("--data-dir").arg(to.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("flotilla can be run");
    while child.try_wait().expect("a child").is_none() && !to.path().join("restoring").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = child.kill();
    child.wait().expect("a child");
}

#[test]
fn a_killed_import_leaves_an_incomplete_directory_and_can_be_repeated() {
    let first = DataDir::new();
    let server = first.start();
    let mut client = server.connect();
    for number in 0..100 {
        client.post(CONFIG_MAPS, &config_map(&format!("kept-{number:03}"), &"x".repeat(200_000))).expect(201);
    }
    let before = without_revisions(all(&mut client, CONFIG_MAPS));
    let snapshot = beside(&first, "snapshot.db");
    export(&server, "--to-etcd-snapshot", &snapshot);
    server.kill();
    let killed = (0..20).map(|_| DataDir::new()).find(|second| {
        kill_while_importing(&snapshot, second);
        // The import may have been complete before it was killed.
        second.path().join("restoring").exists()
    });
    let second = killed.expect("one import was killed in the middle");
    let messages = second.try_start().err().expect("a server refuses an incomplete import").messages;
    assert!(messages.contains("is not complete") && messages.contains("flotilla import"), "{messages}");
    let imported = import(&snapshot, &second, &[]);
    assert!(imported.status.success(), "{}", errors(&imported));
    let authorities = first.path().join("pki");
    let server = second.start_with(&["--pki-dir", authorities.to_str().expect("a text")]);
    assert!(without_revisions(all(&mut server.connect(), CONFIG_MAPS)) == before);
}

#[test]
fn yaml_is_exported_by_resource_and_namespace() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect_for_pods();
    fill(&mut client);
    let to = beside(&directory, "yaml");
    export(&server, "--to-yaml", &to);
    let text = |path: &str| fs::read_to_string(to.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let documents = text("core/configmaps/default.yaml");
    let count = documents.lines().filter(|line| *line == "---").count();
    assert_eq!(count, 41, "includes the ConfigMap with the root certificate");
    assert!(documents.contains("name: kept-039") && !documents.contains("resourceVersion:"));
    assert!(text("move.example.com/things/default.yaml").contains("kind: Thing"));
    assert!(text("core/namespaces.yaml").contains("name: kube-system"));
    let again = as_admin(&server, &["export"], &[("--to-yaml", &to)]);
    assert_eq!(again.status.code(), Some(1), "existing files are not replaced");
    assert!(text("core/namespaces.yaml").contains("name: default"));
    assert!(!beside(&directory, "yaml.tmp").exists() && !beside(&directory, "yaml.backup").exists());
}
