//! Other servers that hang, have a wrong certificate or redirect: only requests that need them fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Connection, DataDir, PATIENCE, Webhook};
use crate::webhooks::{MAPS, MUTATING, VALIDATING, answer, but_probes, configure, hook, map};

/// The number of requests that wait for a webhook that does not answer.
const WAITING: usize = 1_000;
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

fn allow(review: &Value) -> crate::support::Reply {
    answer(review, true, json!({}))
}

/// Returns how many requests to other servers are in progress or wait.
fn outbound(client: &mut Connection) -> usize {
    let text = client.get("/metrics").text();
    let line = text.lines().find(|line| line.starts_with("flotilla_outbound_requests "));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

/// Sends requests that do not need the webhook that hangs.
fn live_on(client: &mut Connection, name: &str) {
    client.get(MAPS).expect(200);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    client.post("/api/v1/namespaces/default/secrets", &secret).expect(201);
    // This request needs another webhook.
    client.post(ACCOUNTS, &json!({"metadata": {"name": name}})).expect(201);
    client.delete(&format!("{ACCOUNTS}/{name}")).expect(200);
}

#[test]
fn a_dead_webhook_delays_only_requests_that_need_it() {
    let is_dead = Arc::new(AtomicBool::new(true));
    let dead = Arc::clone(&is_dead);
    let webhook = but_probes(move |review| {
        while dead.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(20));
        }
        allow(review)
    });
    let (data, other) = (DataDir::new(), but_probes(allow));
    let server = data.start();
    let mut client = server.connect();
    let accounts = json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"],
        "resources": ["serviceaccounts"]}]);
    configure(&mut client, VALIDATING, "other", &[hook("o.example.com", &accounts, json!({}))], &other);
    let slow = json!({"timeoutSeconds": 30, "matchConditions": [
        {"name": "waiting", "expression": "request.name.startsWith('waits') || request.name.startsWith('probe')"}
    ]});
    configure(&mut client, MUTATING, "dead", &[hook("d.example.com", &json!([]), slow)], &webhook);
    let mut waiting: Vec<Connection> = (0..WAITING).map(|_| server.connect()).collect();
    let deadline = Instant::now() + 4 * PATIENCE;
    // On a slow machine, the first requests may time out before the last one is sent. The round is then repeated.
    for round in 0.. {
        for (at, connection) in waiting.iter_mut().enumerate() {
            let body = map(&format!("waits-{round}-{at}")).to_string();
            let head = format!("POST {MAPS} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n");
            let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
            connection.send(request.as_bytes()).expect("a client can send");
        }
        let all_wait = (0..1_000).any(|_| {
            sleep(Duration::from_millis(20));
            outbound(&mut client) >= WAITING
        });
        if all_wait {
            (0..5).for_each(|n| live_on(&mut client, &format!("lives-{round}-{n}")));
            let still_wait = outbound(&mut client) >= WAITING;
            if still_wait {
                break;
            }
        }
        waiting.iter_mut().for_each(|connection| drop(connection.read_answer().expect("an answer")));
        assert!(Instant::now() < deadline, "not all requests waited while others were answered");
    }
    is_dead.store(false, Ordering::SeqCst);
    for connection in &mut waiting {
        let answer = connection.read_answer().expect("an answer");
        assert!([201, 500].contains(&answer.status), "{}", answer.text());
    }
    live_on(&mut client, "lives-after");
    let deadline = Instant::now() + PATIENCE;
    while outbound(&mut client) > 0 {
        assert!(Instant::now() < deadline, "requests to webhooks are still in progress");
        sleep(Duration::from_millis(20));
    }
}

/// Creates a configuration, waits until a write fails because of its webhook, and deletes the configuration. Returns
/// the message of that failure.
fn fail_by(client: &mut Connection, path: &str, webhook: Value) -> String {
    let mut hook = hook("x.example.com", &json!([]), json!({"timeoutSeconds": 30}));
    hook["clientConfig"] = webhook;
    client.post(path, &json!({"metadata": {"name": "x"}, "webhooks": [hook]})).expect(201);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = client.post(&format!("{MAPS}?dryRun=All"), &map("a"));
        if answer.status != 201 {
            client.delete(&format!("{path}/x")).expect(200);
            while client.post(&format!("{MAPS}?dryRun=All"), &map("a")).status != 201 {
                assert!(Instant::now() < deadline, "a webhook is called after its configuration was deleted");
                sleep(Duration::from_millis(20));
            }
            return answer.expect(500)["message"].as_str().unwrap_or_default().to_owned();
        }
        assert!(Instant::now() < deadline, "the webhook is not called");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn webhooks_with_a_wrong_certificate_receive_nothing() {
    let data = DataDir::new();
    let server = data.start();
    let mut client = server.connect();
    let ymd = rcgen::date_time_ymd;
    let of = |name: &str| Webhook::start_as(name, |_| {}, allow);
    let valid = |from: i32, to: i32| {
        let change = move |params: &mut rcgen::CertificateParams| {
            (params.not_before, params.not_after) = (ymd(from, 1, 1), ymd(to, 1, 1));
        };
        Webhook::start_as("127.0.0.1", change, allow)
    };
    let trusted = of("127.0.0.1");
    for (webhook, bundle, expected) in [
        (valid(2000, 2001), None, "certificate has expired or is not yet valid: current time "),
        (valid(2090, 2091), None, " is before 2090-01-01T00:00:00Z"),
        (of("other.example"), None, "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"),
        (of("127.0.0.2"), None, "certificate is valid for 127.0.0.2, not 127.0.0.1"),
        (of("127.0.0.1"), Some(trusted.bundle()), "certificate signed by unknown authority"),
    ] {
        let mut config = webhook.config("/");
        if let Some(bundle) = bundle {
            config["caBundle"] = bundle.into();
        }
        for path in [MUTATING, VALIDATING] {
            let message = fail_by(&mut client, path, config.clone());
            let begins =
                "Internal error occurred: failed calling webhook \"x.example.com\": failed to call webhook: Post ";
            assert!(
                message.starts_with(begins) && message.contains("tls: failed to verify certificate: x509: "),
                "{message}"
            );
            assert!(message.contains(expected), "{expected} is not in {message}");
        }
        assert!(webhook.asked().is_empty(), "no review is sent: {expected}");
    }
}

#[test]
fn services_without_endpoints_are_reported() {
    let (data, webhook) = (DataDir::new(), but_probes(allow));
    let server = data.start_with(&["--enable-aggregator-routing"]);
    let mut client = server.connect();
    let spec = json!({"ports": [{"name": "https", "port": 443}], "selector": {"a": "b"}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "empty"}, "spec": spec});
    client.post("/api/v1/namespaces/default/services", &service).expect(201);
    for (name, port, expected) in [
        ("none", 443, "service \"none\" not found"),
        ("empty", 444, "no service port 444 found for service \"empty\""),
        ("empty", 443, "no endpoints available for service \"empty\""),
    ] {
        let service = json!({"namespace": "default", "name": name, "port": port});
        let config = json!({"service": service, "caBundle": webhook.bundle()});
        let message = fail_by(&mut client, MUTATING, config);
        let url = format!("Post \"https://{name}.default.svc:{port}/?timeout=30s\": {expected}");
        assert!(message.ends_with(&url), "{message}");
    }
}

#[test]
fn redirects_of_nodes_are_not_followed() {
    use crate::streams::{POD, SPDY, with_pod};
    use crate::support::frames::{server_frame, websocket_headers};
    let caught = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&caught);
    let trap = crate::support::Backend::start(move |exchange| {
        counted.fetch_add(1, Ordering::SeqCst);
        exchange.answer("200 OK", "", "caught")
    });
    let location = format!("Location: https://127.0.0.1:{}/\r\n", trap.port());
    let node = crate::support::Backend::start(move |exchange| exchange.answer("302 Found", &location, ""));
    let data = DataDir::new();
    let (server, mut client) = with_pod(&data, &node);
    client.get(&format!("{POD}/log")).expect(500);
    for part in ["exec?command=x&stdout=1", "attach?stdout=1", "portforward?ports=80"] {
        let mut stream = server.connect();
        let answer = stream.upgrade("POST", &format!("{POD}/{part}"), &SPDY).expect("an answer");
        assert_eq!((answer.status, answer.header("location")), (500, None), "{part}");
    }
    let mut stream = server.connect();
    let headers = websocket_headers("v5.channel.k8s.io");
    let path = format!("{POD}/exec?command=x&stdout=1");
    assert_eq!(stream.upgrade("GET", &path, &headers).expect("a stream").status, 101);
    assert_eq!(server_frame(&mut stream).expect("a sign"), (2, vec![1]));
    let (_, status) = server_frame(&mut stream).expect("a status");
    assert!(String::from_utf8_lossy(&status).contains("redirect not allowed"));
    let headers = websocket_headers("SPDY/3.1+portforward.k8s.io");
    let mut stream = server.connect();
    let answer = stream.upgrade("GET", &format!("{POD}/portforward?ports=80"), &headers).expect("an answer");
    assert_eq!((answer.status, answer.header("location")), (500, None));
    assert_eq!(caught.load(Ordering::SeqCst), 0);
}
