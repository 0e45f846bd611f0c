//! What others notice of a user whose requests are dear.
//!
//! `cargo test --release --test black_box a_thousand_dear_requests -- --include-ignored --nocapture`

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::recipe::{Random, Recipe};
use super::ways::{self, Place, WAYS};
use crate::support::{CONFIG_MAPS, DataDir, Server, config_map, config_map_path};
use crate::unreadable::define_widgets;

/// Requests of the user who hurts.
const REQUESTS: usize = 1_000;
/// How many of them are under way at a time.
const CLIENTS: usize = 64;
/// How large they are, in bytes, unless they are lines.
const SIZE: usize = 1_000_000;
/// What the one who asks meanwhile waits at most, but for one request of a hundred.
const P99_MAX: Duration = Duration::from_millis(100);
/// What the server holds at most, in bytes.
const RESIDENT_BYTES_MAX: u64 = 1 << 30;

/// Sends dear requests until there were enough of them.
fn hurt(server: &Server, sent: &AtomicUsize) {
    let mut client = server.connect_anonymously();
    loop {
        let number = sent.fetch_add(1, Ordering::Relaxed);
        if number >= REQUESTS {
            return;
        }
        let way = &WAYS[number % WAYS.len()];
        let size = if way.place == Place::Body { SIZE } else { super::LINE_BYTES_MAX };
        let (path, header, body) = way.put(&Recipe::draw(&mut Random::new(number as u64)).fill(size));
        let mut headers = vec![("Content-Type", way.media)];
        match &header {
            Some((name, value)) => headers.push((name, value)),
            None => headers.push(("Authorization", "Bearer hurting")),
        }
        if client.call(way.method, &path, &headers, body.as_bytes()).is_err() {
            client = server.connect_anonymously(); // it closes connections that ask for too much
        }
    }
}

/// Asks for an object again and again; how long each answer took.
fn ask(server: &Server, is_over: &AtomicBool) -> Vec<Duration> {
    let (mut client, mut times) = (server.connect(), Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        client.get(&config_map_path("asked-for")).expect(200);
        times.push(began.elapsed());
        thread::sleep(Duration::from_millis(5)); // as somebody does who has something else to do, too
    }
    times
}

#[test]
#[ignore = "it measures: a release build, and a machine that does nothing else"]
fn a_thousand_dear_requests_of_one_user_are_not_noticed_by_others() {
    let directory = DataDir::new();
    let tokens = directory.path().with_extension("tokens");
    std::fs::write(&tokens, "hurting,hurting,1\n").expect("a file");
    let server = directory.start_with(&["--token-auth-file", tokens.to_str().expect("a path")]);
    let mut client = server.connect_for_pods();
    define_widgets(&mut client);
    ways::prepare(&mut client);
    client.post(CONFIG_MAPS, &config_map("asked-for", "1")).expect(201);
    let binding = serde_json::json!({
        "metadata": {"name": "hurting"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "hurting"}],
    });
    client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).expect(201);
    let (sent, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let began = Instant::now();
    let mut times = thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&server, &is_over));
        let hurting: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| hurt(&server, &sent))).collect();
        hurting.into_iter().for_each(|client| client.join().expect("requests"));
        is_over.store(true, Ordering::Relaxed);
        asking.join().expect("answers")
    });
    let took = began.elapsed();
    std::fs::remove_file(&tokens).expect("a file");
    times.sort_unstable();
    let part = |percent: usize| times[(times.len() - 1) * percent / 100];
    let (p50, p99, most, held) = (part(50), part(99), part(100), server.peak_resident_bytes());
    eprintln!("{REQUESTS} dear requests in {took:?}; {} others: p50 {p50:?}, p99 {p99:?}, most {most:?}", times.len());
    eprintln!("the server held {} MiB at most", held >> 20);
    assert!(p99 < P99_MAX && held < RESIDENT_BYTES_MAX, "p99 {p99:?}, {held} bytes");
}
