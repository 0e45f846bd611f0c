//! Watchers: each resumes after the last revision that it received, on any member.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use rand::Rng as _;
use serde_json::Value;

use super::objects::{self, NAMESPACES};
use super::{Client, Record, Revisions, Traffic};
use crate::history::{Delivery, End, EventKind, Key, Micros, Revision, Scope, Session, Start, Stream};
use crate::support::{Answer, Watch};

/// The longest session, in seconds. Clients choose a random length with `timeoutSeconds`.
const SESSION_SECONDS_MAX: u64 = 8;
/// The pause between two attempts to start a session.
const BACKOFF: Duration = Duration::from_millis(50);

/// The plan of one watcher.
pub struct Plan {
    scope: Scope,
    /// Where it starts.
    start: Start,
}

/// Returns three plans for every table: a watch of all namespaces, a watch of one namespace, and a watch that starts
/// anew with each session.
pub fn plans(revisions: &Revisions) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (table, (revision, delivered)) in revisions {
        let start = Start::After { revision: *revision, delivered: *delivered };
        let of = |namespace: Option<&str>| Scope { table: *table, namespace: namespace.map(str::to_owned) };
        plans.push(Plan { scope: of(None), start });
        plans.push(Plan { scope: of(Some(NAMESPACES[0])), start });
        plans.push(Plan { scope: of(None), start: Start::InitialEvents });
    }
    plans
}

/// Watches until every awaited object was received, or the traffic gives up.
pub fn watch(traffic: &Traffic, plan: Plan) -> Record {
    let awaited = super::last_keys().into_iter().filter(|key| plan.scope.holds(key)).collect();
    let begins_anew = matches!(plan.start, Start::InitialEvents);
    let stream = Stream { scope: plan.scope, sessions: Vec::new(), is_caught_up: false };
    let mut watcher = Watcher { traffic, client: Client::new(traffic), stream, awaited };
    let mut start = plan.start;
    while !watcher.awaited.is_empty() && !traffic.gives_up() {
        let Some(session) = watcher.open(start) else {
            std::thread::sleep(BACKOFF);
            continue;
        };
        start = match session.end {
            End::Expired => Start::InitialEvents,
            End::Closed if begins_anew => Start::InitialEvents,
            End::Closed => resume(&session).unwrap_or(start),
        };
        watcher.stream.sessions.push(session);
    }
    watcher.stream.is_caught_up = watcher.awaited.is_empty();
    Record { streams: vec![watcher.stream], ..Record::default() }
}

/// Returns where the next session can resume: after the largest revision that this session received. Returns `None` if
/// it received no revision, or not all initial events.
fn resume(session: &Session) -> Option<Start> {
    let delivered = session.told_at;
    if matches!(session.start, Start::InitialEvents) && !session.has_begun() {
        return None;
    }
    let revisions = session.deliveries.iter().map(|delivery| match delivery {
        Delivery::Event { seen, .. } => seen.revision,
        Delivery::Bookmark { revision, .. } => *revision,
    });
    let revision = revisions.max()?;
    Some(Start::After { revision, delivered })
}

struct Watcher<'a> {
    traffic: &'a Traffic,
    client: Client<'a>,
    stream: Stream,
    /// Objects whose events the watcher still waits for.
    awaited: BTreeSet<Key>,
}

impl Watcher<'_> {
    /// Runs one session. Returns `None` if it did not start.
    fn open(&mut self, start: Start) -> Option<Session> {
        let seconds = rand::rng().random_range(1..=SESSION_SECONDS_MAX);
        let begin = match start {
            Start::After { revision, .. } => format!("resourceVersion={revision}"),
            Start::InitialEvents => "sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        };
        let collection = objects::collection(&self.stream.scope);
        let path = format!("{collection}?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&{begin}");
        let invoked = self.traffic.now();
        let watch = self.client.watch(&path)?;
        let member = self.client.member();
        let mut session = Session { member, start, invoked, told_at: 0, deliveries: Vec::new(), end: End::Closed };
        match watch {
            Ok(watch) => self.follow(watch, &mut session, Duration::from_secs(seconds + 2)),
            Err(answer) => self.refused(&answer).then(|| session.end = End::Expired)?,
        }
        Some(session)
    }

    /// Returns whether the watch was refused with 410, because the history does not reach back to its revision. Other
    /// refusals are temporary.
    fn refused(&self, answer: &Answer) -> bool {
        assert_ne!(answer.status, 404, "a watch of a served resource: {}", answer.text());
        self.traffic.count(format!("{} to a watch: {}", answer.status, answer.json()["message"]));
        answer.status == 410
    }

    fn follow(&mut self, mut watch: Watch, session: &mut Session, patience: Duration) {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline && !self.traffic.gives_up() && !self.awaited.is_empty() {
            match watch.next() {
                Ok(event) => self.take(&event, session),
                // No event came within the connection's timeout.
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(_) => break,
            }
        }
    }

    fn take(&mut self, event: &Value, session: &mut Session) {
        let (object, at) = (&event["object"], self.traffic.now());
        let table = self.stream.scope.table;
        let kind = match event["type"].as_str() {
            Some("ADDED") => EventKind::Added,
            Some("MODIFIED") => EventKind::Modified,
            Some("DELETED") => EventKind::Deleted,
            Some("BOOKMARK") => return session.mark(object, at),
            _ => {
                self.traffic.count(format!("an event in a watch: {event}"));
                if object["code"] == 410 {
                    session.end = End::Expired;
                }
                return;
            }
        };
        let (Some(key), Some(seen)) = (objects::key_of(table, object), objects::seen(object)) else { return };
        self.awaited.remove(&key);
        session.told_at = at;
        session.deliveries.push(Delivery::Event { kind, key, seen, at });
    }
}

impl Session {
    fn mark(&mut self, object: &Value, at: Micros) {
        let metadata = &object["metadata"];
        let revision = metadata["resourceVersion"].as_str().and_then(|text| text.parse::<Revision>().ok());
        let revision = revision.unwrap_or_else(|| panic!("a bookmark without resourceVersion: {object}"));
        let ends_initial = metadata["annotations"]["k8s.io/initial-events-end"] == "true";
        self.told_at = at;
        self.deliveries.push(Delivery::Bookmark { revision, ends_initial });
    }

    fn has_begun(&self) -> bool {
        self.deliveries.iter().any(|delivery| matches!(delivery, Delivery::Bookmark { ends_initial: true, .. }))
    }
}
