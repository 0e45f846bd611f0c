//! A round trip with Kubernetes itself: its API server writes objects to etcd, Flotilla imports, changes and exports
//! them, and the API server serves them again.
//!
//! `FLOTILLA_REFERENCE_BIN` names a directory with the programs `etcd`, `etcdctl`, `etcdutl` (3.6) and `kube-apiserver`
//! (1.36); docs/testing.md describes how to build them. Without it, the test is skipped.

#[path = "../../agreement/json.rs"]
#[allow(dead_code, reason = "the agreement tests use the rest")]
mod json;
mod objects;
#[path = "../../agreement/yaml.rs"]
mod yaml;

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use self::objects::{Objects, differences, everything, fill};
use crate::program::flotilla;
use crate::support::Connection;
use crate::support::called::{Called, Prepared, plain};

/// The smallest number of objects in the reference.
const OBJECTS: usize = 2_000;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Returns the directory of the reference's programs. Prints a message and returns `None` if they are missing.
fn programs() -> Option<PathBuf> {
    let found = std::env::var_os("FLOTILLA_REFERENCE_BIN").map(PathBuf::from);
    if found.is_none() {
        eprintln!("skipped: FLOTILLA_REFERENCE_BIN does not name the programs of Kubernetes and etcd");
    }
    found
}

/// The flags of both API servers.
const API_SERVER: [&str; 12] = [
    "--allow-privileged=true",
    "--authorization-mode=RBAC",
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    "--cert-dir=$C",
    "--client-ca-file=$C/client-cert-auth-ca.crt",
    "--disable-admission-plugins=ServiceAccount",
    "--etcd-servers=http://127.0.0.1:$P",
    "--secure-port=$S",
    "--service-account-issuer=https://127.0.0.1:$S/",
    "--service-account-key-file=$C/sa-signer.crt",
    "--service-account-signing-key-file=$C/sa-signer.key",
];

/// The reference: an API server and etcd, with a data directory of etcd.
struct Reference {
    etcd: Called,
    server: Called,
}

impl Reference {
    fn start(programs: &Path, prepared: &Prepared, etcd_data: &Path) -> (Self, Connection) {
        let data = format!("--data-dir={}", etcd_data.display());
        let flags = [
            &*data,
            "--name=default",
            "--advertise-client-urls=http://127.0.0.1:$P",
            "--listen-client-urls=http://127.0.0.1:$P",
            "--listen-peer-urls=http://127.0.0.1:$Q",
            "--initial-advertise-peer-urls=http://127.0.0.1:$Q",
            "--initial-cluster=default=http://127.0.0.1:$Q",
        ];
        let mut etcd = prepared.start_other(&programs.join("etcd"), &flags);
        etcd.until(|| plain(prepared.ports[1], "/health").filter(|health| health.contains("\"health\":\"true\"")));
        let mut server = prepared.start_other(&programs.join("kube-apiserver"), &API_SERVER);
        let client = prepared.ready(&mut server, "admin");
        (Self { etcd, server }, client)
    }

    fn stop(self) {
        self.server.terminate();
        self.etcd.terminate();
    }
}

fn done(output: Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    text
}

/// Imports a snapshot of the reference, of which no object may be refused.
fn import(snapshot: &Path, data: &Path) {
    let output = done(flotilla(&["import"], &[("--from-etcd-snapshot", snapshot), ("--data-dir", data)]));
    let total = output.lines().find(|line| line.split_whitespace().next() == Some("all")).unwrap_or_default();
    assert!(total.ends_with(" 0"), "{output}");
}

/// Changes, creates and deletes objects.
fn change(client: &mut Connection) {
    for number in 0..50 {
        let path = format!("{MAPS}/round-{number}");
        let mut map = client.get(&path).expect(200);
        map["data"]["changed"] = json!("here");
        client.put(&path, &map).expect(200);
        client.post(MAPS, &json!({"metadata": {"name": format!("made-{number}")}, "data": {"a": "b"}})).expect(201);
    }
    for number in 50..100 {
        client.delete(&format!("{MAPS}/round-{number}")).expect(200);
    }
    let patch = br#"{"metadata":{"labels":{"changed":"here"}}}"#;
    let patched = client.request("PATCH", "/api/v1/namespaces/default", "application/merge-patch+json", patch);
    patched.expect(200);
}

fn check(what: &str, before: &Objects, after: &Objects) {
    let found = differences(before, after);
    assert!(found.is_empty(), "{what}: {} differ\n{}", found.len(), found[..found.len().min(40)].join("\n"));
}

#[test]
fn objects_of_kubernetes_survive_import_and_export() {
    let Some(programs) = programs() else { return };
    let prepared = Prepared::new();
    let at = |name: &str| prepared.certs().with_file_name(name);
    let (reference, mut client) = Reference::start(&programs, &prepared, &at("etcd-first"));
    let count = fill(|| prepared.connect(Some("admin")).expect("a connection"), OBJECTS);
    let before = everything(&mut client);
    eprintln!("{count} objects were created; {} resources have {} objects", before.kinds(), before.count());
    assert!(count >= OBJECTS && before.count() >= OBJECTS);
    let mut control = prepared.other(&programs.join("etcdctl"), &["--endpoints=http://127.0.0.1:$P"]);
    done(control.args(["snapshot", "save"]).arg(at("first.db")).output().expect("etcdctl can be run"));
    reference.stop();

    import(&at("first.db"), &at("new"));
    let data = format!("--data-dir={}", at("new").display());
    let mut server = prepared.start("kube-apiserver", &[&API_SERVER[..], &[&data]].concat());
    let mut client = prepared.ready(&mut server, "admin");
    check("the import", &before, &everything(&mut client));
    change(&mut client);
    let changed = everything(&mut client);
    assert!(server.terminate().success());
    done(flotilla(&["export", &data], &[("--to-etcd-snapshot", &at("second.db"))]));

    let restored = format!("--data-dir={}", at("etcd-second").display());
    let mut restore = prepared.other(&programs.join("etcdutl"), &["snapshot", "restore"]);
    restore.arg(at("second.db")).arg(restored).args(["--name=default"]);
    for (flag, of) in [("--initial-cluster", "default="), ("--initial-advertise-peer-urls", "")] {
        restore.arg(format!("{flag}={of}http://127.0.0.1:{}", prepared.ports[2].port()));
    }
    done(restore.output().expect("etcdutl can be run"));
    let (reference, mut client) = Reference::start(&programs, &prepared, &at("etcd-second"));
    let after = everything(&mut client);
    check("the export", &changed, &after);
    let revision = |object: &Value| object["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    let same = changed.get(MAPS, "default", "round-1").map(revision);
    assert!(same.is_some() && same == after.get(MAPS, "default", "round-1").map(revision));
    client.post(MAPS, &json!({"metadata": {"name": "afterwards"}})).expect(201);
    reference.stop();
}
