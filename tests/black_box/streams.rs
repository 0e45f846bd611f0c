//! Logs, exec and port forwarding of pods, with a node that the test plays.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::frames::{client_frame, server_frame, spdy_data, spdy_frame, spdy_reply, websocket_headers};
use crate::support::{Backend, Connection, DataDir, Exchange, PATIENCE, Server};

pub const POD: &str = "/api/v1/namespaces/default/pods/p";
pub const SPDY: [(&str, &str); 3] =
    [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", "v4.channel.k8s.io")];

/// Starts a server with a pod on a node. Returns the server and a client.
pub fn with_pod(data: &DataDir, kubelet: &Backend) -> (Server, Connection) {
    let authority = data.path().with_file_name("kubelet.crt");
    fs::write(&authority, kubelet.certificate()).expect("a file");
    let server = data.start_with(&["--kubelet-certificate-authority", authority.to_str().expect("a path")]);
    let mut client = server.connect_for_pods();
    client.post("/api/v1/nodes", &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})).expect(201);
    let status = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port()}},
    }});
    let merge = "application/merge-patch+json";
    client.request("PATCH", "/api/v1/nodes/n/status", merge, status.to_string().as_bytes()).expect(200);
    let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    client.post("/api/v1/namespaces/default/pods", &pod).expect(201);
    (server, client)
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Answers as the node. Most of its answers repeat the request.
fn kubelet(exchange: &mut Exchange) -> io::Result<()> {
    let line = exchange.line().to_owned();
    match line.split(['?', ' ']).nth(1).unwrap_or_default() {
        _ if line.contains("follow") => {
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")?;
            // No more bytes follow until the client disconnects.
            exchange.read_some().map(|_| ())
        }
        "/containerLogs/default/p/c" if line.contains("tailLines=1") => exchange.answer("404 Not Found", "", "gone"),
        "/containerLogs/default/p/c" if line.contains("tailLines=2") => {
            exchange.answer("302 Found", "Location: https://127.0.0.1:1/\r\n", "")
        }
        "/containerLogs/default/p/c" => exchange.answer("200 OK", "", &line),
        "/exec/default/p/c" if line.contains("command=refused") => {
            assert!(exchange.header("authorization").is_none(), "{}", exchange.head);
            exchange.answer("403 Forbidden", "", "not here")
        }
        "/exec/default/p/c" if line.contains("command=ok") => exchange.answer("200 OK", "", "no"),
        "/exec/default/p/c" | "/attach/default/p/c" if exchange.header("upgrade") == Some("SPDY/3.1") => {
            exchange.switch("Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n")?;
            if exchange.head.contains("v5.channel.k8s.io") { process(exchange) } else { echo(exchange) }
        }
        "/exec/default/p/c" => {
            let protocol = exchange.header("sec-websocket-protocol").unwrap_or_default().to_owned();
            exchange.switch(&format!("Upgrade: websocket\r\nSec-WebSocket-Protocol: {protocol}\r\n"))?;
            echo(exchange)
        }
        "/portForward/default/p" => {
            assert_eq!(exchange.header("x-stream-protocol-version"), Some("portforward.k8s.io"), "{}", exchange.head);
            exchange.switch("Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\n")?;
            echo(exchange)
        }
        _ => exchange.answer("404 Not Found", "", "what?"),
    }
}

fn echo(exchange: &mut Exchange) -> io::Result<()> {
    loop {
        let bytes = exchange.read_some()?;
        exchange.send(&bytes)?;
    }
}

/// Answers as a process that echoes its input, and ends with exit code 3 at the end of the input.
fn process(exchange: &mut Exchange) -> io::Result<()> {
    let mut opened = Vec::new();
    loop {
        let (first, flags, data) = spdy_frame(exchange)?;
        match first {
            0x8003_0001 => {
                let number = u32::from_be_bytes(data[..4].try_into().expect("a number"));
                // A node in Go decompresses the headers only after the flush that follows them, and opens the stream
                // only then.
                let headers = data.strip_suffix(&[0, 0, 0, 0xff, 0xff]).expect("headers that are flushed");
                let text = String::from_utf8_lossy(headers).into_owned();
                let kinds = ["error", "stdin", "stdout", "stderr", "resize"];
                opened.push(*kinds.iter().find(|kind| text.ends_with(*kind)).expect("a kind"));
                exchange.send(&spdy_reply(number))?;
                // A node may send a ping.
                exchange.send(&[0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 2])?;
            }
            0x8003_0006 => {}
            3 => {
                assert_eq!(opened, ["error", "stdin", "stdout"], "streams are opened one after the other");
                exchange.send(&spdy_data(5, false, &data))?;
                if flags & 1 == 1 {
                    exchange.send(&spdy_data(5, true, b""))?;
                    let causes = json!([{"reason": "ExitCode", "message": "3"}]);
                    let status =
                        json!({"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}});
                    exchange.send(&spdy_data(1, true, status.to_string().as_bytes()))?;
                }
            }
            other => panic!("frame {other:x}"),
        }
    }
}

#[test]
fn logs_are_forwarded_with_their_options() {
    let (data, node) = (DataDir::new(), Backend::start(kubelet));
    let (_server, mut client) = with_pod(&data, &node);
    let log = |client: &mut Connection, options: &str| client.get(&format!("{POD}/log?{options}"));
    let whole = log(&mut client, "timestamps=true&sinceSeconds=5&limitBytes=9&previous=1");
    let asked = "GET /containerLogs/default/p/c?limitBytes=9&previous=true&sinceSeconds=5&timestamps=true";
    assert_eq!((whole.status, &*whole.text(), whole.header("content-type")), (200, asked, Some("text/plain")));
    let gone = log(&mut client, "tailLines=1").expect(404);
    assert_eq!(gone["message"], "the server could not find the requested resource ( pods/log p)");
    let redirect = log(&mut client, "tailLines=2").expect(500);
    let message = redirect["message"].as_str().expect("a message");
    assert!(message.ends_with("?tailLines=2\": redirects forbidden"), "{message}");
    // Invalid options are refused before the pod is looked up.
    client.get("/api/v1/namespaces/default/pods/none/log?tailLines=-1").expect(422);
    let container = log(&mut client, "container=x").expect(400);
    assert_eq!(container["message"], "container x is not valid for pod p");
}

#[test]
fn connections_of_vanished_clients_are_closed() {
    let (data, node) = (DataDir::new(), Backend::start(kubelet));
    let (server, mut client) = with_pod(&data, &node);
    let (sockets, open) = (server.sockets(), node.open());
    for _ in 0..5 {
        let mut follower = server.connect();
        assert_eq!(follower.upgrade("GET", &format!("{POD}/log?follow=1"), &[]).expect("a log").status, 200);
        let mut raw = server.connect();
        let path = format!("{POD}/exec?command=x&stdout=1");
        assert_eq!(raw.upgrade("POST", &path, &SPDY).expect("a stream").status, 101);
        let mut framed = server.connect();
        let switched = framed.upgrade("GET", &path, &websocket_headers("v5.channel.k8s.io")).expect("a stream");
        assert_eq!(switched.status, 101);
        wait_until("the node has three more connections", || node.open() >= open + 3);
    }
    wait_until("connections to the node are closed", || node.open() <= open);
    wait_until("no socket", || server.sockets() <= sockets);
    let metrics = client.get("/metrics").text();
    let streams = metrics.lines().filter(|line| line.starts_with("apiserver_longrunning_requests{"));
    let open: Vec<&str> = streams.filter(|line| line.contains("CONNECT") && !line.ends_with(" 0")).collect();
    assert!(open.is_empty(), "{open:?}");
}

/// Starts a node that accepts an exec and then reads nothing until `may_read` is set.
fn stalled_node(may_read: Arc<AtomicBool>) -> Backend {
    Backend::start(move |exchange| {
        let is_translated = exchange.head.contains("v5.channel.k8s.io");
        exchange.switch("Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n")?;
        for _ in 0..if is_translated { 3 } else { 0 } {
            let (_, _, data) = spdy_frame(exchange)?;
            exchange.send(&spdy_reply(u32::from_be_bytes(data[..4].try_into().expect("a number"))))?;
        }
        while !may_read.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(20));
        }
        loop {
            exchange.read_some()?;
        }
    })
}

#[test]
fn a_node_that_stops_reading_blocks_only_its_client() {
    let may_read = Arc::new(AtomicBool::new(false));
    let (data, node) = (DataDir::new(), stalled_node(Arc::clone(&may_read)));
    let (server, mut client) = with_pod(&data, &node);
    let (sockets, open, path) = (server.sockets(), node.open(), format!("{POD}/exec?command=x&stdin=1&stdout=1"));
    for is_websocket in [false, true] {
        let mut stream = server.connect();
        let part = match is_websocket {
            false => {
                assert_eq!(stream.upgrade("POST", &path, &SPDY).expect("a stream").status, 101);
                vec![7; 60_000]
            }
            true => {
                let headers = websocket_headers("v5.channel.k8s.io");
                assert_eq!(stream.upgrade("GET", &path, &headers).expect("a stream").status, 101);
                client_frame(2, &[0; 60_000])
            }
        };
        stream.limit_writes(Duration::from_secs(3));
        let sent = (0..2_000).take_while(|_| stream.send(&part).is_ok()).count();
        assert!(sent < 1_000, "{sent} parts of 60 kB were accepted, although the node does not read");
        client.get("/api/v1/namespaces/default/pods/p").expect(200);
        // A proper end of the stream would have to wait for the bytes before it.
        stream.abort();
    }
    wait_until("no socket", || server.sockets() <= sockets);
    may_read.store(true, Ordering::SeqCst);
    wait_until("connections to the node are closed", || node.open() <= open);
}

#[test]
fn a_log_that_never_ends_ends_with_its_client() {
    let node = Backend::start(|exchange| {
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        let chunk = [&b"4000\r\n"[..], &[b'x'; 0x4000], b"\r\n"].concat();
        loop {
            exchange.send(&chunk)?;
        }
    });
    let data = DataDir::new();
    let (server, mut client) = with_pod(&data, &node);
    let (sockets, open) = (server.sockets(), node.open());
    for options in ["follow=1", "follow=0"] {
        let mut reader = server.connect();
        assert_eq!(reader.upgrade("GET", &format!("{POD}/log?{options}"), &[]).expect("a log").status, 200);
        reader.read_bytes(1_000_000).expect("a log");
        drop(reader);
        wait_until("connections to the node are closed", || node.open() <= open);
    }
    wait_until("no socket", || server.sockets() <= sockets);
    let metrics = client.get("/metrics").text();
    assert!(metrics.contains("flotilla_outbound_requests 0\n"), "a request to the node is still open");
}

#[test]
fn streams_are_counted() {
    let (data, node) = (DataDir::new(), Backend::start(kubelet));
    let (server, mut client) = with_pod(&data, &node);
    let end = |path: &str, protocol: &str, frame: &[u8]| {
        let mut stream = server.connect();
        assert_eq!(stream.upgrade("GET", path, &websocket_headers(protocol)).expect("a stream").status, 101);
        stream.send(&client_frame(2, frame)).expect("a client can send");
        while server_frame(&mut stream).is_ok_and(|(kind, _)| kind != 8 && protocol.starts_with("v5")) {}
    };
    end(&format!("{POD}/exec?command=x&stdin=1&stdout=1"), "v5.channel.k8s.io", &[255, 0]);
    end(&format!("{POD}/exec?command=refused&stdout=1"), "v5.channel.k8s.io", b"");
    end(&format!("{POD}/portforward?ports=80"), "SPDY/3.1+portforward.k8s.io", b"hello");
    client.get(&format!("{POD}/log"));
    client.get(&format!("{POD}/log?insecureSkipTLSVerifyBackend=true"));
    for line in [
        "apiserver_stream_translator_requests_total{code=\"200\"} 1",
        "apiserver_stream_translator_requests_total{code=\"500\"} 1",
        "apiserver_stream_tunnel_requests_total{code=\"101\"} 1",
        "apiserver_websocket_streaming_requests_total{proxy_type=\"translated_at_apiserver\",subresource=\"exec\"} 2",
        "kube_apiserver_pod_logs_insecure_backend_total{usage=\"enforce_tls\"} 1",
        "kube_apiserver_pod_logs_insecure_backend_total{usage=\"skip_tls_allowed\"} 1",
        "kube_apiserver_pod_logs_backend_tls_failure_total 0",
    ] {
        let has = |client: &mut Connection| client.get("/metrics").text().lines().any(|own| own == line);
        wait_until(line, || has(&mut client));
    }
}

#[test]
fn a_node_with_a_wrong_certificate_receives_nothing() {
    let (data, node, other) = (DataDir::new(), Backend::start(kubelet), Backend::start(|_| Ok(())));
    let (server, mut client) = with_pod(&data, &other);
    let port = json!({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": node.port()}}}}).to_string();
    client.request("PATCH", "/api/v1/nodes/n/status", "application/merge-patch+json", port.as_bytes()).expect(200);
    let expected = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    let refused = client.get(&format!("{POD}/log")).expect(500);
    assert!(refused["message"].as_str().is_some_and(|text| text.ends_with(expected)), "{refused}");
    let mut stream = server.connect();
    assert_eq!(stream.upgrade("POST", &format!("{POD}/exec?command=x"), &SPDY).expect("an answer").status, 500);
    let failures = "kube_apiserver_pod_logs_backend_tls_failure_total 1\n";
    assert!(client.get("/metrics").text().contains(failures));
    client.get(&format!("{POD}/log?insecureSkipTLSVerifyBackend=true"));
    assert!(client.get("/metrics").text().contains(failures), "without verification, no verification fails");
}

#[test]
fn bytes_of_spdy_are_forwarded() {
    let (data, node) = (DataDir::new(), Backend::start(kubelet));
    let (server, mut client) = with_pod(&data, &node);
    let mut stream = server.connect();
    let path = format!("{POD}/exec?command=a%20b&command=c&stdin=1&stdout=1");
    let switched = stream.upgrade("POST", &path, &SPDY).expect("a stream");
    assert_eq!((switched.status, switched.header("upgrade")), (101, Some("SPDY/3.1")));
    assert_eq!(switched.header("x-stream-protocol-version"), Some("v4.channel.k8s.io"));
    let bytes: Vec<u8> = (0..1_000_000).map(|n: u32| (n % 251) as u8).collect();
    for part in bytes.chunks(100_000) {
        stream.send(part).expect("a client can send");
        assert!(stream.read_bytes(part.len()).expect("an echo") == part, "the echo differs");
    }
    // The server forwards a WebSocket with an old protocol to the node unchanged.
    let mut old = server.connect();
    let switched = old.upgrade("GET", &path, &websocket_headers("v4.channel.k8s.io")).expect("a stream");
    assert_eq!((switched.status, switched.header("sec-websocket-protocol")), (101, Some("v4.channel.k8s.io")));
    old.send(b"anything").expect("a client can send");
    assert_eq!(old.read_bytes(8).expect("an echo"), b"anything");
    let required = client.post(&path, &Value::Null).expect(400);
    assert_eq!(required["message"], "Upgrade request required");
}

#[test]
fn upgrades_that_are_refused_close_both_sides() {
    let (data, node) = (DataDir::new(), Backend::start(kubelet));
    let (server, _client) = with_pod(&data, &node);
    let open = node.open();
    let mut stream = server.connect();
    let head = [&SPDY[..], &[("Authorization", "Bearer x")]].concat();
    let refused = stream.upgrade("POST", &format!("{POD}/exec?command=refused"), &head).expect("an answer");
    assert_eq!((refused.status, refused.header("connection")), (403, Some("close")));
    // Bytes that the client sends after the refusal do not reach the node.
    let _ = stream.send(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut rest = Vec::new();
    while let Ok(byte) = stream.read_bytes(1) {
        rest.extend(byte);
    }
    let rest = String::from_utf8(rest).expect("text");
    assert!(rest.contains("not here") && !rest.contains("what?"), "{rest}");
    let mut stream = server.connect();
    let odd = stream.upgrade("POST", &format!("{POD}/exec?command=ok"), &SPDY).expect("an answer");
    assert_eq!(odd.status, 500);
    wait_until("connections to the node are closed", || node.open() <= open);
}

#[test]
fn websockets_are_translated() {
    let (data, node) = (DataDir::new(), Backend::start(kubelet));
    let (server, _client) = with_pod(&data, &node);
    let mut stream = server.connect();
    let path = format!("{POD}/exec?command=x&stdin=1&stdout=1");
    let switched = stream.upgrade("GET", &path, &websocket_headers("v5.channel.k8s.io")).expect("a stream");
    assert_eq!((switched.status, switched.header("sec-websocket-protocol")), (101, Some("v5.channel.k8s.io")));
    assert_eq!(switched.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(server_frame(&mut stream).expect("a sign"), (2, vec![1]), "connected");
    stream.send(&client_frame(2, b"\0hello")).expect("a client can send");
    assert_eq!(server_frame(&mut stream).expect("an echo"), (2, b"\x01hello".to_vec()));
    stream.send(&client_frame(9, b"?")).expect("a client can send");
    assert_eq!(server_frame(&mut stream).expect("an answer"), (10, b"?".to_vec()));
    stream.send(&client_frame(2, &[255, 0])).expect("a client can send");
    let (kind, status) = server_frame(&mut stream).expect("a status");
    assert_eq!((kind, status[0]), (2, 3));
    let status: Value = serde_json::from_slice(&status[1..]).expect("JSON");
    assert_eq!(
        (&status["reason"], &status["details"]["causes"][0]["message"]),
        (&json!("NonZeroExitCode"), &json!("3"))
    );
    assert_eq!(server_frame(&mut stream).expect("an end").0, 8);
    let mut refused = server.connect();
    let path = format!("{POD}/exec?command=refused&stdout=1");
    assert_eq!(refused.upgrade("GET", &path, &websocket_headers("v5.channel.k8s.io")).expect("a stream").status, 101);
    assert_eq!(server_frame(&mut refused).expect("a sign"), (2, vec![1]));
    let (_, status) = server_frame(&mut refused).expect("a status");
    let status: Value = serde_json::from_slice(&status[1..]).expect("JSON");
    assert_eq!(status["message"], "Internal error occurred: unable to upgrade connection: not here");
}

#[test]
fn ports_are_tunnelled() {
    let (data, node) = (DataDir::new(), Backend::start(kubelet));
    let (server, _client) = with_pod(&data, &node);
    let mut stream = server.connect();
    let protocol = "SPDY/3.1+portforward.k8s.io";
    let path = format!("{POD}/portforward?ports=80");
    let switched = stream.upgrade("GET", &path, &websocket_headers(protocol)).expect("a stream");
    assert_eq!((switched.status, switched.header("sec-websocket-protocol")), (101, Some(protocol)));
    let bytes = vec![7; 60_000];
    stream.send(&client_frame(2, &bytes)).expect("a client can send");
    let mut echoed = Vec::new();
    while echoed.len() < bytes.len() {
        let (kind, part) = server_frame(&mut stream).expect("an echo");
        assert_eq!(kind, 2);
        echoed.extend(part);
    }
    assert_eq!(echoed, bytes);
}

#[test]
fn proxies_cannot_reach_this_machine() {
    let (data, node) = (DataDir::new(), Backend::start(kubelet));
    let (_server, mut client) = with_pod(&data, &node);
    let refused = client.get("/api/v1/nodes/n/proxy/healthz").expect(400);
    assert_eq!(refused["message"], "address not allowed");
    let status = json!({"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}).to_string();
    client.request("PATCH", &format!("{POD}/status"), "application/merge-patch+json", status.as_bytes()).expect(200);
    let refused = client.get(&format!("{POD}/proxy/")).expect(400);
    assert_eq!(refused["message"], "address not allowed");
    let merge = "application/merge-patch+json";
    let addresses = ["169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1", "0.0.0.0", "224.0.0.1", "localhost"];
    for address in addresses {
        let status = json!({"status": {"addresses": [{"type": "Hostname", "address": address}]}}).to_string();
        client.request("PATCH", "/api/v1/nodes/n/status", merge, status.as_bytes()).expect(200);
        for name in ["n", "n:80", "https:n:443"] {
            let refused = client.get(&format!("/api/v1/nodes/{name}/proxy/healthz")).expect(400);
            assert_eq!(refused["message"], "address not allowed", "{address} {name}");
        }
        let status = json!({"status": {"podIP": address, "podIPs": [{"ip": address}]}}).to_string();
        if client.request("PATCH", &format!("{POD}/status"), merge, status.as_bytes()).status == 200 {
            for name in ["p", "p:80", "https:p:443"] {
                let refused = client.get(&format!("/api/v1/namespaces/default/pods/{name}/proxy/")).expect(400);
                assert_eq!(refused["message"], "address not allowed", "{address} {name}");
            }
        }
        // An address that the proxy must not use cannot be the address of an endpoint.
        let subsets = json!([{"addresses": [{"ip": address}], "ports": [{"port": 80}]}]);
        let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "e"}, "subsets": subsets});
        client.post("/api/v1/namespaces/default/endpoints", &endpoints).expect(422);
    }
    // The proxy also refuses an endpoint whose address belongs to no pod any more.
    let spec = json!({"ports": [{"port": 80}]});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec});
    client.post("/api/v1/namespaces/default/services", &service).expect(201);
    let target = json!({"kind": "Pod", "namespace": "default", "name": "p"});
    let subsets = json!([{"addresses": [{"ip": "192.0.2.9", "targetRef": target}], "ports": [{"port": 80}]}]);
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "s"}, "subsets": subsets});
    client.post("/api/v1/namespaces/default/endpoints", &endpoints).expect(201);
    let refused = client.get("/api/v1/namespaces/default/services/s/proxy/").expect(503);
    assert_eq!(refused["message"], "no endpoints available for service \"s\"");
}

#[test]
fn watches_over_websockets() {
    let data = DataDir::new();
    let tokens = data.path().with_file_name("tokens.csv");
    fs::write(&tokens, "secret,root,1,system:masters\n").expect("a file");
    let server = data.start_with(&["--token-auth-file", tokens.to_str().expect("a path")]);
    let mut client = server.connect();
    let path = "/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=metadata.name%3Da";
    let token = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
    let origin = ("Origin", "https://browser.example");
    let begin = |protocol: &str, more: &[(&str, &str)]| {
        let mut anonymous = server.connect_anonymously();
        let headers = [&websocket_headers(protocol)[..], more].concat();
        let head = anonymous.upgrade("GET", path, &headers).expect("an answer");
        (head, anonymous)
    };
    assert_eq!(begin(&format!("{token}, base64.binary.k8s.io"), &[]).0.status, 403, "the request needs an Origin");
    assert_eq!(begin(&format!("{token}, a, b"), &[origin]).0.status, 400, "only one protocol may be requested");
    assert_eq!(begin(token, &[origin]).0.status, 401, "a protocol must be requested");
    assert_eq!(begin(&format!("{token}AA, a"), &[origin]).0.status, 401);
    let (head, mut watch) = begin(&format!("{token}, base64.binary.k8s.io"), &[origin]);
    assert_eq!((head.status, head.header("sec-websocket-protocol")), (101, Some("base64.binary.k8s.io")));
    let (_, mut binary) = begin(&format!("{token}, x"), &[origin, ("Accept", "application/vnd.kubernetes.protobuf")]);
    for _ in 0..2 {
        client.post(crate::support::CONFIG_MAPS, &crate::support::config_map("a", "1")).expect(201);
        client.delete(&crate::support::config_map_path("a")).expect(200);
    }
    for expected in ["ADDED", "DELETED", "ADDED", "DELETED"] {
        let (kind, event) = server_frame(&mut watch).expect("an event");
        let event: Value = serde_json::from_slice(&event).expect("JSON");
        assert_eq!((kind, &event["type"]), (1, &json!(expected)));
        let (kind, event) = server_frame(&mut binary).expect("an event");
        assert_eq!((kind, &event[2..2 + expected.len()]), (2, expected.as_bytes()));
    }
    watch.send(&client_frame(8, b"")).expect("a client can send");
    assert_eq!(server_frame(&mut watch).expect("an end").0, 8);
}
