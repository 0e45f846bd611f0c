//! How one user's expensive requests affect other users.
//!
//! `cargo test --release --test black_box a_thousand_expensive_requests -- --include-ignored --nocapture`

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::recipe::{Random, Recipe};
use super::ways::{self, Place, WAYS};
use crate::support::{CONFIG_MAPS, DataDir, Server, config_map, config_map_path};
use crate::unreadable::define_widgets;

/// The number of expensive requests.
const REQUESTS: usize = 1_000;
/// How many of them are in progress at the same time.
const CLIENTS: usize = 64;
/// The size of their bodies, in bytes.
const SIZE: usize = 1_000_000;
/// The longest time that 99 of 100 requests of another user may take.
const P99_MAX: Duration = Duration::from_millis(100);
/// The largest resident memory of the server, in bytes.
const RESIDENT_BYTES_MAX: u64 = 1 << 30;

/// Sends expensive requests until enough have been sent.
fn send_expensive(server: &Server, sent: &AtomicUsize) {
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
            client = server.connect_anonymously(); // the server closes connections with requests that are too large
        }
    }
}

/// Gets an object again and again. Returns how long each answer took.
fn ask(server: &Server, is_over: &AtomicBool) -> Vec<Duration> {
    let (mut client, mut times) = (server.connect(), Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        client.get(&config_map_path("asked-for")).expect(200);
        times.push(began.elapsed());
        thread::sleep(Duration::from_millis(5)); // a pause, as of a client with other work
    }
    times
}

#[test]
#[ignore = "measures times: needs a release build and an idle machine"]
fn a_thousand_expensive_requests_of_one_user_do_not_delay_others() {
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
        let hurting: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| send_expensive(&server, &sent))).collect();
        hurting.into_iter().for_each(|client| client.join().expect("requests"));
        is_over.store(true, Ordering::Relaxed);
        asking.join().expect("answers")
    });
    let took = began.elapsed();
    std::fs::remove_file(&tokens).expect("a file");
    times.sort_unstable();
    let part = |percent: usize| times[(times.len() - 1) * percent / 100];
    let (p50, p99, most, held) = (part(50), part(99), part(100), server.peak_resident_bytes());
    eprintln!("{REQUESTS} costly requests: {took:?}; {} others: p50 {p50:?}, p99 {p99:?}, most {most:?}", times.len());
    eprintln!("the server held {} MiB at most", held >> 20);
    assert!(p99 < P99_MAX && held < RESIDENT_BYTES_MAX, "p99 {p99:?}, {held} bytes");
}
