//! Runs every scenario of the harness for a second or two, with small numbers, against the real server.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

const SCENARIOS: [&str; 13] = [
    "heartbeats",
    "kubelets",
    "pod-churn",
    "list-storm",
    "fan-out",
    "informer-herd",
    "reconnect-herd",
    "burst",
    "apply-storm",
    "custom-heavy",
    "slow-watchers",
    "mixed",
    "sandboxes",
];

/// A server, which is killed when this value is dropped.
struct Server {
    process: Child,
    directory: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        // `cargo test --workspace` builds the server next to the harness.
        let binary = Path::new(env!("CARGO_BIN_EXE_loadtest")).with_file_name("flotilla");
        assert!(binary.exists(), "{} does not exist: run `cargo test --workspace`", binary.display());
        let directory = tempfile::tempdir().expect("a directory");
        let mut process = Command::new(binary)
            .args(["serve", "--workers", "2", "--listen", "127.0.0.1:0", "--unsafe-no-fsync", "--data-dir"])
            .arg(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server can be run");
        let mut line = String::new();
        let output = process.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert!(line.contains("serves https://"), "{line:?}");
        Self { process, directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadtest"));
        command.args(arguments).arg("--kubeconfig").arg(self.path("admin.kubeconfig"));
        command.args(["--pid", &self.process.id().to_string()]);
        command
    }

    /// Runs a scenario with small numbers. No request may fail, however slow the machine is.
    fn run(&self, name: &str, more: &[&str]) -> Value {
        let result = self.path(&format!("{name}.json"));
        // Ten of the two thousand definitions are enough.
        let scale = if name == "custom-heavy" { "0.005" } else { "0.05" };
        let mut command = self.command(&["scenario", name, "--quiet", "--seconds", "1.5", "--scale", scale]);
        command.args(["--set", "drain-seconds=600", "--out"]).arg(&result).args(more);
        succeed(command.output().expect("the harness can be run"));
        read(&result)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a result")).expect("JSON")
}

fn succeed(output: Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    text
}

/// Returns the operations of a result that have successes. Checks that the figures of each agree with each other.
fn counted(result: &Value) -> Vec<(String, u64)> {
    let operations = result["operations"].as_object().expect("operations");
    let counts = operations.iter().map(|(name, operation)| {
        let sum =
            |list: &Value, of: &dyn Fn(&Value) -> u64| list.as_array().expect("a list").iter().map(of).sum::<u64>();
        let count = operation["count"].as_u64().expect("a number");
        assert_eq!(sum(&operation["histogram"], &|pair| pair[1].as_u64().unwrap_or(0)), count, "{name}");
        for window in operation["windows"].as_array().expect("windows") {
            let all = sum(&window["buckets"], &|pair| pair[1].as_u64().unwrap_or(0));
            assert_eq!(window["count"].as_u64(), Some(all), "{name}");
        }
        (name.clone(), count)
    });
    counts.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn nothing_fails_in_any_scenario() {
    let server = Server::start();
    for name in SCENARIOS {
        let result = server.run(name, &[]);
        let counts = counted(&result);
        assert!(!counts.is_empty(), "{name}: nothing happened");
        assert_eq!(result["checks"]["violations"]["counts"], serde_json::json!({}), "{name}");
        assert!(result["samples"][0]["server_resident_bytes"].as_u64() > Some(1 << 20), "{name}");
        let has = |what: &str| counts.iter().any(|(operation, _)| operation.contains(what));
        let expected: &[&str] = match name {
            "heartbeats" => &["nodes/lease"],
            "kubelets" => &["kubelet/sync", "nodes/lease"],
            "pod-churn" => &["pods/create", "pods/bind", "pods/status", "pods/delete", "scheduler/delivery"],
            "list-storm" => &["of-node /api/v1/pods"],
            "fan-out" => &["changes/put", "watchers/delivery"],
            "informer-herd" => &["by-pages/sync", "by-watch/sync"],
            "reconnect-herd" => &["watchers/resume"],
            "burst" => &["pods/ready", "changes/put", "watchers/sync"],
            "apply-storm" => &["apply/apply", "watchers/delivery"],
            "custom-heavy" => &["definitions/served", "definitions/create"],
            "slow-watchers" => &["slow/sync", "watchers/sync"],
            "mixed" => &["kubelet/sync", "nodes/lease", "controllers/sync"],
            "sandboxes" => &["sandboxes/custom", "sandboxes/ready", "controller/delivery"],
            other => panic!("the test does not know {other}"),
        };
        for what in expected {
            assert!(has(what), "{name} has no {what}: {counts:?}");
        }
    }
}

#[test]
fn every_scenario_of_the_harness_is_tested() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_loadtest")).arg("scenarios").output().expect("the harness can be run");
    let text = succeed(output);
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, SCENARIOS);
}

#[test]
fn parts_are_merged_shown_and_compared() {
    let server = Server::start();
    let sum = server.path("sum.json");
    // Parts start together only if their setup is complete by then. On a slow machine, a longer wait is needed.
    let is_merged = [3.0, 15.0, 60.0, 240.0].iter().any(|wait| {
        let begin = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs_f64() + wait;
        let parts: Vec<(PathBuf, Child)> = [1, 2]
            .map(|number| {
                let out = server.path(&format!("part-{number}.json"));
                let mut command =
                    server.command(&["scenario", "burst", "--quiet", "--seconds", "1.5", "--scale", "0.1"]);
                command.args(["--part", &format!("{number}/2"), "--begin-at", &begin.to_string()]);
                command.args(["--set", "drain-seconds=600", "--out"]).arg(&out).stdout(Stdio::null());
                (out, command.spawn().expect("the harness can be run"))
            })
            .into();
        let mut merge = Command::new(env!("CARGO_BIN_EXE_loadtest"));
        merge.arg("merge").arg("--out").arg(&sum);
        for (out, mut part) in parts {
            assert!(part.wait().expect("an end").success(), "{out:?}");
            merge.arg(out);
        }
        merge.output().expect("the harness can be run").status.success()
    });
    assert!(is_merged, "the parts never started together");
    let (whole, parts) = (read(&sum), [1, 2].map(|number| read(&server.path(&format!("part-{number}.json")))));
    for (name, count) in counted(&whole) {
        let of = |part: &Value| part["operations"][&name]["count"].as_u64().unwrap_or(0);
        assert_eq!(parts.iter().map(of).sum::<u64>(), count, "{name}");
    }
    let html = server.path("report.html");
    let mut report = Command::new(env!("CARGO_BIN_EXE_loadtest"));
    report.arg("report").arg(&sum).arg("--html").arg(&html);
    assert!(succeed(report.output().expect("the harness can be run")).contains("changes/put"));
    assert!(fs::read_to_string(&html).expect("a report").contains("</html>"));
    let mut compare = Command::new(env!("CARGO_BIN_EXE_loadtest"));
    let output = compare.arg("compare").arg(&sum).arg(&sum).output().expect("the harness can be run");
    assert!(succeed(output).contains("1.00x  one run on a side"));
}

#[test]
fn wrong_commands_are_refused_without_a_request() {
    for (arguments, part) in [
        (&["scenario", "nonsense"][..], "no scenario \"nonsense\""),
        (&["scenario", "burst", "--set", "actors.pods.kind=ship"], "unknown variant `ship`"),
        (&["scenario", "burst", "--part", "3/2"], "is not NUMBER/COUNT"),
        (&["scenario", "burst", "--http", "1"], "need HTTP/2"),
        (&["merge", "/nonexistent", "--out", "/nonexistent/x"], "/nonexistent"),
    ] {
        // No server runs, so a command that sent a request would report another error.
        let output = Command::new(env!("CARGO_BIN_EXE_loadtest"))
            .args(arguments)
            .env("KUBECONFIG", "/nonexistent/kubeconfig")
            .output()
            .expect("the harness can be run");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(part), "{arguments:?}: {message}");
    }
}
