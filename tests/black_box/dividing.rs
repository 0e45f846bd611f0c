//! Resources that are divided into another number of shards while clients write, list and watch them.

use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::cluster;
use crate::program::{errors, successful};
use crate::support::{CONFIG_MAPS, Connection, DataDir, PATIENCE, Server, config_map, noticed, revision};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// How long a write may take while its resource is divided. A debug build takes several times as long.
const WRITE_MAX: Duration = noticed(Duration::from_secs(1));

/// The objects that are updated while their resource is divided, and how often before and after each division at least.
pub const BUSY: [&str; 3] = ["busy-0", "busy-1", "busy-2"];
pub const UPDATES: u64 = 5;

/// Runs `flotilla cluster shards`. Returns its output, or `Err` with its error output.
fn shards(server: &Server, arguments: &[&str]) -> Result<String, String> {
    let output = cluster(server, &[&["shards"], arguments].concat());
    if output.status.success() { Ok(successful(output)) } else { Err(errors(&output)) }
}

/// Updates one object again and again, until `stopped` is set. Returns the number of acknowledged updates, and the
/// longest time between two of them.
pub fn keep_updating(server: &Server, collection: &str, object: Value, stopped: &AtomicBool) -> (u64, Duration) {
    let (mut client, mut slowest) = (server.connect(), Duration::ZERO);
    let mut object = client.create(collection, &object);
    let path = format!("{collection}/{}", object["metadata"]["name"].as_str().expect("a name"));
    let (mut count, mut began, mut is_unknown) = (0_u64, Instant::now(), false);
    while !stopped.load(Ordering::SeqCst) {
        let next = json!((count + 1).to_string());
        object["metadata"]["labels"] = json!({ "count": next });
        let answer = client.put(&path, &object);
        // On a busy machine, a group may have no leader for a moment. The outcome of a write is then unknown, and the
        // write may take effect after the object has been read.
        is_unknown = matches!(answer.status, 503 | 504) || is_unknown && answer.status == 409;
        let shown = if is_unknown { client.get(&path) } else { answer };
        if is_unknown && matches!(shown.status, 503 | 504) {
            continue;
        }
        object = shown.expect(200);
        if object["metadata"]["labels"]["count"] == next {
            (count, slowest, began, is_unknown) = (count + 1, slowest.max(began.elapsed()), Instant::now(), false);
        }
    }
    (count, slowest.max(began.elapsed()))
}

/// Waits until each of some objects has been updated `more` times by [`keep_updating`]. Gives up in the end, so that
/// the test can stop the writers before it fails.
pub fn await_updates(client: &mut Connection, collection: &str, names: &[&str], more: u64) {
    let deadline = Instant::now() + PATIENCE;
    let mut count = |name: &str| {
        let count = client.get(&format!("{collection}/{name}")).json()["metadata"]["labels"]["count"].clone();
        count.as_str().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0)
    };
    let wanted: Vec<u64> = names.iter().map(|name| count(name) + more).collect();
    while names.iter().zip(&wanted).any(|(name, wanted)| count(name) < *wanted) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the longest time that the machine itself takes to make 4 KiB of a file durable.
fn slowest_of_machine(directory: &DataDir, stopped: &AtomicBool) -> Duration {
    let (mut slowest, path) = (Duration::ZERO, directory.path().with_file_name("beside"));
    let mut file = File::create(path).expect("a file");
    while !stopped.load(Ordering::SeqCst) {
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(5));
        file.write_all(&[0; 4_096]).and_then(|()| file.sync_data()).expect("a disk");
        slowest = slowest.max(began.elapsed());
    }
    slowest
}

/// Reads the pages after the first one, and checks that all have the revision `start`. Returns all names.
fn names_from(first: Value, start: u64, client: &mut Connection) -> Vec<String> {
    let (mut names, mut page) = (Vec::new(), first);
    loop {
        let items = page["items"].as_array().expect("items");
        names.extend(items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()));
        assert_eq!(revision(&page), start, "every page has the revision of the first");
        let Some(token) = page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) else { return names };
        page = client.get(&format!("{CONFIG_MAPS}?limit=20&continue={token}")).expect(200);
    }
}

#[test]
fn a_resource_is_divided_while_it_is_used() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    for number in 0..60 {
        client.post(CONFIG_MAPS, &config_map(&format!("divided-{number:02}"), "1")).expect(201);
    }
    assert!(shards(&server, &[]).expect("an answer").contains("every resource has one shard"));
    let start = revision(&client.get(CONFIG_MAPS).expect(200));
    let first = client.get(&format!("{CONFIG_MAPS}?limit=20")).expect(200);
    let watch = server.connect().watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={start}")).expect("an answer");
    let mut watch = watch.unwrap_or_else(|refused| panic!("{}", refused.text()));
    let stopped = AtomicBool::new(false);
    let (updates, (_, slowest_elsewhere), machine) = std::thread::scope(|scope| {
        let objects = BUSY.map(|name| config_map(name, "0"));
        let writers = objects.map(|object| scope.spawn(|| keep_updating(&server, CONFIG_MAPS, object, &stopped)));
        // An object of a resource that is not divided shows how fast the machine is at the same time.
        let bystander =
            scope.spawn(|| keep_updating(&server, SECRETS, json!({ "metadata": { "name": "bystander" } }), &stopped));
        let machine = scope.spawn(|| slowest_of_machine(&directory, &stopped));
        for wanted in ["8", "3"] {
            await_updates(&mut client, CONFIG_MAPS, &BUSY, UPDATES);
            let table = shards(&server, &[&format!("configmaps={wanted}"), "example.com/widgets=2"])
                .expect("the division succeeds");
            let row = table.lines().find(|line| line.starts_with("configmaps")).expect("a row");
            assert!(row.split_whitespace().nth(1) == Some(wanted), "{table}");
        }
        await_updates(&mut client, CONFIG_MAPS, &BUSY, UPDATES);
        stopped.store(true, Ordering::SeqCst);
        (
            writers.map(|writer| writer.join().expect("a writer")),
            bystander.join().expect("a writer"),
            machine.join().expect("a disk"),
        )
    });
    // On a machine with a slow disk, a write may take ten times as long as the slowest sync of a file.
    let bound = WRITE_MAX.max(10 * machine);
    for (count, slowest) in updates {
        let held = slowest.saturating_sub(slowest_elsewhere);
        assert!(
            count > 10 && held < WRITE_MAX && slowest < bound,
            "{count} updates, one of them took {slowest:?}, {slowest_elsewhere:?} elsewhere; the disk {machine:?}"
        );
    }
    for refused in ["services=4", "configmaps=0", "nothings=2", "apps/nothings=2"] {
        assert!(shards(&server, &[refused]).is_err(), "{refused}");
    }

    // The list continues at its first revision.
    let names = names_from(first, start, &mut client);
    assert!(names.is_sorted() && names.iter().filter(|name| name.starts_with("divided-")).count() == 60, "{names:?}");

    // The watch received every update once and in order, and can be resumed after the last one.
    let (mut last, mut seen) = (start, 0);
    let wanted: u64 = updates.iter().map(|(count, _)| count + 1).sum();
    while seen < wanted {
        let event = watch.next().expect("an event");
        assert!(revision(&event["object"]) > last, "{event}");
        last = revision(&event["object"]);
        seen += u64::from(event["object"]["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("busy-")));
    }
    drop((client, watch));
    server.kill();
    let server = directory.start();
    let again = server.connect().watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={start}")).expect("an answer");
    let mut again = again.unwrap_or_else(|refused| panic!("{}", refused.text()));
    assert!(revision(&again.next().expect("an event")["object"]) > start, "the history survives a restart");
    let table = shards(&server, &[]).expect("an answer");
    assert!(table.contains("configmaps") && table.contains("example.com/widgets"), "{table}");
}
