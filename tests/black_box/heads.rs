//! Heads of requests: unusual targets, many lines, long lines, and the header `Audit-Id`.

use std::collections::HashSet;
use std::sync::Arc;

use crate::support::{Answer, Connection, DataDir, Server, config_map};

/// Sends bytes with the administrator's certificate, and returns the answer.
fn answered(server: &Server, request: &[u8]) -> Answer {
    let mut client = server.connect();
    // The server may refuse a request before it has read all of it.
    let _ = client.send(request);
    client
        .read_answer()
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&request[..request.len().min(200)])))
}

fn with_lines(target: &str, lines: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes()
}

const NAMESPACES: &str = "/api/v1/namespaces";

#[test]
fn targets_are_answered_in_all_their_forms() {
    let directory = DataDir::new();
    let server = directory.start();
    for (line, status, text) in [
        ("CONNECT x:1", 404, "404 page not found\n"),
        ("OPTIONS *", 200, ""),
        ("GET *", 404, "404 page not found\n"),
        ("GET http://x", 404, "404 page not found\n"),
        ("GET http://x/healthz", 200, "ok"),
        ("GET mailto:x", 404, "404 page not found\n"),
        ("GET //api/v1", 404, "404 page not found\n"),
        ("GET api/v1", 400, "400 Bad Request"),
        ("GET /api/%zz", 400, "400 Bad Request"),
        ("GET /api\u{1}", 400, "400 Bad Request"),
        ("G@T /healthz", 400, "400 Bad Request"),
        ("GET ", 400, "400 Bad Request"),
    ] {
        let answer = answered(&server, format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        assert_eq!((answer.status, &*answer.text()), (status, text), "{line}");
        let has_name = !matches!((status, line), (400, _) | (_, "OPTIONS *"));
        assert_eq!(answer.header("audit-id").is_some(), has_name, "{line}");
    }
    for (name, shown) in [("default#x", "default#x"), ("d\u{e9}", "d\u{e9}"), ("a\"|^", "a\\\"|^")] {
        let answer = answered(&server, &with_lines(&format!("{NAMESPACES}/{name}"), "")).expect(404);
        assert_eq!(answer["message"], format!("namespaces \"{shown}\" not found"));
    }
    let refused = answered(&server, &with_lines(&format!("{NAMESPACES}?limit=1#x"), "")).expect(400);
    assert_eq!(refused["message"], "strconv.ParseInt: parsing \"1#x\": invalid syntax");
    let mut nobody = server.connect_anonymously();
    nobody.send(b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n").expect("a request");
    let refused = nobody.read_answer().expect("an answer").expect(403);
    assert_eq!(refused["message"], "forbidden: User \"system:anonymous\" cannot connect path \"\"");
    assert!(!server.messages().contains("ERROR") && !server.messages().contains("panicked"), "{}", server.messages());
}

#[test]
fn header_lines_are_parsed_like_in_the_reference() {
    let directory = DataDir::new();
    let server = directory.start();
    for (request, status, text) in [
        ("GET /healthz HTTP/1.1\nHost: a\n\n", 200, "ok"),
        ("GET /healthz HTTP/1.0\r\n\r\n", 200, "ok"),
        ("GET /healthz HTTP/1.2\r\nHost: a\r\n\r\n", 200, "ok"),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 200, "ok"),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: foo, 100-continue\r\n\r\n", 200, "ok"),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: foo\r\n\r\n", 417, ""),
        ("GET /healthz HTTP/1.1\r\n\r\n", 400, "400 Bad Request: missing required Host header"),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "400 Bad Request"),
        ("GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "400 Bad Request: malformed Host header"),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nFoo Bar: x\r\n\r\n", 400, "400 Bad Request: invalid header name"),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nFoo\r\n\r\n", 400, "400 Bad Request"),
        (
            "GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n",
            505,
            "505 HTTP Version Not Supported: unsupported protocol version",
        ),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "Unsupported transfer encoding"),
    ] {
        let answer = answered(&server, request.as_bytes());
        assert_eq!((answer.status, &*answer.text()), (status, text), "{request}");
        // HTTP/1.0 connections end without the header `Connection: close`.
        assert_eq!(answer.header("connection") == Some("close"), status != 200, "{request}");
    }
    let mut client = server.connect();
    // A request that arrives early does not change the answer to the previous one.
    let get = format!("GET {NAMESPACES}/default HTTP/1.1\r\nHost: a\r\n\r\n");
    let ahead = format!("{get}HEAD {NAMESPACES}/default HTTP/1.1\r\nHost: a\r\n\r\n{}", get.repeat(40));
    client.send(ahead.as_bytes()).expect("requests");
    assert_eq!(client.read_answer().expect("an answer").expect(200)["kind"], "Namespace");
    let head = client.upgrade("GET", "/healthz", &[]).expect("a head");
    assert_eq!(head.status, 405);
    for _ in 0..40 {
        assert_eq!(client.read_answer().expect("an answer").expect(200)["kind"], "Namespace");
    }
    assert_eq!(client.read_answer().expect("an answer").text(), "ok");
    // Pipelined requests, with bodies of a stated length and with chunked bodies.
    let object = config_map("one", "1").to_string();
    let post = format!(
        "POST {NAMESPACES}/default/configmaps?dryRun=All HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    );
    let (half, rest) = object.split_at(10);
    let requests = format!(
        "{post}Content-Length: {}\r\n\r\n{object}{post}\
         Transfer-Encoding: chunked\r\n\r\na;x\r\n{half}\r\n{:x}\r\n{rest}\r\n\
         0\r\nTrailer: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        object.len(),
        rest.len()
    );
    for part in requests.as_bytes().chunks(37) {
        client.send(part).expect("requests");
    }
    for _ in 0..2 {
        assert_eq!(client.read_answer().expect("an answer").expect(201)["data"]["value"], "1");
    }
    assert_eq!(client.read_answer().expect("an answer").text(), "ok");
}

#[test]
fn heads_may_be_as_large_as_in_the_reference() {
    let directory = DataDir::new();
    let server = directory.start();
    let groups: String = (0..2_000).map(|number| format!("Impersonate-Group: CN=team-{number}\r\n")).collect();
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let request = format!(
        "POST {reviews} HTTP/1.1\r\nHost: a\r\nImpersonate-User: ann\r\nImpersonate-User: bob\r\n{groups}\
         Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    let user = answered(&server, request.as_bytes()).expect(201)["status"]["userInfo"].clone();
    assert_eq!((user["username"].as_str(), user["groups"].as_array().map(Vec::len)), (Some("ann"), Some(2_001)));
    for (what, request, status) in [
        ("20,000 lines", with_lines("/healthz", &"X: y\r\n".repeat(20_000)), 200),
        ("a line of 1 MiB", with_lines("/healthz", &format!("X: {}\r\n", "x".repeat(1_048_500))), 200),
        ("too long a line", with_lines("/healthz", &format!("X: {}\r\n", "x".repeat(1_153_000))), 431),
        ("a query of 1 MiB", with_lines(&format!("/healthz?x={}", "x".repeat(1_048_500)), ""), 200),
        ("too long a query", with_lines(&format!("/healthz?x={}", "x".repeat(1_153_000)), ""), 431),
        ("a long selector", with_lines(&format!("{NAMESPACES}?labelSelector=x%3D{}", "x".repeat(200_000)), ""), 400),
    ] {
        assert_eq!(answered(&server, &request).status, status, "{what}");
    }
    assert_eq!(
        answered(&server, &with_lines("/healthz", &"X: y\r\n".repeat(40_000))).text(),
        "431 Request Header Fields Too Large"
    );
}

#[test]
fn every_answer_names_its_request() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut names = HashSet::new();
    for path in ["/healthz", "/nope", "/api", NAMESPACES, "/api/v1/namespaces/nobody", "/metrics", "/openapi/v2"] {
        let answer = answered(&server, &with_lines(path, ""));
        let name = answer.header("audit-id").unwrap_or_else(|| panic!("{path} has no name")).to_owned();
        assert_eq!(name.len(), 36, "{name}");
        assert!(names.insert(name));
    }
    let mut nobody = server.connect_anonymously();
    let refused = nobody.get(NAMESPACES);
    assert!(refused.status == 403 && refused.header("audit-id").is_some());
    for (line, name) in [("Audit-Id: abc\r\nAudit-ID: def\r\n", "abc"), ("Audit-Id: \"<\u{1f6a2}\r\n", "\"<\u{1f6a2}")]
    {
        let answer = answered(&server, &with_lines("/healthz", line));
        assert_eq!(answer.header("audit-id"), Some(name));
    }
    let long = "x".repeat(300);
    let answer = answered(&server, &with_lines("/healthz", &format!("Audit-Id: {long}\r\n")));
    assert_eq!(answer.header("audit-id"), Some(&*long));
}

#[test]
fn unreadable_requests_are_not_logged() {
    let directory = DataDir::new();
    let server = directory.start();
    // On a busy machine, the server says that its threads do not get to run.
    let lines = |messages: &str| messages.lines().filter(|line| !line.contains("blocks its thread")).count();
    let before = lines(&server.messages());
    for request in [
        "\u{1}\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        for _ in 0..10 {
            let mut client = server.connect_anonymously();
            client.send(request.as_bytes()).expect("bytes");
            let _ = client.read_answer();
        }
    }
    for _ in 0..10 {
        let mut socket = std::net::TcpStream::connect(server.credentials().address).expect("a connection");
        std::io::Write::write_all(&mut socket, b"GET / HTTP/1.1\r\n\r\n").expect("no TLS at all");
    }
    server.connect().get("/healthz");
    let messages = server.messages();
    assert_eq!(lines(&messages), before, "{messages}");
}

#[test]
fn a_disabled_protocol_is_not_offered() {
    for (flags, agreed) in [(&[][..], "h2"), (&["--disable-http2-serving"], "http/1.1")] {
        let directory = DataDir::new();
        let server = directory.start_with(flags);
        let mut config = (*server.credentials().administrator).clone();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let client = Connection::open(server.credentials().address, &Arc::new(config)).expect("a connection");
        assert_eq!(client.protocol(), Some(agreed.as_bytes()), "{flags:?}");
    }
}
