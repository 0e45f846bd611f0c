//! The server is killed while clients write.
//!
//! Each of several writers creates, updates and deletes its own ConfigMaps, and records acknowledged states. All of
//! them increment a counter in one more ConfigMap. The server gets SIGKILL in the meantime and is started again. Then
//! every acknowledged state must be present, with its revision. A write without an answer may have happened or not.
//! Deleted objects must stay deleted.
//!
//! The server is killed 20 times, or FLOTILLA_CRASH_ROUNDS times.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::Rng as _;
use serde_json::{Value, json};

use crate::support::{
    Answer, CONFIG_MAPS, Connection, DataDir, PATIENCE, Server, config_map, config_map_path, revision,
};

const WRITERS: usize = 3;
const ROUNDS: usize = 20;
const NAMES_PER_WRITER: usize = 25;
const COUNTER: &str = "crash-counter";

/// The value and revision of an object. `None` if it does not exist.
type State = Option<(String, u64)>;

/// A write that was sent and got no answer.
#[derive(Debug)]
struct Unknown {
    name: String,
    /// The value that the write would set. `None` for a deletion.
    value: Option<String>,
}

/// A client, and the objects as it knows them.
struct Writer {
    number: usize,
    /// The acknowledged state of every object that this client ever wrote.
    known: BTreeMap<String, State>,
    unknown: Option<Unknown>,
    /// The number of writes so far. Each has its own value.
    writes: u64,
    /// The number of writes that were acknowledged.
    acknowledged: u64,
    /// The highest count that was acknowledged to this client, and the highest that it sent.
    counted: (u64, u64),
}

impl Writer {
    fn new(number: usize) -> Writer {
        Writer { number, known: BTreeMap::new(), unknown: None, writes: 0, acknowledged: 0, counted: (0, 0) }
    }

    /// Writes until the connection breaks. Counts in `answered`.
    fn write(&mut self, mut client: Connection, answered: &AtomicU64) {
        while self.write_one(&mut client).and_then(|()| self.count(&mut client)).is_ok() {
            answered.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn write_one(&mut self, client: &mut Connection) -> io::Result<()> {
        let mut random = rand::rng();
        let name = format!("crash-{}-{}", self.number, random.random_range(0..NAMES_PER_WRITER));
        let before = self.known.get(&name).cloned().flatten();
        self.writes += 1;
        let value = format!("{}-{}", self.number, self.writes);
        let object = config_map(&name, &value);
        let is_deletion = before.is_some() && random.random_ratio(1, 3);
        self.unknown = Some(Unknown { name: name.clone(), value: (!is_deletion).then(|| value.clone()) });
        let path = config_map_path(&name);
        let (answer, expected) = match before {
            None => (send(client, "POST", CONFIG_MAPS, &object)?, 201),
            Some(_) if is_deletion => (send(client, "DELETE", &path, &json!({}))?, 200),
            Some((_, revision)) => {
                let mut object = object;
                object["metadata"]["resourceVersion"] = json!(revision.to_string());
                (send(client, "PUT", &path, &object)?, 200)
            }
        };
        let answer = answer.expect(expected);
        self.unknown = None;
        self.acknowledged += 1;
        self.known.insert(name, (!is_deletion).then(|| (value, revision(&answer))));
        Ok(())
    }

    /// Increments the shared counter, unless another writer was faster.
    fn count(&mut self, client: &mut Connection) -> io::Result<()> {
        let path = config_map_path(COUNTER);
        let mut counter = send(client, "GET", &path, &Value::Null)?.expect(200);
        let count = count_of(&counter) + 1;
        counter["data"]["value"] = json!(count.to_string());
        self.counted.1 = self.counted.1.max(count);
        let answer = send(client, "PUT", &path, &counter)?;
        if answer.status != 409 {
            assert_eq!(count_of(&answer.expect(200)), count);
            assert!(self.counted.0 < count, "the count {count} was acknowledged twice");
            self.counted.0 = count;
        }
        Ok(())
    }

    /// Compares the recorded states with the stored ones. Removes the stored ones from `found`, and records them.
    fn check(&mut self, found: &mut BTreeMap<String, (String, u64)>) {
        let unknown = self.unknown.take();
        let names: BTreeSet<_> = self.known.keys().chain(unknown.iter().map(|write| &write.name)).cloned().collect();
        for name in names {
            let (state, before) = (found.remove(&name), self.known.get(&name).cloned().flatten());
            let may_have_changed = unknown.as_ref().filter(|write| write.name == name);
            let happened = may_have_changed.is_some_and(|write| match &state {
                Some((value, revision)) => {
                    write.value.as_ref() == Some(value) && before.as_ref().is_none_or(|before| before.1 < *revision)
                }
                None => write.value.is_none(),
            });
            assert!(state == before || happened, "{name} is {state:?}, was {before:?}; unanswered: {unknown:?}");
            self.known.insert(name, state);
        }
    }
}

fn send(client: &mut Connection, method: &str, path: &str, object: &Value) -> io::Result<Answer> {
    let body = if object.is_null() { String::new() } else { object.to_string() };
    client.call(method, path, &[("Content-Type", "application/json")], body.as_bytes())
}

fn count_of(counter: &Value) -> u64 {
    counter["data"]["value"].as_str().and_then(|count| count.parse().ok()).expect("a count")
}

/// Reads all ConfigMaps of the writers.
fn read_all(server: &Server) -> BTreeMap<String, (String, u64)> {
    let list = server.connect().get(CONFIG_MAPS).expect(200);
    let items = list["items"].as_array().expect("items").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = items.map(|item| (text(&item["metadata"]["name"]), (text(&item["data"]["value"]), revision(item))));
    all.filter(|(name, _)| name.starts_with("crash-") && name != COUNTER).collect()
}

fn rounds() -> usize {
    let Ok(text) = std::env::var("FLOTILLA_CRASH_ROUNDS") else { return ROUNDS };
    text.parse().expect("FLOTILLA_CRASH_ROUNDS is a number")
}

#[test]
fn acknowledged_writes_survive_kills() {
    let directory = DataDir::new();
    let mut server = directory.start();
    server.connect().post(CONFIG_MAPS, &config_map(COUNTER, "0")).expect(201);
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    for round in 0..rounds() {
        let before: u64 = writers.iter().map(|writer| writer.acknowledged).sum();
        let (credentials, killed, answered) = (server.credentials(), AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for writer in &mut writers {
                let (client, killed, answered) = (credentials.connect(), &killed, &answered);
                scope.spawn(move || {
                    writer.write(client, answered);
                    assert!(killed.load(Ordering::SeqCst), "a connection broke before the server was killed");
                });
            }
            std::thread::sleep(Duration::from_millis(rand::rng().random_range(300..1_500)));
            // On a busy machine, the first write may take longer.
            let deadline = Instant::now() + PATIENCE;
            while answered.load(Ordering::SeqCst) == 0 && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
            killed.store(true, Ordering::SeqCst);
            server.kill();
        });
        let after: u64 = writers.iter().map(|writer| writer.acknowledged).sum();
        assert!(after > before, "no write was acknowledged in round {round}");
        server = directory.start();
        let mut found = read_all(&server);
        for writer in &mut writers {
            writer.check(&mut found);
        }
        assert_eq!(found, BTreeMap::new(), "no client wrote these");
        let count = count_of(&server.connect().get(&config_map_path(COUNTER)).expect(200));
        let acknowledged = writers.iter().map(|writer| writer.counted.0).max().unwrap_or(0);
        let asked = writers.iter().map(|writer| writer.counted.1).max().unwrap_or(0);
        assert!((acknowledged..=asked).contains(&count), "{count} is not within {acknowledged} and {asked}");
    }
}
