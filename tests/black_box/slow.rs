//! Slow clients, which read or send almost nothing, and their effect on other clients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{CONFIG_MAPS, Connection, DataDir, Server, config_map, config_map_path};

const IDLE_WATCHERS: usize = 8;
const TRICKLERS: usize = 8;
/// More events than the sockets and the server buffer for a watcher that does not read.
const WRITES: usize = 120;
const VALUE_BYTES: usize = 100_000;
/// How much the resident memory may grow, in bytes. A copy of all events for each watcher would take 100 MB.
const GROWTH_BYTES_MAX: u64 = 64 << 20;
/// How long a request of another client may take, even on a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

fn watch_path(server: &Server) -> String {
    let list = server.connect().get(CONFIG_MAPS).expect(200);
    let from = list["metadata"]["resourceVersion"].as_str().expect("text");
    format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Dslow&resourceVersion={from}")
}

/// Checks that every write is answered in time, and that a watch delivers it, while slow clients are connected.
fn others_are_served(server: &Server, writes: usize) {
    let Ok(mut watch) = server.connect().watch(&watch_path(server)).expect("an answer") else {
        panic!("the watch was refused");
    };
    let mut client = server.connect();
    for number in 0..writes {
        let began = Instant::now();
        let value = format!("{number}-{}", "x".repeat(VALUE_BYTES));
        let object = config_map("slow", &value);
        match number {
            0 => client.post(CONFIG_MAPS, &object).expect(201),
            _ => client.put(&config_map_path("slow"), &object).expect(200),
        };
        let event = watch.next().expect("an event");
        assert_eq!(event["object"]["data"]["value"], value.as_str(), "write {number}");
        assert!(began.elapsed() < ANSWER_TIMEOUT, "write {number} took {:?}", began.elapsed());
    }
    assert_eq!(server.connect().get("/readyz").status, 200);
}

#[test]
fn watchers_that_never_read_do_not_affect_others() {
    let directory = DataDir::new();
    let server = directory.start();
    let path = watch_path(&server);
    let before = server.resident_bytes();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let idle: Vec<Connection> = (0..IDLE_WATCHERS)
        .map(|_| {
            let mut client = server.connect();
            client.send(request.as_bytes()).expect("a request");
            client
        })
        .collect();
    others_are_served(&server, WRITES);
    // The history contains these events once; watchers that do not read do not add copies.
    let after = server.resident_bytes();
    assert!(after < before + GROWTH_BYTES_MAX, "{before} to {after} bytes");
    drop(idle);
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn clients_that_send_a_byte_per_second_do_not_affect_others() {
    let directory = DataDir::new();
    let server = directory.start();
    let done = AtomicBool::new(false);
    /// Stops the slow clients, even when the test fails.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let head = format!("POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
    std::thread::scope(|scope| {
        let _done = Done(&done);
        for number in 0..TRICKLERS {
            let (mut client, head, done) = (server.connect(), head.as_bytes(), &done);
            // Half of the clients are slow in the head of a request, the other half in its body.
            let (at_once, slowly) = head.split_at(if number % 2 == 0 { 4 } else { head.len() });
            scope.spawn(move || {
                client.send(at_once).expect("the server reads");
                for byte in slowly.iter().chain(std::iter::repeat(&b' ')) {
                    std::thread::sleep(Duration::from_secs(1));
                    if done.load(Ordering::Relaxed) || client.send(&[*byte]).is_err() {
                        break;
                    }
                }
            });
        }
        let began = Instant::now();
        others_are_served(&server, 20);
        // The slow clients must be connected for some seconds.
        std::thread::sleep(Duration::from_secs(3).saturating_sub(began.elapsed()));
        server.connect().get(&config_map_path("slow")).expect(200);
    });
}
