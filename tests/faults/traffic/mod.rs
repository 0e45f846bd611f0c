//! The clients of a control plane. Each has its own thread, and records its requests and their answers.

mod client;
mod custom;
mod objects;
mod reader;
mod watcher;
mod writer;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::fleet::Endpoints;
use crate::history::{Get, History, Key, List, Micros, RefusedPage, Revision, Stream, Table, Write};
pub use client::Client;
pub use objects::{Directory, NAMESPACES, last_keys};

/// The number of writers, and of readers of each kind.
const WRITERS: usize = 5;
const READERS: usize = 2;
const LISTERS: usize = 2;

/// State that all clients of a run share.
pub struct Traffic {
    pub endpoints: Endpoints,
    pub directory: Directory,
    began: Instant,
    /// Whether writers and readers must end.
    stops: AtomicBool,
    /// When watchers must end, even if they have not received everything.
    gives_up: Mutex<Option<Instant>>,
    acknowledged: AtomicU64,
    /// When a write was last acknowledged, and the longest time between two acknowledgements since the last query.
    pauses: Mutex<(Instant, Duration)>,
    /// Counts unexpected answers and other notable events, by description.
    counts: Mutex<BTreeMap<String, u64>>,
}

/// The record of one client.
#[derive(Default)]
pub struct Record {
    pub writes: Vec<Write>,
    pub gets: Vec<Get>,
    pub lists: Vec<List>,
    pub refused_pages: Vec<RefusedPage>,
    pub streams: Vec<Stream>,
}

impl Traffic {
    pub fn new(endpoints: Endpoints) -> Traffic {
        Traffic {
            endpoints,
            directory: Directory::default(),
            began: Instant::now(),
            stops: AtomicBool::new(false),
            gives_up: Mutex::new(None),
            acknowledged: AtomicU64::new(0),
            pauses: Mutex::new((Instant::now(), Duration::ZERO)),
            counts: Mutex::default(),
        }
    }

    /// Creates the namespaces, waits until pods can be created in them, and defines the custom type.
    pub fn prepare(&self) {
        let mut client = Client::new(self);
        objects::make_namespaces(&mut client);
        custom::define(&mut client, self.endpoints.members.len());
    }

    /// Runs all clients while `meanwhile` runs. Then makes the last writes, and gives watchers `patience` to receive
    /// them.
    pub fn run(&self, patience: Duration, meanwhile: impl FnOnce()) -> History {
        let mut records: Vec<Record> = Vec::new();
        let revisions = reader::present_revisions(self, &mut records);
        std::thread::scope(|scope| {
            let watchers: Vec<_> =
                watcher::plans(&revisions).into_iter().map(|plan| scope.spawn(|| watcher::watch(self, plan))).collect();
            let mut others = Vec::new();
            others.extend((0..WRITERS).map(|number| scope.spawn(move || writer::write(self, number))));
            others.extend((0..READERS).map(|_| scope.spawn(|| reader::get(self))));
            others.extend((0..LISTERS).map(|_| scope.spawn(|| reader::list(self))));
            let unless_it_fails = EndOfTraffic(self);
            meanwhile();
            std::mem::forget(unless_it_fails);
            self.stops.store(true, Ordering::SeqCst);
            records.extend(others.into_iter().map(|client| client.join().expect("a client")));
            records.push(writer::write_last(self));
            *self.gives_up.lock() = Some(Instant::now() + patience);
            records.extend(watchers.into_iter().map(|watcher| watcher.join().expect("a watcher")));
        });
        records.push(reader::list_finally(self));
        let mut history = History::default();
        for record in records {
            history.writes.extend(record.writes);
            history.gets.extend(record.gets);
            history.lists.extend(record.lists);
            history.refused_pages.extend(record.refused_pages);
            history.streams.extend(record.streams);
        }
        history
    }

    /// Returns how many writes have been acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Returns the longest time between two acknowledged writes of all clients since the previous call.
    pub fn longest_pause(&self) -> Duration {
        let (last, longest) = &mut *self.pauses.lock();
        let longest = std::mem::take(longest).max(last.elapsed());
        *last = Instant::now();
        longest
    }

    fn acknowledge(&self) {
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
        let (last, longest) = &mut *self.pauses.lock();
        *longest = last.elapsed().max(*longest);
        *last = Instant::now();
    }

    /// Returns how often each notable event happened.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.lock().clone()
    }

    pub fn now(&self) -> Micros {
        Micros::try_from(self.began.elapsed().as_micros()).expect("a run ends before that")
    }

    fn count(&self, what: impl Into<String>) {
        *self.counts.lock().entry(what.into()).or_default() += 1;
    }

    fn stops(&self) -> bool {
        self.stops.load(Ordering::SeqCst)
    }

    fn gives_up(&self) -> bool {
        self.gives_up.lock().is_some_and(|deadline| Instant::now() > deadline)
    }
}

/// Stops the clients when dropped, because a scope waits for its threads even when the test fails.
struct EndOfTraffic<'a>(&'a Traffic);

impl Drop for EndOfTraffic<'_> {
    fn drop(&mut self) {
        self.0.stops.store(true, Ordering::SeqCst);
        *self.0.gives_up.lock() = Some(Instant::now());
    }
}

/// For each table, its revision before the clients began, and the time at which that revision was read.
type Revisions = BTreeMap<Table, (Revision, Micros)>;

/// Returns all keys that the writers use.
fn keys() -> Vec<Key> {
    let mut keys = Vec::new();
    for table in Table::ALL {
        for namespace in NAMESPACES {
            keys.extend((0..objects::NAMES).map(|number| objects::key(table, namespace, &format!("f-{number}"))));
        }
    }
    keys
}
