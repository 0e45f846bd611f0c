//! The console at `/console`, the overview, and `flotilla top`.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cluster::until;
use crate::program::{as_admin, successful};
use crate::support::{Connection, DataDir, Server, config_map};

/// A user agent that a browser would run if it were not escaped.
const SCRIPT: &str = "<script>alert(1)</script>";

fn overview(client: &mut Connection) -> Value {
    client.get("/flotilla/v1/overview").expect(200)
}

fn as_user(token: &str) -> String {
    format!("Bearer {token}")
}

/// Runs `flotilla` with the kubeconfig of a server's administrator. Returns its standard output.
fn run(server: &Server, arguments: &[&str]) -> String {
    successful(as_admin(server, arguments, &[]))
}

#[test]
fn users_who_may_get_the_console_see_it() {
    let directory = DataDir::new();
    let tokens = directory.path().with_extension("tokens");
    fs::create_dir_all(tokens.parent().expect("a directory")).expect("a directory");
    fs::write(&tokens, "ann-shows-this,ann,u-1\n").expect("a file");
    let server = directory.start_with(&["--token-auth-file", &tokens.display().to_string()]);
    let (mut administrator, mut nobody) = (server.connect(), server.connect_anonymously());
    for path in ["/console", "/console/events", "/flotilla/v1/overview"] {
        assert_eq!(nobody.get(path).status, 403, "{path}");
        let unknown = nobody.call("GET", path, &[("Authorization", "Bearer unknown")], b"").expect("an answer");
        assert_eq!(unknown.status, 401, "{path}");
    }
    let hint = nobody.call("GET", "/console", &[("Accept", "text/html")], b"").expect("an answer");
    assert!(hint.status == 403 && hint.text().contains("flotilla console"), "{}", hint.text());
    let page = administrator.get("/console");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'") && policy.contains("script-src 'sha256-"), "{policy}");
    assert_eq!((page.header("cache-control"), page.header("x-frame-options")), (Some("no-store"), Some("DENY")));
    assert_eq!(administrator.post("/console", &json!({})).status, 405);
    let ann = as_user("ann-shows-this");
    let mut get = |path: &str| nobody.call("GET", path, &[("Authorization", &ann)], b"").expect("an answer").status;
    assert_eq!(get("/console"), 403);
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{"nonResourceURLs": ["/console"], "verbs": ["get"]}]);
    let role = json!({"metadata": {"name": "looks"}, "rules": rules});
    administrator.post(&format!("{roles}/clusterroles"), &role).expect(201);
    let of = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looks"});
    let binding = json!({"metadata": {"name": "looks"}, "roleRef": of, "subjects": [{"kind": "User", "name": "ann"}]});
    administrator.post(&format!("{roles}/clusterrolebindings"), &binding).expect(201);
    until("ann may get it", || get("/console") == 200);
    assert_eq!(get("/flotilla/v1/overview"), 403, "that is another path");
}

#[test]
fn names_from_clients_are_escaped() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let agent = [("User-Agent", SCRIPT)];
    until("the request is among the slowest", || {
        client.call("GET", "/api/v1/namespaces/default/secrets", &agent, b"").expect("an answer");
        let state = overview(&mut client);
        state["slowest"].as_array().expect("a list").iter().any(|it| it["userAgent"] == SCRIPT)
    });
    let path = "/api/v1/namespaces/default/configmaps";
    for name in ["large-a", "large-b"] {
        client.post(path, &config_map(name, &"x".repeat(500_000))).expect(201);
    }
    until("a request with a large answer is, too", || {
        client.get(path).expect(200);
        let state = overview(&mut client);
        let mut slowest = state["slowest"].as_array().expect("a list").iter();
        slowest.any(|it| it["verb"] == "LIST" && it["path"] == path && it["bytes"].as_u64() > Some(1_000_000))
    });
    let page = client.get("/console").text();
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains(SCRIPT), "{page}");
}

#[test]
fn a_console_is_kept_up_to_date() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut connection = server.connect();
    let head = connection.upgrade("GET", "/console/events", &[]).expect("an answer");
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    let mut text = Vec::new();
    while String::from_utf8_lossy(&text).matches("data: ").count() < 2 {
        text.extend(connection.read_bytes(64).expect("an event"));
    }
    assert!(String::from_utf8_lossy(&text).contains("id=\"glance\""));
    let mut other = server.connect();
    until("the stream is counted while it lasts", || overview(&mut other)["watches"].as_u64() >= Some(1));
    drop(connection);
    until("it ends with its client", || overview(&mut other)["watches"] == 0);
}

#[test]
fn the_events_of_a_console_end_in_time_and_their_number_is_bounded() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let whole = client.get("/console/events?timeout=10s");
    assert!(whole.status == 200 && whole.text().ends_with("\n\n"), "{}", whole.text());
    let open = |number: usize| {
        let mut connection = server.connect();
        let head = connection.upgrade("GET", "/console/events", &[]).expect("an answer");
        (head.status == 200).then_some(connection).ok_or((number, head.status))
    };
    let streams: Vec<_> = (0..16).map(|number| open(number).expect("a stream")).collect();
    assert_eq!(open(16).err(), Some((16, 429)));
    drop(streams);
    until("others can be opened", || open(0).is_ok());
}

#[test]
fn a_stopping_server_ends_streams_of_events() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut connection = server.connect();
    assert_eq!(connection.upgrade("GET", "/console/events", &[]).expect("an answer").status, 200);
    assert!(server.terminate().success());
}

#[test]
fn a_link_opens_the_console_once() {
    let directory = DataDir::new();
    let server = directory.start();
    let link = run(&server, &["console"]);
    let (_, path) = link.trim_end().split_once("/console/").expect("a link");
    let path = format!("/console/{path}");
    let mut browser = server.connect_anonymously();
    assert_eq!(browser.get("/console/open?token=guessed").status, 403);
    assert_eq!(browser.get("/console").status, 403);
    let opened = browser.get(&path);
    assert_eq!(opened.status, 200, "{}", opened.text());
    let cookie = opened.header("set-cookie").expect("a cookie").to_owned();
    for part in ["__Host-", "; Secure", "; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert_eq!(browser.get(&path).status, 403, "it was used");
    let shown = cookie.split(';').next().expect("a pair").to_owned();
    let mut get = |path: &str| browser.call("GET", path, &[("Cookie", &shown)], b"").expect("an answer");
    let page = get("/console");
    assert!(page.status == 200 && page.text().contains("<main"), "{}", page.text());
    for elsewhere in ["/api/v1/secrets", "/flotilla/v1/overview", "/metrics"] {
        assert_eq!(get(elsewhere).status, 403, "{elsewhere}");
    }
    let post = browser.call("POST", "/console/links", &[("Cookie", &shown)], b"").expect("an answer");
    assert_eq!(post.status, 403, "a link makes no links");
}

#[test]
fn a_link_opens_the_console_although_anonymous_requests_are_off() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--anonymous-auth=false"]);
    let link = run(&server, &["console"]);
    let (_, path) = link.trim_end().split_once("/console/").expect("a link");
    let path = format!("/console/{path}");
    let mut browser = server.connect_anonymously();
    let html = [("Accept", "text/html")];
    let hint = browser.call("GET", "/console", &html, b"").expect("an answer");
    assert!(hint.status == 401 && hint.text().contains("flotilla console"), "{}", hint.text());
    assert_eq!(browser.get("/console").status, 401, "a client that is no browser gets a `Status`");
    assert_eq!(browser.call("POST", &path, &[], b"").expect("an answer").status, 401, "a link is opened by GET");
    assert_eq!(browser.get(&path).status, 200);
    let again = browser.call("GET", &path, &html, b"").expect("an answer");
    assert!(again.status == 401 && again.text().contains("has been used"), "{}", again.text());
    let mut administrator = server.connect();
    let used = administrator.get(&path);
    assert!(used.status == 403 && used.text().contains("has been used"), "{}", used.text());
}

#[test]
fn a_console_can_be_off() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--console", "off"]);
    let (mut client, mut nobody) = (server.connect(), server.connect_anonymously());
    for path in ["/console", "/console/events"] {
        let answer = client.get(path).expect(404);
        assert!(answer["message"].as_str().is_some_and(|message| message.contains("--console")), "{answer}");
        assert_eq!(nobody.get(path).status, 403, "{path}");
    }
    client.post("/console/links", &json!({})).expect(404);
    assert_eq!(nobody.get("/console/open?token=x").status, 403);
    overview(&mut client);
}

#[test]
fn the_overview_has_the_warnings_of_the_log() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    client.post("/flotilla/v1/cluster/remove", &json!({"name": "nobody-has-this-name"})).expect(404);
    let state = overview(&mut client);
    let warnings = state["warnings"].as_array().expect("a list");
    let texts: Vec<_> = warnings.iter().filter_map(|warning| warning["text"].as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("the cluster could not be changed")), "{texts:?}");
    assert!(state["slowest"].as_array().is_some() && state["disk"]["sizeBytes"].as_u64() > Some(0), "{state}");
}

#[test]
fn a_watch_that_is_not_read_is_behind() {
    let directory = DataDir::new();
    let server = directory.start();
    let path = "/api/v1/namespaces/default/configmaps";
    let watch = server.connect().watch(&format!("{path}?watch=true")).expect("an answer").expect("a watch");
    let mut client = server.connect();
    let large = "x".repeat(500_000);
    let mut number = 0;
    until("the watch is behind", || {
        client.post(path, &config_map(&format!("large-{number}"), &large)).expect(201);
        number += 1;
        let state = overview(&mut client);
        let behind = state["watchesBehind"].as_array().expect("a list");
        let it = behind.iter().find(|it| it["resource"] == "configmaps" && it["selects"] == "namespace=default");
        it.is_some_and(|it| it["seconds"].as_f64() > Some(0.5))
    });
    drop(watch);
    until("no watch is behind", || {
        let state = overview(&mut client);
        state["watchesBehind"].as_array().expect("a list").iter().all(|it| it["selects"] != "namespace=default")
    });
}

#[test]
fn top_shows_rates() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let kubeconfig = server.data().join("admin.kubeconfig").display().to_string();
    until("the lists are counted", || {
        let mut top = Command::new(env!("CARGO_BIN_EXE_flotilla"));
        top.args(["top", "--interval", "1", "-o", "json", "--kubeconfig", &kubeconfig]).stdout(Stdio::piped());
        let mut top = top.spawn().expect("the program can be run");
        while top.try_wait().expect("a child").is_none() {
            client.get("/api/v1/namespaces/default/configmaps").expect(200);
        }
        let output = top.wait_with_output().expect("what it wrote");
        let top: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let requests = top["requests"].as_array().expect("a list");
        let lists = requests.iter().find(|it| it["verb"] == "LIST" && it["resource"] == "configmaps");
        lists.is_some_and(|it| it["perSecond"].as_f64() > Some(0.0)) && top["requestsPerSecond"].as_f64() > Some(0.0)
    });
    assert!(run(&server, &["top", "--interval", "1"]).contains("WATCHED"), "a table");
}
