//! `flotilla status`, `flotilla doctor`, shell completions and manual pages.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cluster::{Places, until};
use crate::program::{as_admin, errors, flotilla, successful};
use crate::support::{DataDir, Server};

/// Runs a command about a server. Returns its output as JSON, and whether it succeeded.
fn run_json(server: &Server, arguments: &[&str]) -> (Value, bool) {
    let output = as_admin(server, &[arguments, &["-o", "json"]].concat(), &[]);
    let error = errors(&output);
    (
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {error}")),
        output.status.success(),
    )
}

/// Returns the findings of `flotilla doctor` that have this verdict.
fn found<'a>(findings: &'a Value, verdict: &str) -> Vec<&'a str> {
    let all = findings.as_array().expect("findings").iter();
    all.filter(|finding| finding["verdict"] == verdict).filter_map(|finding| finding["found"].as_str()).collect()
}

#[test]
fn status_shows_a_server_and_its_requests() {
    let directory = DataDir::new();
    let server = directory.start();
    server.connect().get("/api/v1/namespaces/default/configmaps").expect(200);
    let (status, _) = run_json(&server, &["status"]);
    assert_eq!((&status["ready"], &status["lags"]), (&json!(true), &json!([])));
    assert_eq!(status["cluster"]["groups"][0]["name"], "default");
    let requests = status["requests"].as_array().expect("requests");
    let lists = requests.iter().find(|it| it["verb"] == "LIST" && it["resource"] == "configmaps").expect("the list");
    assert!(lists["count"].as_f64() >= Some(1.0) && lists["p99"].as_f64() >= lists["p50"].as_f64(), "{lists}");
    let text = successful(as_admin(&server, &["status"], &[]));
    assert!(text.contains("LEADS"), "the default output is a table");
}

#[test]
fn a_doctor_finds_problems_of_a_directory() {
    let directory = DataDir::new();
    let server = directory.start();
    let data = server.data().display().to_string();
    let (findings, success) = run_json(&server, &["doctor", "--data-dir", &data]);
    assert!(success, "{findings}");
    assert!(found(&findings, "good").contains(&"a server runs on it"), "{findings}");
    fs::write(server.data().join("pki/other.crt"), "none").expect("a file");
    let (findings, success) = run_json(&server, &["doctor", "--offline", "--data-dir", &data]);
    assert!(!success);
    let broken = found(&findings, "broken");
    assert!(broken.len() == 1 && broken[0].contains("other.crt"), "{findings}");
}

#[test]
fn a_doctor_finds_an_unreachable_member() {
    let places = Places::new();
    let [first, second, third] = places.start_all();
    let data = first.data().display().to_string();
    let look = || run_json(&first, &["doctor", "--data-dir", &data]).0;
    until("no problem is found", || found(&look(), "broken").is_empty());
    drop(third);
    until("the missing member is found", || found(&look(), "broken").contains(&"the member c is not reachable"));
    drop(second);
}

#[test]
fn the_command_line_has_completions_and_manual_pages() {
    let bash = flotilla(&["completion", "bash"], &[]);
    assert!(bash.status.success() && String::from_utf8_lossy(&bash.stdout).contains("flotilla__"));
    let directory = DataDir::new();
    fs::create_dir_all(directory.path()).expect("a directory");
    let pages = directory.path().join("man");
    fs::create_dir(&pages).expect("a directory");
    assert!(flotilla(&["man", &pages.display().to_string()], &[]).status.success());
    for page in ["flotilla.1", "flotilla-doctor.1"] {
        let text = fs::read_to_string(Path::new(&pages).join(page)).expect("a page");
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
}
