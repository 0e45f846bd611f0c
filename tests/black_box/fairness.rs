//! Priority and fairness: requests take seats of their levels, wait for them, or are refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{JoinHandle, spawn};

use serde_json::{Value, json};

use crate::cluster::until;
use crate::support::{Answer, CONFIG_MAPS, Connection, DataDir, Server, Webhook};
use crate::webhooks::{MAPS, MUTATING, answer, but_probes, configure, hook, map, rule};

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const SCHEMA_UID: &str = "x-kubernetes-pf-flowschema-uid";
const LEVEL_UID: &str = "x-kubernetes-pf-prioritylevel-uid";
/// With these limits, one share of a level is one seat. A request waits for a seat for a quarter of its time, which
/// must be enough even on a busy machine.
const FLAGS: [&str; 5] =
    ["--max-requests-inflight", "100", "--max-mutating-requests-inflight", "100", "--request-timeout-seconds=480"];

/// How many webhooks hold a write, one after the other. The server gives each up after 30 seconds. On a busy machine, a
/// test may take longer.
const HOLDERS: usize = 8;

/// Holds the answers of a webhook until it is opened.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn pass(&self) {
        let mut open = self.0.lock().expect("nobody panics while holding this");
        while !*open {
            open = self.1.wait(open).expect("nobody panics while holding this");
        }
    }

    fn open(&self) {
        *self.0.lock().expect("nobody panics while holding this") = true;
        self.1.notify_all();
    }
}

fn limited(name: &str, response: &Value) -> Value {
    let limited = json!({"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0, "limitResponse": response});
    json!({"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}})
}

fn queue(length: u32) -> Value {
    json!({"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": length}})
}

/// Returns a FlowSchema for all requests of a user.
fn schema(name: &str, level: &str, precedence: u32, user: &str) -> Value {
    let all = json!(["*"]);
    json!({"metadata": {"name": name}, "spec": {
        "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [{
            "subjects": [{"kind": "User", "user": {"name": user}}],
            "resourceRules": [{"verbs": all, "apiGroups": all, "resources": all, "namespaces": all, "clusterScope": true}],
            "nonResourceRules": [{"verbs": all, "nonResourceURLs": all}],
        }],
    }})
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

fn call(client: &mut Connection, user: &str, method: &str, path: &str, body: &str) -> Answer {
    let headers = [("Impersonate-User", user), ("Content-Type", "application/json")];
    client.call(method, path, &headers, body.as_bytes()).expect("an answer")
}

fn get(server: &Server, user: &str, path: &str) -> Answer {
    call(&mut server.connect(), user, "GET", path, "")
}

/// Returns the uids that an answer shows: of the FlowSchema and of the level.
fn shown(answer: &Answer) -> (Option<&str>, Option<&str>) {
    (answer.header(SCHEMA_UID), answer.header(LEVEL_UID))
}

/// Returns a number of the metrics of a level, summed over its FlowSchemas.
fn measured(server: &Server, name: &str, level: &str) -> f64 {
    let text = server.connect().get("/metrics").text();
    let label = format!("priority_level=\"{level}\"");
    let lines = text.lines().filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(&label));
    lines.map(|line| line.rsplit(' ').next().expect("a value").parse::<f64>().expect("a number")).sum()
}

fn waiting(server: &Server, level: &str) -> f64 {
    measured(server, "apiserver_flowcontrol_current_inqueue_requests", level)
}

/// A server whose level `narrow` has one seat, for the requests of the users `ann` and `eve`. Both may do everything,
/// and so may `bob`. A write of ann has the seat until the gate is opened.
struct Narrow {
    server: Arc<Server>,
    gate: Arc<Gate>,
    writer: Option<JoinHandle<Answer>>,
    schema_uid: String,
    level_uid: String,
    _data: DataDir,
    _webhook: Webhook,
}

impl Narrow {
    fn start(response: &Value) -> Self {
        let data = DataDir::new();
        let server = Arc::new(data.start_with(&FLAGS));
        let mut client = server.connect();
        let group = "rbac.authorization.k8s.io";
        let subject = |name: &str| json!({"apiGroup": group, "kind": "User", "name": name});
        let binding = json!({
            "metadata": {"name": "all"}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [subject("ann"), subject("bob"), subject("eve")],
        });
        client.post(&format!("/apis/{group}/v1/clusterrolebindings"), &binding).expect(201);
        let gate = Arc::<Gate>::default();
        let (held, opened) = (Arc::new(AtomicBool::new(false)), Arc::clone(&gate));
        let holds = Arc::clone(&held);
        let webhook = but_probes(move |review| {
            if review["request"]["name"] == "slow" {
                holds.store(true, Ordering::SeqCst);
                opened.pass();
            }
            answer(review, true, json!({}))
        });
        let of_maps = rule(&["UPDATE"], &[""], &["configmaps"]);
        let holds = json!({"timeoutSeconds": 30, "failurePolicy": "Ignore"});
        let holder = |number| hook(&format!("h{number}.example.com"), &of_maps, holds.clone());
        configure(&mut client, MUTATING, "h", &Vec::from_iter((0..HOLDERS).map(holder)), &webhook);
        let level_uid = uid(&client.post(LEVELS, &limited("narrow", response)).expect(201));
        client.post(SCHEMAS, &schema("eve", "narrow", 300, "eve")).expect(201);
        let schema_uid = uid(&client.post(SCHEMAS, &schema("ann", "narrow", 300, "ann")).expect(201));
        until("the binding and the level are in use", || {
            get(&server, "bob", MAPS).status == 200
                && get(&server, "ann", "/version").header(SCHEMA_UID) == Some(&*schema_uid)
                && get(&server, "eve", "/version").header(LEVEL_UID) == Some(&*level_uid)
        });
        let own = Arc::clone(&server);
        let slow = map("slow").to_string();
        // A seat is free again a moment after the answer to the request that had it.
        let writer = spawn(move || {
            loop {
                let answer = call(&mut own.connect(), "ann", "POST", MAPS, &slow);
                if answer.status != 429 {
                    return answer;
                }
            }
        });
        until("the write has the seat", || held.load(Ordering::SeqCst));
        let writer = Some(writer);
        Self { server, gate, writer, schema_uid, level_uid, _data: data, _webhook: webhook }
    }

    /// Sends a request of a user from a thread.
    fn ask(&self, user: &'static str, path: &'static str) -> JoinHandle<Answer> {
        let server = Arc::clone(&self.server);
        spawn(move || get(&server, user, path))
    }

    /// Lets the write end.
    fn open(&mut self) {
        self.gate.open();
        self.writer.take().expect("it is opened once").join().expect("an answer").expect(201);
    }
}

impl Drop for Narrow {
    fn drop(&mut self) {
        self.gate.open();
    }
}

#[test]
fn a_level_that_rejects_does_not_affect_other_levels() {
    let mut narrow = Narrow::start(&json!({"type": "Reject"}));
    let server = Arc::clone(&narrow.server);
    for path in [MAPS, "/version", "/apis", "/nope"] {
        let refused = get(&server, "ann", path);
        assert_eq!((refused.status, &*refused.text()), (429, "Too many requests, please try again later.\n"), "{path}");
        assert_eq!(shown(&refused), (Some(&*narrow.schema_uid), Some(&*narrow.level_uid)), "{path}");
        assert!(refused.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok()), "{path}");
        assert_eq!(get(&server, "eve", path).status, 429, "{path}: who shares the level");
    }
    assert_eq!(get(&server, "ann", "/livez").status, 200, "probes are exempt");
    for path in [MAPS, "/version"] {
        assert_eq!(get(&server, "bob", path).status, 200, "{path}");
        assert_eq!(server.connect().get(path).status, 200, "{path}");
    }
    assert!(measured(&server, "apiserver_flowcontrol_rejected_requests_total", "narrow") >= 8.0);
    narrow.open();
    until("the seat is free", || get(&server, "ann", MAPS).status == 200);
}

#[test]
fn requests_wait_in_queues_for_seats() {
    let mut narrow = Narrow::start(&queue(2));
    let server = Arc::clone(&narrow.server);
    let first = narrow.ask("ann", MAPS);
    until("one waits", || waiting(&server, "narrow") == 1.0);
    // A client that disconnects frees its place in the queue.
    let mut gone = server.connect();
    gone.send(format!("GET {MAPS} HTTP/1.1\r\nHost: a\r\nImpersonate-User: ann\r\n\r\n").as_bytes())
        .expect("a request");
    until("two wait", || waiting(&server, "narrow") == 2.0);
    assert_eq!(get(&server, "ann", MAPS).status, 429, "the queue is full");
    let dumped = server.connect().get("/debug/api_priority_and_fairness/dump_requests").text();
    assert_eq!(dumped.lines().filter(|line| line.starts_with("narrow,")).count(), 2, "{dumped}");
    assert_eq!(get(&server, "bob", MAPS).status, 200, "others go on");
    gone.abort();
    until("one has left", || waiting(&server, "narrow") == 1.0);
    let second = narrow.ask("eve", "/version");
    until("two wait again", || waiting(&server, "narrow") == 2.0);
    assert!(!first.is_finished() && !second.is_finished());
    narrow.open();
    first.join().expect("an answer").expect(200);
    second.join().expect("an answer").expect(200);
    until("all seats are free", || {
        waiting(&server, "narrow") + measured(&server, "apiserver_flowcontrol_current_executing_requests", "narrow")
            == 0.0
    });
    let dumped = server.connect().get("/debug/api_priority_and_fairness/dump_priority_levels").text();
    let line = dumped.lines().find(|line| line.starts_with("narrow,")).expect("a line");
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    assert_eq!(&cells[1..6], ["0", "true", "false", "0", "0"], "{dumped}");
}

#[test]
fn the_wait_for_a_seat_is_bounded() {
    let mut narrow = Narrow::start(&queue(9));
    let server = Arc::clone(&narrow.server);
    // A request waits for a quarter of the time that it may take, and is then refused.
    let late = get(&server, "ann", "/api/v1/namespaces/default/configmaps?timeout=2s");
    assert_eq!((late.status, shown(&late).1), (429, Some(&*narrow.level_uid)));
    let text = server.connect().get("/metrics").text();
    let counted = text.lines().find(|line| line.contains("rejected_requests_total{") && line.contains("time-out"));
    assert!(counted.is_some_and(|line| line.contains("flow_schema=\"ann\"") && line.ends_with(" 1")), "{counted:?}");
    // A stopping server also ends the wait.
    let waits = narrow.ask("ann", "/version");
    until("it waits", || waiting(&server, "narrow") == 1.0);
    server.send_sigterm();
    assert_eq!(waits.join().expect("an answer").status, 429);
    narrow.open();
}

#[test]
fn a_level_is_deleted_while_requests_wait() {
    let mut narrow = Narrow::start(&queue(9));
    let server = Arc::clone(&narrow.server);
    let waits = narrow.ask("ann", MAPS);
    until("it waits", || waiting(&server, "narrow") == 1.0);
    let mut client = server.connect();
    client.delete(&format!("{LEVELS}/narrow")).expect(200);
    until("its FlowSchemas have no effect", || get(&server, "ann", &format!("{MAPS}?timeout=1s")).status == 200);
    let moved = get(&server, "ann", "/version");
    assert!(moved.status == 200 && moved.header(LEVEL_UID) != Some(&*narrow.level_uid), "{moved:?}");
    assert!(!waits.is_finished(), "it has its place in the level that was");
    narrow.open();
    waits.join().expect("an answer").expect(200);
}

#[test]
fn changes_of_schemas_and_levels_take_effect() {
    let mut narrow = Narrow::start(&json!({"type": "Reject"}));
    let server = Arc::clone(&narrow.server);
    let mut client = server.connect();
    // Another FlowSchema comes first.
    let wide = uid(&client.post(SCHEMAS, &schema("wide", "workload-low", 250, "ann")).expect(201));
    until("it matches", || get(&server, "ann", "/version").header(SCHEMA_UID) == Some(&*wide));
    assert_eq!(get(&server, "ann", MAPS).status, 200);
    let merge = "application/merge-patch+json";
    let later = br#"{"spec": {"matchingPrecedence": 350}}"#;
    client.request("PATCH", &format!("{SCHEMAS}/wide"), merge, later).expect(200);
    until("it matches no more", || get(&server, "ann", "/version").header(SCHEMA_UID) == Some(&*narrow.schema_uid));
    assert_eq!(get(&server, "ann", MAPS).status, 429);
    // The level gets more seats.
    let more = br#"{"spec": {"limited": {"nominalConcurrencyShares": 100}}}"#;
    client.request("PATCH", &format!("{LEVELS}/narrow"), merge, more).expect(200);
    until("there are more seats", || get(&server, "ann", MAPS).status == 200);
    narrow.open();
}

#[test]
fn answers_show_how_requests_were_treated() {
    let data = DataDir::new();
    let server = data.start_with(&FLAGS);
    let mut admin = server.connect();
    let of = |client: &mut Connection, path: &str| uid(&client.get(path).expect(200));
    let exempt = (of(&mut admin, &format!("{SCHEMAS}/exempt")), of(&mut admin, &format!("{LEVELS}/exempt")));
    let probes = of(&mut admin, &format!("{SCHEMAS}/probes"));
    let default =
        (of(&mut admin, &format!("{SCHEMAS}/global-default")), of(&mut admin, &format!("{LEVELS}/global-default")));
    let is = |uids: &(String, String), answer: &Answer| shown(answer) == (Some(&*uids.0), Some(&*uids.1));
    let mut nobody = server.connect_anonymously();
    until("the objects are read", || {
        is(&exempt, &admin.get("/version"))
            && is(&default, &nobody.get("/version"))
            && is(&(probes.clone(), exempt.1.clone()), &nobody.get("/livez"))
    });
    let pod = "/api/v1/namespaces/default/pods/none";
    for (method, path, status) in [
        ("GET", "/version", 200),
        ("GET", "/metrics", 200),
        ("GET", "/nope", 404),
        ("GET", CONFIG_MAPS, 200),
        ("GET", pod, 404),
        ("GET", "/apis/none.example/v1/nones", 404),
        ("OPTIONS", CONFIG_MAPS, 405),
        ("POST", pod, 405),
    ] {
        let answer = admin.call(method, path, &[], b"").expect("an answer");
        assert!(answer.status == status && is(&exempt, &answer), "{method} {path}: {answer:?}");
    }
    for (path, status) in [("/version", 200), (CONFIG_MAPS, 403), ("/api/v1/nodes?watch=1", 403)] {
        let answer = nobody.get(path);
        assert!(answer.status == status && is(&default, &answer), "{path}: {answer:?}");
    }
    // Requests of unknown users, refused impersonations and long connections belong to no flow.
    let unknown = nobody.call("GET", "/version", &[("Authorization", "Bearer x")], b"").expect("an answer");
    assert_eq!((unknown.status, shown(&unknown)), (401, (None, None)));
    let refused = nobody.call("GET", "/version", &[("Impersonate-User", "ann")], b"").expect("an answer");
    assert_eq!((refused.status, shown(&refused)), (403, (None, None)));
    for path in ["log", "exec?command=x", "attach", "portforward", "proxy/"] {
        let answer = admin.get(&format!("{pod}/{path}"));
        assert!(answer.status >= 400 && shown(&answer) == (None, None), "{path}: {answer:?}");
    }
    // A watch has its seat until it has begun.
    let mut watch = server.connect();
    let request = format!(
        "GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: a\r\nImpersonate-User: ann\r\nImpersonate-Group: system:masters\r\n\r\n"
    );
    watch.send(request.as_bytes()).expect("a request");
    until("the watch has given its seat back", || {
        let text = admin.get("/metrics").text();
        let begun = "apiserver_flowcontrol_request_execution_seconds_count{flow_schema=\"exempt\",priority_level=\"exempt\",type=\"watch\"} 1";
        text.contains(begun)
    });
}

#[test]
fn without_priority_and_fairness_reads_and_writes_have_a_bound_each() {
    let data = DataDir::new();
    let server = data.start_with(&["--enable-priority-and-fairness=false"]);
    let mut admin = server.connect();
    let answer = admin.get("/version");
    assert_eq!((answer.status, shown(&answer)), (200, (None, None)));
    admin.get(&format!("{SCHEMAS}/exempt")).expect(200);
    assert!(!admin.get("/metrics").text().contains("apiserver_flowcontrol_"));
    assert_eq!(admin.get("/debug/api_priority_and_fairness/dump_queues").status, 404);
}
