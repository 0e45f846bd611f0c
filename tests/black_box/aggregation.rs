//! Group versions that another API server serves (the aggregation layer).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Backend, Connection, DataDir, Exchange, PATIENCE, Server};

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const NAME: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.remote.example";
const GROUP: &str = "/apis/remote.example/v1";
const ALL: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn wait_until<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        sleep(Duration::from_millis(50));
    }
}

/// Registers another server, behind a Service, for a group version.
fn register(client: &mut Connection, backend: &Backend) {
    let ports = json!([{"name": "https", "port": backend.port()}]);
    let spec = json!({"type": "ExternalName", "externalName": "127.0.0.1", "ports": ports});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "remote"}, "spec": spec});
    client.post("/api/v1/namespaces/default/services", &service).expect(201);
    let spec = json!({
        "group": "remote.example", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
        "caBundle": backend.bundle(),
        "service": {"namespace": "default", "name": "remote", "port": backend.port()},
    });
    let metadata = json!({"name": "v1.remote.example"});
    let service =
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec});
    client.post(SERVICES, &service).expect(201);
}

fn condition(client: &mut Connection) -> Value {
    client.get(NAME).expect(200)["status"]["conditions"][0].clone()
}

fn await_reason(client: &mut Connection, reason: &str) -> Value {
    wait_until(reason, || Some(condition(client)).filter(|condition| condition["reason"] == reason))
}

/// Returns the other server's group from aggregated discovery.
fn listed(client: &mut Connection) -> Value {
    let all = client.call("GET", "/apis", &[("Accept", ALL)], b"").expect("an answer").json();
    let mut groups = all["items"].as_array().expect("groups").iter();
    groups.find(|group| group["metadata"]["name"] == "remote.example").cloned().unwrap_or(Value::Null)
}

/// The heads of requests that the other server received, except for those that Flotilla sends for itself.
type Heads = Arc<Mutex<Vec<String>>>;

fn api_server(exchange: &mut Exchange, heads: &Heads) -> io::Result<()> {
    let line = exchange.line().to_owned();
    if exchange.header("x-remote-user") != Some("system:kube-aggregator") {
        heads.lock().expect("no test panics while it holds this").push(exchange.head.clone());
    }
    let json = "Content-Type: application/json\r\n";
    let path = line.split(['?', ' ']).nth(1).unwrap_or_default();
    match path {
        "/apis" => exchange.answer("404 Not Found", "", ""),
        GROUP => {
            let things = json!({"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing",
                "verbs": ["get", "list", "watch"]});
            let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "remote.example/v1",
                "resources": [things]});
            exchange.answer("200 OK", json, &list.to_string())
        }
        "/openapi/v3" => {
            let url = json!({"serverRelativeURL": "/openapi/v3/apis/remote.example/v1?hash=X"});
            let group = json!({"serverRelativeURL": "/openapi/v3/apis/remote.example?hash=Y"});
            let paths = json!({"apis/remote.example/v1": url, "apis/remote.example": group, "apis/apps/v1": url});
            exchange.answer("200 OK", json, &json!({"paths": paths}).to_string())
        }
        "/openapi/v3/apis/remote.example" => exchange.answer("200 OK", json, "{\"openapi\": \"of the group\"}"),
        "/openapi/v2" => {
            let schema = json!({"$ref": "#/definitions/example.Thing"});
            let item = json!({"get": {"responses": {"200": {"description": "OK", "schema": schema}}}});
            let definitions = json!({"example.Thing": {"type": "object"}, "example.Other": {"type": "object"}});
            let paths = json!({"/apis/remote.example/v1/things": item, "/apis/apps/v1/evil": item});
            let document = json!({"swagger": "2.0", "paths": paths, "definitions": definitions});
            exchange.answer("200 OK", json, &document.to_string())
        }
        "/openapi/v3/apis/remote.example/v1" => exchange.answer("200 OK", json, "{\"openapi\": \"3.0.0\"}"),
        _ if line.contains("watch=1") => {
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            exchange.send(b"19\r\n{\"type\":\"A\",\"object\":{}}\n\r\n".as_slice())?;
            exchange.read_some().map(|_| ())
        }
        _ if path.ends_with("/redirect") => {
            exchange.answer("307 Temporary Redirect", "Location: https://127.0.0.1:1/\r\n", "")
        }
        _ if path.ends_with("/refused") => exchange.answer("403 Forbidden", "", "not here"),
        _ if path.ends_with("/odd") => exchange.answer("200 OK", "", "no"),
        _ if path.ends_with("/unasked") => exchange.switch("Upgrade: x\r\n"),
        _ if path.ends_with("/stream") => {
            exchange.switch("Upgrade: SPDY/3.1\r\n")?;
            loop {
                let bytes = exchange.read_some()?;
                exchange.send(&bytes)?;
            }
        }
        _ => {
            let body = String::from_utf8(exchange.read_body()?).expect("text");
            exchange.answer("418 I'm a teapot", "X-Own: yes\r\n", &format!("{line} {body}"))
        }
    }
}

fn with_server() -> (DataDir, Server, Connection, Backend, Heads) {
    with_flags(&[])
}

fn with_flags(flags: &[&str]) -> (DataDir, Server, Connection, Backend, Heads) {
    let (data, heads) = (DataDir::new(), Heads::default());
    let seen = Arc::clone(&heads);
    let backend = Backend::start_as("remote.default.svc", move |exchange| api_server(exchange, &seen));
    let server = data.start_with(flags);
    let mut client = server.connect();
    register(&mut client, &backend);
    await_reason(&mut client, "Passed");
    // The condition may be true before requests are forwarded.
    wait_until("requests are forwarded", || (client.get(&things("a")).status == 418).then_some(()));
    heads.lock().expect("no test panics while it holds this").clear();
    (data, server, client, backend, heads)
}

/// Returns the path of an object that the other server serves.
fn things(name: &str) -> String {
    format!("{GROUP}/namespaces/default/things/{name}")
}

/// Returns the requests that the other server has received since the last call.
fn asked(heads: &Heads) -> Vec<String> {
    std::mem::take(&mut heads.lock().expect("no test panics while it holds this"))
}

const SPDY: [(&str, &str); 2] = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")];

/// Reads everything until the connection ends.
fn until_the_end(client: &mut Connection) -> String {
    let mut read = Vec::new();
    while let Ok(byte) = client.read_bytes(1) {
        read.extend(byte);
    }
    String::from_utf8(read).expect("text")
}

#[test]
fn clients_cannot_set_or_remove_the_user_headers() {
    let authority = Backend::start(|_| Ok(()));
    let directory = DataDir::new();
    let file = directory.path().with_file_name("front-proxy.crt");
    std::fs::write(&file, authority.certificate()).expect("a file");
    let (_data, server, mut client, _backend, heads) = with_flags(&[
        "--requestheader-client-ca-file",
        file.to_str().expect("a path"),
        "--requestheader-username-headers=X-Who",
        "--requestheader-group-headers=X-Which",
        "--requestheader-extra-headers-prefix=X-More-",
    ]);
    let claims = [
        ("X-Who", "evil"),
        ("X_Who", "evil"),
        ("X-Which", "evil"),
        ("X-More-A", "evil"),
        ("X_Remote_User", "evil"),
        ("X-Remote-Uid", "evil"),
        ("X-Remote_Extra-A", "evil"),
        ("X-Own", "kept"),
        ("X-Dropped", "evil"),
    ];
    let names = "X-Remote-User, x-remote-group, Host, X-Dropped";
    let plain = [&claims[..], &[("Connection", names)]].concat();
    assert_eq!(client.call("GET", &things("a"), &plain, b"").expect("an answer").status, 418);
    let upgrade = format!("Upgrade, {names}");
    let upgrade = [&claims[..], &[("Connection", &*upgrade), SPDY[1]]].concat();
    assert_eq!(server.connect().upgrade("GET", &things("stream"), &upgrade).expect("a stream").status, 101);
    let heads = asked(&heads);
    assert_eq!(heads.len(), 2, "{heads:?}");
    for head in heads {
        let values = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            lines
                .filter(|(own, _)| own.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.to_owned())
                .collect::<Vec<_>>()
        };
        assert!(!head.contains("evil"), "{head}");
        assert_eq!(values("x-remote-user"), ["kubernetes-admin"], "{head}");
        assert_eq!(values("x-remote-group"), ["system:masters", "system:authenticated"], "{head}");
        assert_eq!((values("host").len(), values("x-own")), (1, vec!["kept".to_owned()]), "{head}");
        assert!(values("connection").iter().all(|value| value == "Upgrade"), "{head}");
    }
}

#[test]
fn a_connection_is_not_reused_after_a_refused_upgrade() {
    let (_data, server, mut client, backend, heads) = with_server();
    let open = backend.open();
    let smuggled = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", things("smuggled"));
    for (path, status) in [
        (things("refused"), 403),
        (things("odd"), 503),
        ("/api/v1/namespaces/default/pods/none/exec".to_owned(), 404),
        ("/api/v1/namespaces/default".to_owned(), 200),
        ("/healthz".to_owned(), 200),
    ] {
        for upgrade in ["SPDY/3.1", "websocket"] {
            let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\r\n");
            let mut client = server.connect();
            client.send(format!("{head}{smuggled}").as_bytes()).expect("a client can send");
            let answer = client.read_answer().expect("an answer");
            assert_eq!((answer.status, answer.header("connection")), (status, Some("close")), "{path} {upgrade}");
            let _ = client.send(smuggled.as_bytes());
            assert_eq!(until_the_end(&mut client), "", "{path} {upgrade}");
        }
    }
    wait_until("the connection of the upgrade is closed", || (backend.open() <= open).then_some(()));
    assert!(asked(&heads).iter().all(|head| !head.contains("smuggled")));
    // A client that does not request another protocol never gets one.
    let unasked = client.get(&things("unasked"));
    assert_eq!((unasked.status, unasked.header("upgrade")), (503, None), "{}", unasked.text());
    let half = client.call("GET", &things("a"), &[SPDY[1]], b"").expect("an answer");
    assert_eq!((half.status, half.header("connection")), (418, None));
    let half = client.call("GET", &things("a"), &[SPDY[0]], b"").expect("an answer");
    assert_eq!((half.status, half.header("connection")), (418, None));
    let heads = asked(&heads);
    assert!(heads.iter().all(|head| !head.to_lowercase().contains("upgrade")), "{heads:?}");
}

#[test]
fn bytes_after_an_upgrade_are_not_parsed_as_http() {
    let (_data, server, ..) = with_server();
    for upgrade in ["SPDY/3.1", "websocket"] {
        let mut client = server.connect();
        let path = things("stream");
        let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\r\n");
        let early = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        client.send(format!("{head}{early}").as_bytes()).expect("a client can send");
        assert_eq!(client.read_answer().expect("an answer").status, 101);
        assert_eq!(client.read_bytes(early.len()).expect("an echo"), early.as_bytes());
    }
}

#[test]
fn a_body_is_framed_in_one_way() {
    let (_data, server, mut client, _backend, heads) = with_server();
    let path = things("a");
    let post = format!("POST {path} HTTP/1.1\r\nHost: a\r\n");
    for lengths in ["", "Content-Length: 3\r\n", "Content-Length: 300\r\n"] {
        let request = format!("{post}{lengths}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        client.send(request.as_bytes()).expect("a client can send");
        assert_eq!(client.read_answer().expect("an answer").text(), format!("POST {path} hello"));
        let head = asked(&heads).concat().to_lowercase();
        assert!(head.contains("transfer-encoding: chunked\r\n") && !head.contains("content-length"), "{head}");
    }
    let twice = format!("{post}Content-Length: 5\r\nContent-Length: 5\r\nConnection: Content-Length\r\n\r\nhello");
    client.send(twice.as_bytes()).expect("a client can send");
    assert_eq!(client.read_answer().expect("an answer").text(), format!("POST {path} hello"));
    let head = asked(&heads).concat().to_lowercase();
    assert_eq!(head.matches("content-length: 5\r\n").count(), 1, "{head}");
    // A request to switch protocols has no body.
    let mut stream = server.connect();
    let upgrade = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 5\r\n\r\nhello";
    stream.send(format!("{post}{upgrade}").as_bytes()).expect("a client can send");
    assert_eq!(stream.read_answer().expect("an answer").text(), format!("POST {path} hello"));
}

#[test]
fn a_long_query_is_forwarded_completely() {
    let (_data, server, mut client, ..) = with_server();
    for bytes in [10_000, 59_990, 64_000, 70_000, 1_000_000] {
        let path = format!("{}?x={}", things("a%20b"), "x".repeat(bytes));
        let answer = client.get(&path);
        assert!(answer.text() == format!("GET {path} "), "{bytes}: {} {:.200}", answer.status, answer.text());
        let answer = client.request("POST", &path, "text/plain", b"hello");
        assert!(answer.text() == format!("POST {path} hello"), "{bytes}: {} {:.200}", answer.status, answer.text());
    }
    let path = format!("{}?x={}", things("stream"), "x".repeat(70_000));
    let mut stream = server.connect();
    assert_eq!(stream.upgrade("GET", &path, &SPDY).expect("a stream").status, 101);
}

#[test]
fn streams_take_no_seats_of_requests() {
    let (_data, server, mut client, ..) = with_server();
    let in_flight = |client: &mut Connection| {
        client.get("/metrics");
        // The gauge is the maximum since the last scrape.
        let metrics = client.get("/metrics").text();
        let line =
            metrics.lines().find(|line| line.starts_with("apiserver_current_inflight_requests{request_kind=\"m"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u32>().ok()).expect("a number")
    };
    assert_eq!(in_flight(&mut client), 0);
    let mut streams: Vec<Connection> = (0..3).map(|_| server.connect()).collect();
    for stream in &mut streams {
        assert_eq!(stream.upgrade("POST", &things("stream"), &SPDY).expect("a stream").status, 101);
    }
    assert_eq!(in_flight(&mut client), 0);
    for stream in &mut streams {
        stream.send(b"hello").expect("a client can send");
        assert_eq!(stream.read_bytes(5).expect("an echo"), b"hello");
    }
}

#[test]
fn every_verb_is_forwarded() {
    let (_data, _server, mut client, _backend, heads) = with_server();
    let (all, one) = (format!("{GROUP}/namespaces/default/things"), things("a"));
    for (method, path, body) in [
        ("GET", format!("{all}?limit=5&labelSelector=a%3Db"), ""),
        ("POST", all.clone(), "{}"),
        ("GET", one.clone(), ""),
        ("PUT", format!("{one}?dryRun=All"), "{\"a\": 1}"),
        ("PATCH", format!("{one}/status"), "[]"),
        ("DELETE", one, "{\"kind\": \"DeleteOptions\"}"),
        ("DELETE", format!("{all}?fieldSelector=a%3Db"), ""),
    ] {
        let answer = client.request(method, &path, "application/json-patch+json", body.as_bytes());
        assert_eq!((answer.status, answer.text()), (418, format!("{method} {path} {body}")));
        let [head] = &asked(&heads)[..] else { panic!("asked once: {method} {path}") };
        let head = head.to_lowercase();
        assert!(head.contains("x-remote-user: kubernetes-admin\r\n"), "{head}");
        assert!(head.contains("content-type: application/json-patch+json\r\n"), "{head}");
    }
}

#[test]
fn requests_are_forwarded_with_their_user() {
    let (_data, server, mut client, _backend, heads) = with_server();
    let things = format!("{GROUP}/namespaces/default/things");
    let headers = [
        ("X-Remote-User", "somebody"),
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Extra-a%2Fb", "c"),
        ("Authorization", "Basic eDp5"),
    ];
    let allow = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "jane"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
        "name": "cluster-admin"}, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]});
    let path = format!("{things}/a?dryRun=All");
    let refused = client.call("POST", &path, &headers, b"x").expect("an answer");
    assert_eq!(refused.status, 403, "a forbidden request is not forwarded: {}", refused.text());
    client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &allow).expect(201);
    let answered = wait_until("rights", || {
        Some(client.call("POST", &path, &headers, b"{\"a\": 1}").expect("an answer"))
            .filter(|answer| answer.status != 403)
    });
    assert_eq!((answered.status, answered.header("x-own")), (418, Some("yes")));
    assert_eq!(answered.text(), format!("POST {path} {{\"a\": 1}}"));
    let asked = asked(&heads);
    let [asked] = &asked[..] else { panic!("asked once: {asked:?}") };
    let has = |line: &str| asked.lines().any(|own| own.eq_ignore_ascii_case(line));
    assert!(has("x-remote-user: jane") && has("x-remote-group: g"), "{asked}");
    assert!(has("x-remote-extra-a%2fb: c") && !asked.contains("somebody"), "{asked}");
    assert!(
        !asked.to_lowercase().contains("authorization") && !asked.to_lowercase().contains("impersonate"),
        "{asked}"
    );
    let redirect = client.get(&format!("{things}/redirect"));
    assert_eq!((redirect.status, redirect.header("location")), (502, None));
    let mut stream = server.connect();
    let upgrade = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")];
    assert_eq!(stream.upgrade("POST", &format!("{things}/stream"), &upgrade).expect("a stream").status, 101);
    stream.send(b"hello").expect("a client can send");
    assert_eq!(stream.read_bytes(5).expect("an echo"), b"hello");
}

#[test]
fn resources_of_another_server_are_discovered() {
    let (_data, server, mut client, backend, _heads) = with_server();
    let versions = wait_until("resources", || {
        Some(listed(&mut client)["versions"].clone()).filter(|versions| !versions[0]["resources"].is_null())
    });
    let resource = json!({"resource": "things", "scope": "Namespaced", "singularResource": "thing",
        "responseKind": {"group": "", "version": "", "kind": "Thing"}, "verbs": ["get", "list", "watch"]});
    assert_eq!(versions, json!([{"version": "v1", "freshness": "Current", "resources": [resource]}]));
    assert_eq!(client.get("/apis/remote.example").expect(200)["versions"][0]["version"], "v1");
    assert_eq!(client.get(GROUP).expect(200)["resources"][0]["name"], "things");
    let index = wait_until("OpenAPI", || {
        Some(client.get("/openapi/v3").expect(200)["paths"].clone())
            .filter(|paths| !paths["apis/remote.example/v1"].is_null())
    });
    assert_eq!(index["apis/remote.example/v1"]["serverRelativeURL"], "/openapi/v3/apis/remote.example/v1?hash=X");
    assert_ne!(index["apis/apps/v1"]["serverRelativeURL"], index["apis/remote.example/v1"]["serverRelativeURL"]);
    assert_eq!(client.get("/openapi/v3/apis/remote.example/v1?hash=X").expect(200)["openapi"], "3.0.0");
    assert_eq!(index["apis/remote.example"]["serverRelativeURL"], "/openapi/v3/apis/remote.example?hash=Y");
    assert_eq!(client.get("/openapi/v3/apis/remote.example?hash=Y").expect(200)["openapi"], "of the group");
    let merged = client.get("/openapi/v2").expect(200);
    assert!(merged["paths"]["/apis/remote.example/v1/things"].is_object(), "the document is merged");
    assert_eq!(merged["definitions"]["example.Thing"], json!({"type": "object"}));
    assert!(merged["paths"]["/apis/apps/v1/evil"].is_null(), "a server cannot describe another one's paths");
    assert!(merged["definitions"]["example.Other"].is_null(), "nothing refers to this schema");
    assert!(merged["paths"]["/api/v1/pods"].is_object());
    let open = backend.open();
    let things = format!("{GROUP}/things?watch=1");
    let mut watch = server.connect().watch(&things).expect("a connection").expect("a watch");
    assert_eq!(watch.next().expect("an event")["type"], "A");
    drop(watch);
    wait_until("the watch's connection is closed", || (backend.open() <= open).then_some(()));
    client.delete(NAME).expect(200);
    wait_until("the group is gone", || (client.get(GROUP).status == 404).then_some(()));
    wait_until("nothing listed", || listed(&mut client).is_null().then_some(()));
}

#[test]
fn the_v3_document_of_a_server_without_one_is_made_of_v2() {
    let data = DataDir::new();
    let backend = Backend::start_as("remote.default.svc", move |exchange| {
        match exchange.line().split(['?', ' ']).nth(1).unwrap_or_default().starts_with("/openapi/v3") {
            true => exchange.answer("404 Not Found", "", ""),
            false => api_server(exchange, &Heads::default()),
        }
    });
    let server = data.start();
    let mut client = server.connect();
    register(&mut client, &backend);
    let url = wait_until("an entry", || {
        let index = client.get("/openapi/v3").expect(200);
        index["paths"]["apis/remote.example/v1"]["serverRelativeURL"].as_str().map(str::to_owned)
    });
    let document = client.get(&url).expect(200);
    assert_eq!(document["openapi"], "3.0.0");
    assert_eq!(document["components"]["schemas"], json!({"example.Thing": {"type": "object"}}));
    let paths = document["paths"].as_object().expect("paths");
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["/apis/remote.example/v1/things"]);
    let accept = ("Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf");
    let protobuf = client.call("GET", &url, &[accept], b"").expect("an answer");
    assert_eq!(protobuf.status, 200);
    assert!(protobuf.body.windows(13).any(|part| part == b"example.Thing"));
    client.delete(NAME).expect(200);
    wait_until("it is gone", || (client.get("/openapi/v3/apis/remote.example/v1").status == 404).then_some(()));
}

#[test]
fn an_unavailable_server_affects_only_its_own_group() {
    let (data, broken) = (DataDir::new(), Arc::new(AtomicBool::new(true)));
    let is_broken = Arc::clone(&broken);
    let backend = Backend::start_as("remote.default.svc", move |exchange| match is_broken.load(Ordering::SeqCst) {
        true => exchange.answer("200 OK", "Content-Type: text/html\r\n", &"<".repeat(30 << 20)),
        false => exchange.answer("500 Internal Server Error", "", "oh no"),
    });
    let server = data.start();
    let mut client = server.connect();
    let wrong = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.nowhere.example"}, "spec": {"group": "nowhere.example", "version": "v1",
        "groupPriorityMinimum": 1, "versionPriority": 1, "service": {"namespace": "default", "name": "none"}}});
    client.post(SERVICES, &wrong).expect(201);
    let path = format!("{SERVICES}/v1.nowhere.example");
    let condition = wait_until("a condition", || {
        Some(client.get(&path).expect(200)["status"]["conditions"][0].clone()).filter(|condition| !condition.is_null())
    });
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("ServiceNotFound")));
    assert_eq!(condition["message"], "service/none in \"default\" is not present");
    let refused = wait_until("a refusal", || {
        Some(client.get("/apis/nowhere.example/v1/things")).filter(|answer| answer.status == 503)
    });
    assert_eq!(
        (&*refused.text(), refused.header("content-type")),
        ("service unavailable\n", Some("text/plain; charset=utf-8"))
    );
    assert_eq!(client.get("/openapi/v3/apis/nowhere.example/v1").status, 404, "this server has no document");
    let measured = client.get("/metrics").text();
    let missing = "aggregator_unavailable_apiservice{name=\"v1.nowhere.example\"} 1\n";
    assert!(measured.contains(missing) && measured.contains("apiserver_webhooks_x509_missing_san_total 0\n"));
    assert!(measured.contains("aggregator_unavailable_apiservice{name=\"v1.apps\"} 0\n"));
    // The server answers, but not with discovery documents: it is available, but its resources are unknown.
    register(&mut client, &backend);
    await_reason(&mut client, "Passed");
    let stale = json!([{"version": "v1", "freshness": "Stale"}]);
    wait_until("the version is marked stale", || (listed(&mut client)["versions"] == stale).then_some(()));
    broken.store(false, Ordering::SeqCst);
    let failed = await_reason(&mut client, "FailedDiscoveryCheck");
    let message = failed["message"].as_str().expect("a message");
    assert!(message.starts_with("failing or missing response from https://127.0.0.1:"), "{message}");
    assert!(message.ends_with(": 500"), "{message}");
    let lost = "aggregator_unavailable_apiservice_total{name=\"v1.remote.example\",reason=\"FailedDiscoveryCheck\"} ";
    let measured = client.get("/metrics").text();
    let times = measured.lines().find_map(|line| line.strip_prefix(lost)?.parse::<u32>().ok());
    assert!(times.is_some_and(|times| times > 0), "{times:?}");
    // A namespace can be deleted although the other server's resources in it are unknown.
    client
        .post("/api/v1/namespaces", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}))
        .expect(201);
    client.delete("/api/v1/namespaces/x").expect(200);
    wait_until("the namespace is gone", || (client.get("/api/v1/namespaces/x").status == 404).then_some(()));
    assert!(client.get("/apis/apps/v1/deployments").status == 200);
}
