//! The audit webhook, and events that are too large: as kube-apiserver 1.36 does with the same flags.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::audit::{MAPS, events, files};
use crate::support::{DataDir, Reply, Server, Webhook};

/// Writes the policy, and a kubeconfig for a webhook. Returns the flags for both.
fn flags(directory: &DataDir, server: &str, bundle: &str) -> Vec<String> {
    let (policy, _) = files(directory);
    let kubeconfig = policy.with_file_name("webhook.yaml");
    let cluster = json!({"server": server, "certificate-authority-data": bundle});
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    fs::write(&kubeconfig, config.to_string()).expect("a file");
    vec![
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-webhook-config-file={}", kubeconfig.display()),
    ]
}

fn start(directory: &DataDir, webhook: &Webhook, more: &[&str]) -> Server {
    let url = format!("https://127.0.0.1:{}/audit", webhook.port());
    let flags = flags(directory, &url, webhook.bundle());
    directory.start_with(&flags.iter().map(String::as_str).chain(more.iter().copied()).collect::<Vec<_>>())
}

fn accepts() -> Webhook {
    Webhook::start(|_| Reply::of("200 OK", "", ""))
}

/// Returns the events of a request that a webhook has received so far, in order.
fn sent(webhook: &Webhook, id: &str) -> Vec<Value> {
    let asked = webhook.asked();
    let all = asked.iter().flat_map(|(_, list)| list["items"].as_array().into_iter().flatten());
    all.filter(|event| event["auditID"] == id).cloned().collect()
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn get(server: &Server, path: &str, id: &str) -> u16 {
    server.connect().call("GET", path, &[("Audit-ID", id)], b"").expect("an answer").status
}

/// Returns the value of the counter whose line begins with `series`. Returns 0 if no line does.
fn counter(server: &Server, series: &str) -> u64 {
    let text = server.connect().get("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(series)).unwrap_or(" 0");
    line.trim().parse().expect("a number")
}

#[test]
fn events_are_sent_in_lists() {
    let (directory, webhook) = (DataDir::new(), accepts());
    let (_, log) = files(&directory);
    let path = format!("--audit-log-path={}", log.display());
    let server = start(&directory, &webhook, &[&path, "--audit-webhook-batch-max-wait=50ms"]);
    let map = json!({"metadata": {"name": "a"}, "data": {"x": "<y>"}}).to_string();
    let headers = [("Audit-ID", "made"), ("Content-Type", "application/json")];
    assert_eq!(server.connect().call("POST", MAPS, &headers, map.as_bytes()).expect("an answer").status, 201);
    until("two events", || sent(&webhook, "made").len() == 2);
    let logged = events(&log, "made", 2);
    for (logged, sent) in logged.into_iter().zip(sent(&webhook, "made")) {
        assert_eq!((&logged["kind"], &logged["apiVersion"]), (&json!("Event"), &json!("audit.k8s.io/v1")));
        let mut in_list = logged;
        for member in ["kind", "apiVersion"] {
            in_list.as_object_mut().expect("an object").remove(member);
        }
        assert_eq!(in_list, sent);
    }
    let (path, list) = webhook.asked().swap_remove(0);
    assert_eq!(path, "/audit?timeout=30s");
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("EventList"), &json!("audit.k8s.io/v1")));
    assert_eq!(list["metadata"], json!({}));
    let caller = &webhook.callers()[0];
    assert_eq!(caller.header("authorization"), ["Bearer secret"]);
    assert_eq!(caller.header("content-type"), ["application/json"]);
}

#[test]
fn lists_are_sent_again() {
    let failures = AtomicUsize::new(3);
    let webhook = Webhook::start(move |_| {
        let fails = failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if fails { Reply::of("500 Internal Server Error", "", "no") } else { Reply::of("200 OK", "", "") }
    });
    let directory = DataDir::new();
    let more = ["--audit-webhook-initial-backoff=1ms", "--audit-webhook-batch-max-size=1"];
    let server = start(&directory, &webhook, &more);
    assert_eq!(get(&server, "/version", "again"), 200);
    // The webhook receives the event more than once, because it refuses the first lists.
    until("two events", || sent(&webhook, "again").len() >= 2);
    assert_eq!(counter(&server, "apiserver_audit_error_total{plugin=\"webhook\"}"), 0);
}

#[test]
fn events_that_cannot_be_sent_are_counted() {
    let webhook = Webhook::start(|_| Reply::of("500 Internal Server Error", "", "no"));
    let directory = DataDir::new();
    let more = [
        "--audit-webhook-initial-backoff=1ms",
        "--audit-webhook-batch-max-size=1",
        "--audit-webhook-batch-throttle-enable=false",
    ];
    let server = start(&directory, &webhook, &more);
    for _ in 0..20 {
        assert_eq!(get(&server, "/version", "lost"), 200);
    }
    until("five calls for each", || sent(&webhook, "lost").len() == 5 * 40);
    until("losses", || counter(&server, "apiserver_audit_error_total{plugin=\"webhook\"}") >= 40);
    let lines = server.messages().matches("events of auditing were lost").count();
    assert!((1..=30).contains(&lines), "{lines} lines");
    assert!(server.messages().contains("an error on the server (\"no\") has prevented"), "{}", server.messages());
}

#[test]
fn what_waits_is_bounded() {
    let webhook = Webhook::start(|_| Reply::Hang);
    let directory = DataDir::new();
    let more = [
        "--audit-webhook-batch-buffer-size=5",
        "--audit-webhook-batch-max-size=1",
        "--audit-webhook-batch-throttle-enable=false",
    ];
    let server = start(&directory, &webhook, &more);
    let mut client = server.connect();
    for _ in 0..50 {
        assert_eq!(client.get("/version").status, 200);
    }
    let lost = counter(&server, "apiserver_audit_error_total{plugin=\"buffered\"}");
    assert!(lost >= 100 - 5 - 16 - 1, "{lost}");
    assert!(server.messages().contains("too many wait"), "{}", server.messages());
}

#[test]
fn what_waits_is_sent_in_the_end() {
    let (directory, webhook) = (DataDir::new(), accepts());
    let server = start(&directory, &webhook, &["--audit-webhook-batch-max-wait=1h"]);
    assert_eq!(get(&server, "/version", "last"), 200);
    assert_eq!(sent(&webhook, "last").len(), 0, "the batch is not full");
    assert!(server.terminate().success());
    assert_eq!(sent(&webhook, "last").len(), 2);
}

#[test]
fn requests_wait_for_the_webhook() {
    let (directory, webhook) = (DataDir::new(), accepts());
    let server = start(&directory, &webhook, &["--audit-webhook-mode=blocking"]);
    assert_eq!(get(&server, "/version", "waits"), 200);
    assert_eq!(sent(&webhook, "waits").len(), 2);
    let watch = format!("{MAPS}?watch=1&timeoutSeconds=1");
    assert_eq!(get(&server, &watch, "watches"), 200);
    let stages: Vec<_> = sent(&webhook, "watches").into_iter().map(|event| event["stage"].clone()).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
}

#[test]
fn requests_are_refused_without_the_webhook_if_that_is_wanted() {
    let directory = DataDir::new();
    let flags = flags(&directory, "https://127.0.0.1:1", "");
    let start = |mode| directory.start_with(&[&flags[0], &flags[1], "--audit-webhook-initial-backoff=1ms", mode]);
    {
        let server = start("--audit-webhook-mode=blocking");
        assert_eq!(server.connect().get("/version").status, 200);
        assert_eq!(counter(&server, "apiserver_audit_requests_rejected_total"), 0);
    }
    let server = start("--audit-webhook-mode=blocking-strict");
    let refused = server.connect().get("/version");
    assert_eq!(refused.status, 500);
    let text = String::from_utf8_lossy(&refused.body).into_owned();
    assert_eq!(text, "Internal Server Error: \"/version\": failed to store audit event\n");
    assert_eq!(server.connect().get("/healthz").status, 200, "it is not recorded");
}

#[test]
fn kubeconfigs_are_checked_at_the_start() {
    let directory = DataDir::new();
    let flags = flags(&directory, "nonsense", "");
    let refusal = directory.try_start_with(&[&flags[0], &flags[1]]).err().expect("a refusal");
    assert_eq!(refusal.code, Some(2), "{}", refusal.messages);
    for part in ["audit-webhook-config-file", "server: it must be an http or https URL"] {
        assert!(refusal.messages.contains(part), "{}", refusal.messages);
    }
}

/// Returns the lines of a log about a request.
fn lines(log: &Path, id: &str) -> Vec<Value> {
    let text = fs::read_to_string(log).expect("a log");
    let all = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    all.filter(|event| event["auditID"] == id).collect()
}

#[test]
fn large_events_are_truncated() {
    let directory = DataDir::new();
    let (policy, log) = files(&directory);
    let policy = format!("--audit-policy-file={}", policy.display());
    let path = format!("--audit-log-path={}", log.display());
    let sizes = ["--audit-log-truncate-enabled", "--audit-log-truncate-max-event-size=2000"];
    let server = directory.start_with(&[&policy, &path, sizes[0], sizes[1]]);
    let mut client = server.connect();
    let mut post = |id: &str, bytes: usize| {
        let map = json!({"metadata": {"name": id}, "data": {"x": "y".repeat(bytes)}}).to_string();
        let headers = [("Audit-ID", id), ("Content-Type", "application/json")];
        assert_eq!(client.call("POST", MAPS, &headers, map.as_bytes()).expect("an answer").status, 201);
    };
    post("small", 10);
    post("large", 2_000);
    let small = &events(&log, "small", 2)[1];
    assert!(small["requestObject"].is_object() && small["annotations"]["audit.k8s.io/truncated"].is_null());
    let large = &events(&log, "large", 2)[1];
    assert_eq!(large["annotations"]["audit.k8s.io/truncated"], "true");
    assert_eq!((&large["level"], &large["responseStatus"]["code"]), (&json!("RequestResponse"), &json!(201)));
    assert!(large.get("requestObject").is_none() && large.get("responseObject").is_none());
    assert_eq!(counter(&server, "apiserver_audit_error_total{plugin=\"truncate\"}"), 0);

    let long = format!("/version?{}", "x".repeat(2_000));
    assert_eq!(get(&server, &long, "long"), 200);
    until("a loss", || counter(&server, "apiserver_audit_error_total{plugin=\"truncate\"}") == 2);
    assert_eq!(lines(&log, "long"), [Value::Null; 0]);
}

#[test]
fn events_tell_of_patches_and_of_slow_requests() {
    let patch = json!([{"value": "<c>", "op": "add", "path": "/data/b"}]).to_string();
    let admission = Webhook::start(move |review| {
        std::thread::sleep(Duration::from_millis(600));
        let of = &review["request"];
        let is_refused = of["name"] == "refused";
        let mut response = json!({"uid": of["uid"], "allowed": !is_refused});
        if !is_refused {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(&patch));
        }
        Reply::Document(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
    });
    let directory = DataDir::new();
    let (policy, log) = files(&directory);
    let policy = format!("--audit-policy-file={}", policy.display());
    let server = directory.start_with(&[&policy, &format!("--audit-log-path={}", log.display())]);
    let mut client = server.connect();
    let hook = |name: &str, resource: &str| {
        json!({
            "name": name, "clientConfig": admission.config("/"), "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource]}],
        })
    };
    let webhooks = [hook("a.example.com", "pods"), hook("b.example.com", "configmaps")];
    let configuration = json!({"metadata": {"name": "hooks"}, "webhooks": webhooks});
    client.post("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", &configuration).expect(201);
    let mut post = |id: &str| {
        let map = json!({"metadata": {"name": id}, "data": {"a": "b"}}).to_string();
        let headers = [("Audit-ID", id), ("Content-Type", "application/json")];
        client.call("POST", MAPS, &headers, map.as_bytes()).expect("an answer")
    };
    let mut probes = 0;
    until("the webhook is called", || {
        probes += 1;
        post(&format!("probe-{probes}")).expect(201)["data"]["b"].is_string()
    });
    post("patched").expect(201);
    let annotations = events(&log, "patched", 2)[1]["annotations"].clone();
    let mutated = r#"{"configuration":"hooks","webhook":"b.example.com","mutated":true}"#;
    assert_eq!(annotations["mutation.webhook.admission.k8s.io/round_0_index_1"], mutated);
    let operation = r#"{"op":"add","path":"/data/b","value":"\u003cc\u003e"}"#;
    let named = r#"{"configuration":"hooks","webhook":"b.example.com","patch":["#;
    let patch = format!(r#"{named}{operation}],"patchType":"JSONPatch"}}"#);
    assert_eq!(annotations["patch.webhook.admission.k8s.io/round_0_index_1"], patch);
    for part in ["total", "authorization"] {
        let took = annotations[format!("apiserver.latency.k8s.io/{part}")].as_str().expect("a time");
        assert!(took.ends_with('s'), "{took}");
    }
    assert_eq!(post("refused").status, 400);
    let annotations = events(&log, "refused", 2)[1]["annotations"].clone();
    let mutated = r#"{"configuration":"hooks","webhook":"b.example.com","mutated":false}"#;
    assert_eq!(annotations["mutation.webhook.admission.k8s.io/round_0_index_1"], mutated);
}
