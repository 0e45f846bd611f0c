//! Clients that stop reading or writing: the memory that they take, and their effect on other clients.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::floods::{HEADERS, Http2, SETTINGS, frame, get};
use crate::support::{CONFIG_MAPS, Connection, DataDir, Server, config_map, config_map_path};

const OBJECTS: usize = 80;
const VALUE_BYTES: usize = 200_000;
const READERS: usize = 100;
/// How much the resident memory may grow for each stalled reader, in bytes: less than one object.
const GROWTH_BYTES_MAX: u64 = 150_000;
/// How much the resident memory may grow besides, however many readers there are, in bytes.
const GROWTH_BYTES_ONCE: u64 = 24 << 20;

const WINDOW_UPDATE: u8 = 8;
const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;

fn fill(server: &Server) {
    let mut client = server.connect();
    for number in 0..OBJECTS {
        client.post(CONFIG_MAPS, &config_map(&format!("large-{number}"), &"x".repeat(VALUE_BYTES))).expect(201);
    }
}

/// Waits until the resident memory hardly changes for a second, and returns it.
fn settled(server: &Server) -> u64 {
    let (mut last, mut quiet) = (server.resident_bytes(), 0);
    while quiet < 5 {
        std::thread::sleep(Duration::from_millis(200));
        let now = server.resident_bytes();
        quiet = if now.abs_diff(last) < 1 << 20 { quiet + 1 } else { 0 };
        last = now;
    }
    last
}

/// Compares the resident memory before and after readers request `paths` and then stop reading. With `large_windows`,
/// the readers use HTTP/2 and announce the largest windows.
fn holds_little(paths: &[&str], large_windows: bool) {
    let directory = DataDir::new();
    let server = directory.start();
    fill(&server);
    let mut first = server.connect();
    for path in paths.iter().filter(|path| !path.contains("watch")) {
        assert_eq!(first.get(path).status, 200);
    }
    let before = settled(&server);
    let (mut plain, mut streams) = (Vec::new(), Vec::new());
    for path in paths.iter().cycle().take(READERS) {
        if large_windows {
            let mut hello = Vec::new();
            // SETTINGS_INITIAL_WINDOW_SIZE, and the same for the connection (RFC 9113, sections 6.5.2 and 6.9).
            frame(SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff], &mut hello);
            frame(WINDOW_UPDATE, 0, 0, &0x7fff_0000_u32.to_be_bytes(), &mut hello);
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &get(path), &mut hello);
            let mut client = Http2::open(&server);
            client.send(&hello);
            streams.push(client);
        } else {
            let mut client = server.connect();
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).expect("a request");
            plain.push(client);
        }
    }
    let after = settled(&server);
    let growth = after.saturating_sub(before);
    eprintln!("{paths:?}, large windows {large_windows}: {READERS} readers, {} bytes each", growth / READERS as u64);
    assert!(growth < GROWTH_BYTES_ONCE + GROWTH_BYTES_MAX * READERS as u64, "{before} to {after} bytes");
    // Other clients get complete answers.
    let list = server.connect().get(CONFIG_MAPS).expect(200);
    assert_eq!(list["items"].as_array().expect("items").len(), OBJECTS + 1, "with the root certificate");
    drop((plain, streams));
    // The server does not wait for clients that are gone.
    assert_eq!(server.terminate().code(), Some(0));
}

const LIST: &str = "/api/v1/configmaps";
const WATCH: &str = "/api/v1/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

#[test]
fn stalled_readers_take_little_memory() {
    holds_little(&[LIST, WATCH], false);
}

#[test]
fn stalled_readers_with_large_windows_take_little_memory() {
    holds_little(&[LIST, WATCH], true);
}

#[test]
fn changes_for_stalled_watchers_are_stored_once() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    client.post(CONFIG_MAPS, &config_map("large", "0")).expect(201);
    let request = format!("GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    let idle: Vec<Connection> = (0..READERS)
        .map(|_| {
            let mut watcher = server.connect();
            watcher.send(request.as_bytes()).expect("a request");
            watcher
        })
        .collect();
    let before = settled(&server);
    for number in 0..OBJECTS {
        let value = format!("{number}{}", "x".repeat(VALUE_BYTES));
        client.put(&config_map_path("large"), &config_map("large", &value)).expect(200);
    }
    let growth = settled(&server).saturating_sub(before);
    // The history contains each change, and its event once for all watchers.
    let history = (3 * OBJECTS * VALUE_BYTES) as u64;
    assert!(growth < history + GROWTH_BYTES_ONCE + GROWTH_BYTES_MAX * READERS as u64, "{growth} bytes");
    drop(idle);
}

#[test]
fn a_reader_that_continues_receives_everything() {
    let directory = DataDir::new();
    let server = directory.start();
    fill(&server);
    let mut list = server.connect();
    list.send(format!("GET {LIST} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).expect("a request");
    let Ok(mut watch) = server.connect().watch(WATCH).expect("an answer") else { panic!("no watch") };
    std::thread::sleep(Duration::from_secs(1));
    let listed = list.read_answer().expect("an answer").expect(200);
    let (mut listed, mut watched) = (listed["items"].as_array().expect("items").clone(), Vec::new());
    for item in &mut listed {
        item["kind"] = "ConfigMap".into();
        item["apiVersion"] = "v1".into();
    }
    while watched.len() < listed.len() {
        let event = watch.next().expect("an event");
        assert_eq!(event["type"], "ADDED");
        watched.push(event["object"].clone());
    }
    assert_eq!(listed, watched);
}

#[test]
fn unfinished_bodies_take_no_seats() {
    const UNFINISHED: usize = 60;
    const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let directory = DataDir::new();
    let tokens = directory.path().with_extension("tokens");
    std::fs::write(&tokens, "token-of-ann,ann,1\ntoken-of-bob,bob,2\n").expect("a file");
    let file = tokens.to_str().expect("text");
    let server = directory.start_with(&["--token-auth-file", file, "--max-mutating-requests-inflight", "5"]);
    let head = format!(
        "POST {REVIEWS} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer token-of-ann\r\nContent-Length: 1000\r\n\r\n{{"
    );
    let unfinished: Vec<Connection> = (0..UNFINISHED)
        .map(|_| {
            let mut client = server.connect_anonymously();
            client.send(head.as_bytes()).expect("a request");
            client
        })
        .collect();
    let review = json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}).to_string();
    let mut other = server.connect_anonymously();
    let headers = [("Authorization", "Bearer token-of-bob"), ("Content-Type", "application/json")];
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        let answer = other.call("POST", REVIEWS, &headers, review.as_bytes()).expect("an answer");
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    drop(unfinished);
    std::fs::remove_file(&tokens).expect("a file");
}
