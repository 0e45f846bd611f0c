//! Watches that resume after the server was killed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::{CONFIG_MAPS, DataDir, PATIENCE, Server, Watch, config_map, revision};

const ROUNDS: usize = 2;
/// How many writes are sent in each round at least. All but the last are acknowledged.
const WRITES: u64 = 3;
const LAST: &str = "resume-last";

/// The names and revisions that a watcher received, in order.
type Changes = Vec<(String, u64)>;

fn watch(server: &Server, from: u64) -> Watch {
    let watch = server.connect().watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}")).expect("an answer");
    watch.unwrap_or_else(|refused| panic!("{}", refused.text()))
}

/// Appends events to `received` until the watch ends, or the object [`LAST`] arrives.
fn follow(mut watch: Watch, received: &mut Changes) {
    while let Ok(event) = watch.next() {
        let object = &event["object"];
        assert_eq!(event["type"], "ADDED", "{event}");
        let name = object["metadata"]["name"].as_str().expect("a name");
        // Controllers also write to this namespace.
        if !name.starts_with("resume-") {
            continue;
        }
        received.push((name.to_owned(), revision(object)));
        if name == LAST {
            break;
        }
    }
}

#[test]
fn a_watch_resumes_after_a_kill() {
    goes_on_after_a_kill(&[]);
}

#[test]
fn a_watch_of_several_shards_resumes_after_a_kill() {
    goes_on_after_a_kill(&["--shards", "configmaps=8", "--groups", "5"]);
}

fn goes_on_after_a_kill(flags: &[&str]) {
    let directory = DataDir::new();
    let mut server = directory.start_with(flags);
    let start = revision(&server.connect().get(CONFIG_MAPS).expect(200));
    let (mut received, mut acknowledged, sent) = (Changes::new(), Changes::new(), AtomicU64::new(0));
    let last_received = |received: &Changes| received.last().map_or(start, |last| last.1);
    for _ in 0..ROUNDS {
        let (watch, credentials) = (watch(&server, last_received(&received)), server.credentials());
        let wanted = sent.load(Ordering::SeqCst) + WRITES;
        std::thread::scope(|scope| {
            scope.spawn(|| follow(watch, &mut received));
            scope.spawn(|| {
                let mut client = credentials.connect();
                loop {
                    let name = format!("resume-{:06}", sent.fetch_add(1, Ordering::SeqCst));
                    let object = config_map(&name, "1").to_string();
                    let answer = client.call("POST", CONFIG_MAPS, &[], object.as_bytes());
                    let Ok(answer) = answer else { break };
                    acknowledged.push((name, revision(&answer.expect(201))));
                }
            });
            std::thread::sleep(Duration::from_millis(700));
            // On a busy machine, the first writes may take longer.
            let deadline = Instant::now() + PATIENCE;
            while sent.load(Ordering::SeqCst) < wanted && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
            server.kill();
        });
        server = directory.start_with(flags);
    }
    let last = server.connect().post(CONFIG_MAPS, &config_map(LAST, "1")).expect(201);
    acknowledged.push((LAST.to_owned(), revision(&last)));
    follow(watch(&server, last_received(&received)), &mut received);

    assert!(acknowledged.len() > ROUNDS);
    assert!(received.is_sorted_by(|one, next| one.1 < next.1), "out of order or twice: {received:?}");
    assert!(received.is_sorted_by(|one, next| one.0 < next.0), "out of order or twice: {received:?}");
    for write in &acknowledged {
        assert!(received.contains(write), "the watch missed {write:?}");
    }
    // In each round, the watch may also deliver the one write that got no answer.
    assert!(received.len() <= acknowledged.len() + ROUNDS);
    // The last events show the stored objects.
    let list = server.connect().get(CONFIG_MAPS).expect(200);
    let items = list["items"].as_array().expect("items").iter();
    let there = items.map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), revision(item)));
    let there: Changes = there.filter(|(name, _)| name.starts_with("resume-")).collect();
    assert_eq!(there, received);
}
