//! Writers: they mostly update objects with an expected revision, and sometimes create or delete them.

use std::time::{Duration, Instant};

use rand::Rng as _;
use serde_json::{Value, json};

use super::objects::{self, Known};
use super::{Client, Record, Traffic, reader};
use crate::history::{Get, Intent, Key, Seen, Write, WriteOutcome};
use crate::support::{Answer, PATIENCE};

/// The pause between two writes of one writer.
const PAUSE: Duration = Duration::from_millis(3);
/// One in so many writes to an existing object deletes it. An object that does not exist is created.
const DELETIONS_ONE_IN: u32 = 20;
/// One in so many deletions has no expectation.
const UNCONDITIONAL_ONE_IN: u32 = 4;

/// Writes until the traffic stops.
pub fn write(traffic: &Traffic, number: usize) -> Record {
    let mut writer = Writer { traffic, client: Client::new(traffic), number, written: 0, record: Record::default() };
    let keys = super::keys();
    while !traffic.stops() {
        writer.write_one(&keys[rand::rng().random_range(0..keys.len())]);
        std::thread::sleep(PAUSE);
    }
    writer.record
}

/// Writes the objects that show watchers that they have received everything.
pub fn write_last(traffic: &Traffic) -> Record {
    let client = Client::new(traffic);
    let mut writer = Writer { traffic, client, number: usize::MAX, written: 0, record: Record::default() };
    let deadline = Instant::now() + PATIENCE;
    for key in super::last_keys() {
        while !matches!(writer.create(&key), WriteOutcome::Put(_) | WriteOutcome::AlreadyExists) {
            assert!(Instant::now() < deadline, "{key} cannot be written although no fault is active");
        }
    }
    writer.record
}

struct Writer<'a> {
    traffic: &'a Traffic,
    client: Client<'a>,
    number: usize,
    written: u64,
    record: Record,
}

impl Writer<'_> {
    fn write_one(&mut self, key: &Key) {
        let known = self.traffic.directory.get(key);
        let outcome = match &known {
            None => self.create(key),
            Some(known) if rand::rng().random_ratio(1, DELETIONS_ONE_IN) => self.delete(key, known),
            Some(known) => self.update(key, known),
        };
        if !matches!(outcome, WriteOutcome::Put(_)) {
            self.traffic.directory.forget(key);
        }
        if matches!(outcome, WriteOutcome::Conflict | WriteOutcome::AlreadyExists | WriteOutcome::Unknown) {
            self.read(key);
        }
    }

    fn next_value(&mut self) -> String {
        self.written += 1;
        format!("{}-{}", self.number, self.written)
    }

    fn create(&mut self, key: &Key) -> WriteOutcome {
        let value = self.next_value();
        let body = objects::new_object(key, &value);
        self.send("POST", &objects::collection_of(key), &body, key, Intent::Create { value })
    }

    fn update(&mut self, key: &Key, known: &Known) -> WriteOutcome {
        let value = self.next_value();
        let body = objects::changed(known, &value);
        let intent = Intent::Update { value, expected: known.seen.revision };
        self.send("PUT", &objects::path(key), &body, key, intent)
    }

    fn delete(&mut self, key: &Key, known: &Known) -> WriteOutcome {
        let is_conditional = !rand::rng().random_ratio(1, UNCONDITIONAL_ONE_IN);
        let expected = is_conditional.then_some(known.seen.revision);
        let mut options = json!({"gracePeriodSeconds": 0});
        if let Some(revision) = expected {
            options["preconditions"] = json!({"resourceVersion": revision.to_string()});
        }
        self.send("DELETE", &objects::path(key), &options, key, Intent::Delete { expected })
    }

    fn send(&mut self, method: &str, path: &str, body: &Value, key: &Key, intent: Intent) -> WriteOutcome {
        let (at, answer) = self.client.call(method, path, body.to_string().as_bytes());
        let outcome = outcome(&intent, answer.as_ref());
        if matches!(outcome, WriteOutcome::Put(_) | WriteOutcome::Deleted { .. }) {
            self.traffic.acknowledge();
        }
        if let (WriteOutcome::Put(_), Some(answer)) = (&outcome, answer) {
            self.traffic.directory.put(key, answer.json());
        }
        self.record.writes.push(Write { key: key.clone(), intent, at, outcome: outcome.clone() });
        outcome
    }

    fn read(&mut self, key: &Key) {
        let (at, answer) = self.client.call("GET", &objects::path(key), b"");
        if let Some(found) = reader::found(self.traffic, key, answer) {
            self.record.gets.push(Get { key: key.clone(), at, is_recent: true, found });
        }
    }
}

fn outcome(intent: &Intent, answer: Option<&Answer>) -> WriteOutcome {
    let Some(answer) = answer else { return WriteOutcome::Unknown };
    match answer.status {
        429 => return WriteOutcome::NotDone,
        500.. => return WriteOutcome::Unknown,
        _ => {}
    }
    let body = answer.json();
    // The answer to a deletion is either a `Status` that names the uid, or the object before its deletion.
    let uid = body["details"]["uid"].as_str().or(body["metadata"]["uid"].as_str());
    let deleted = uid.filter(|_| matches!(intent, Intent::Delete { .. }));
    match (answer.status, body["reason"].as_str()) {
        (200 | 201, _) if deleted.is_some() => WriteOutcome::Deleted { uid: deleted.unwrap_or_default().to_owned() },
        (200 | 201, _) => match objects::seen(&body) {
            Some(seen) if is_removal(intent, &seen) => WriteOutcome::Deleted { uid: seen.uid },
            Some(seen) => WriteOutcome::Put(seen),
            None => WriteOutcome::Unexpected(body.to_string()),
        },
        (404, Some("NotFound")) => WriteOutcome::NotFound,
        (409, Some("AlreadyExists")) => WriteOutcome::AlreadyExists,
        (409, Some("Conflict")) => WriteOutcome::Conflict,
        _ => WriteOutcome::Unexpected(format!("{}: {body}", answer.status)),
    }
}

/// Returns whether an update removed the object: the object was marked as deleted, and the update removed its last
/// finalizer. The answer then shows the updated object with its previous revision.
fn is_removal(intent: &Intent, seen: &Seen) -> bool {
    matches!(intent, Intent::Update { expected, .. } if *expected == seen.revision)
}
