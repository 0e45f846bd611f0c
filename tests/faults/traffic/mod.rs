//! Clients of a control plane, each with a thread of its own, that record what they do and see.

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

/// Of clients of each kind.
const WRITERS: usize = 5;
const READERS: usize = 2;
const LISTERS: usize = 2;

/// What the clients of one run share.
pub struct Traffic {
    pub endpoints: Endpoints,
    pub directory: Directory,
    began: Instant,
    /// Writers and readers end.
    stops: AtomicBool,
    /// When watchers give up.
    gives_up: Mutex<Option<Instant>>,
    acknowledged: AtomicU64,
    /// When a write was acknowledged last, and the longest time between two since somebody asked.
    pauses: Mutex<(Instant, Duration)>,
    /// Answers that are neither success nor refusal, and other events, by what they were.
    counts: Mutex<BTreeMap<String, u64>>,
}

/// What one client recorded.
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

    /// Makes the namespaces, and waits until pods can be created in them; defines the custom type.
    pub fn prepare(&self) {
        let mut client = Client::new(self);
        objects::make_namespaces(&mut client);
        custom::define(&mut client, self.endpoints.members.len());
    }

    /// Runs all clients as long as `meanwhile` takes; writes something last of all, and lets watchers come to that.
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

    /// How many writes were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// The longest time between two acknowledged writes of anybody, since this was asked before.
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

    /// What happened how often.
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

/// Ends the traffic when dropped, since a scope waits for its threads also when it fails.
struct EndOfTraffic<'a>(&'a Traffic);

impl Drop for EndOfTraffic<'_> {
    fn drop(&mut self) {
        self.0.stops.store(true, Ordering::SeqCst);
        *self.0.gives_up.lock() = Some(Instant::now());
    }
}

/// The revision of each table when the clients began.
type Revisions = BTreeMap<Table, (Revision, Micros)>;

/// All keys that the writers use.
fn keys() -> Vec<Key> {
    let mut keys = Vec::new();
    for table in Table::ALL {
        for namespace in NAMESPACES {
            keys.extend((0..objects::NAMES).map(|number| objects::key(table, namespace, &format!("f-{number}"))));
        }
    }
    keys
}
