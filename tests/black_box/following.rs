//! Imports from a running server: they copy its objects, follow its changes in spite of interruptions, and end before a
//! new server takes over.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::support::{CONFIG_MAPS, DataDir, Server, config_map, config_map_path, ports, revision};

/// How long one step of an import may take.
const STEP: Duration = Duration::from_secs(120);

/// A running import.
struct Importing {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Importing {
    fn start(kubeconfig: &Path, to: &DataDir, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flotilla"));
        command.args(["import", "--from-server"]).arg(kubeconfig).arg("--data-dir").arg(to.path()).args(more);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("flotilla can be run");
        let (sender, lines) = std::sync::mpsc::channel();
        let errors = BufReader::new(child.stderr.take().expect("a pipe"));
        std::thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines }
    }

    /// Waits until the import prints a line with this text.
    fn says(&self, what: &str) {
        let mut said = String::new();
        while let Ok(line) = self.lines.recv_timeout(STEP) {
            if line.contains(what) {
                return;
            }
            said += &line;
        }
        panic!("the import does not print {what:?}, but {said}");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill can be run").success());
    }

    fn ended(mut self) -> ExitStatus {
        let deadline = Instant::now() + STEP;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the import does not end");
    }
}

impl Drop for Importing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the names and values of the ConfigMaps that the test created.
fn values(server: &Server) -> Vec<(String, String)> {
    let list = server.connect().get(CONFIG_MAPS).expect(200);
    let items = list["items"].as_array().expect("items").iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let all = items.map(|item| (text(&item["metadata"]["name"]), item["data"].to_string()));
    all.filter(|(name, _)| name.starts_with("kept-")).collect()
}

#[test]
fn an_import_follows_a_server_in_spite_of_interruptions() {
    let (first, second) = (DataDir::new(), DataDir::new());
    let server = first.start();
    let kubeconfig = server.data().join("admin.kubeconfig");
    let mut client = server.connect();
    for number in 0..450 {
        client.post(CONFIG_MAPS, &config_map(&format!("kept-{number:03}"), "before")).expect(201);
    }
    let importing = Importing::start(&kubeconfig, &second, &[]);
    importing.says("changes are followed");
    client.post(CONFIG_MAPS, &config_map("kept-followed", "1")).expect(201);
    assert_eq!(client.delete(&config_map_path("kept-007")).status, 200);
    importing.signal("-KILL");
    assert!(!importing.ended().success());
    assert!(second.try_start().is_err(), "a server refuses an incomplete import");

    // The import also receives changes that happen while it does not run.
    assert_eq!(client.delete(&config_map_path("kept-008")).status, 200);
    client.put(&config_map_path("kept-009"), &config_map("kept-009", "after")).expect(200);
    let importing = Importing::start(&kubeconfig, &second, &[]);
    importing.says("objects had come before");
    importing.says("changes are followed");
    client.post(CONFIG_MAPS, &config_map("kept-resumed", "1")).expect(201);
    importing.signal("-TERM");
    assert_eq!(importing.ended().code(), Some(1));
    assert!(second.try_start().is_err());

    let importing = Importing::start(&kubeconfig, &second, &[]);
    importing.says("changes are followed");
    assert_eq!(client.delete(&config_map_path("kept-010")).status, 200);
    let (expected, last) = (values(&server), revision(&client.get(CONFIG_MAPS).expect(200)));
    importing.signal("-USR1");
    assert!(importing.ended().success());
    server.kill();
    assert!(!second.path().join("import").exists());
    let server = second.start();
    assert_eq!(values(&server), expected);
    assert_eq!(expected.len(), 449);
    assert!(revision(&server.connect().get(&config_map_path("kept-000")).expect(200)) > last);
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn an_import_keeps_its_data_when_the_server_fails() {
    let (first, second, other) = (DataDir::new(), DataDir::new(), DataDir::new());
    let address = ports::free(1)[0];
    let server = first.start_on(address);
    let kubeconfig = server.data().join("admin.kubeconfig");
    server.connect().post(CONFIG_MAPS, &config_map("kept-1", "1")).expect(201);
    let importing = Importing::start(&kubeconfig, &second, &[]);
    importing.says("changes are followed");
    server.kill();
    importing.says("cannot be watched");
    importing.signal("-USR1");
    assert_eq!(importing.ended().code(), Some(1), "the source cannot be compared");
    assert!(second.try_start().is_err());

    let another = other.start();
    let refused = Importing::start(&another.data().join("admin.kubeconfig"), &second, &["--once"]);
    refused.says("another cluster");
    assert_eq!(refused.ended().code(), Some(1));

    let server = first.start_on(address);
    let importing = Importing::start(&kubeconfig, &second, &["--once"]);
    assert!(importing.ended().success());
    assert_eq!(values(&second.start()), values(&server));
}
