//! Clients outside, each of which asks whichever host it likes, and the history of what they did and saw.

mod objects;
mod reader;
mod watcher;
mod writer;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::draw;
use super::history::{History, Interval, Key, Micros, Revision, Seen, Start, Table, WriteOutcome};
use super::host::{Door, Gone};
use super::time::Time;
use super::trace::Trace;
use super::world::{PLAIN, SPREAD, World};
use crate::Store;

/// The tables that are written to.
pub(super) const TABLES: [Table; 2] = [Table::plain(PLAIN), Table::plain(SPREAD)];
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(6);

/// What all clients share. Cheap to clone.
#[derive(Clone)]
pub(super) struct Traffic {
    doors: Vec<Door>,
    time: Time,
    trace: Trace,
    history: Rc<RefCell<History>>,
    /// What is known of each key, by whoever asked last.
    known: Rc<RefCell<BTreeMap<Key, Option<Seen>>>>,
    values: Rc<Cell<u64>>,
    /// Writers and readers are to end.
    is_over: Rc<Cell<bool>>,
    /// Watchers are to end when they were told of everything up to here.
    last: Rc<RefCell<BTreeMap<Table, Revision>>>,
    /// Writers and readers do nothing for now.
    is_quiet: Rc<Cell<bool>>,
    /// How many clients are at work.
    busy: Rc<Cell<usize>>,
    /// Where every table was before anything was written to it.
    begun: Rc<RefCell<BTreeMap<Table, Start>>>,
}

impl Traffic {
    pub(super) fn new(world: &World) -> Traffic {
        Traffic {
            doors: world.doors(),
            time: world.time.clone(),
            trace: world.trace.clone(),
            history: Rc::default(),
            known: Rc::default(),
            values: Rc::default(),
            is_over: Rc::default(),
            last: Rc::default(),
            is_quiet: Rc::default(),
            busy: Rc::default(),
            begun: Rc::default(),
        }
    }

    /// Finds out where every table begins, so that watchers are told of everything.
    pub(super) fn prepare(&self, world: &World) {
        for table in TABLES {
            let (traffic, host) = (self.clone(), 0);
            self.spawn(world, async move {
                loop {
                    let read = move |store: Store| async move {
                        store.barrier(&store.table(&objects::store_table(table))).await.map_or(0, crate::Revision::get)
                    };
                    // Before its groups have a past a table begins anew on whoever starts.
                    if let (at, Ok(revision)) = traffic.ask(host, read).await
                        && revision > crate::Revision::FIRST.get()
                    {
                        let start = Start::After { revision, delivered: at.returned };
                        traffic.begun.borrow_mut().insert(table, start);
                        return;
                    }
                    traffic.pause(50..100).await;
                }
            });
        }
    }

    /// Starts clients.
    pub(super) fn start(&self, world: &World) {
        let traffic = self;
        for table in TABLES {
            for _ in 0..3 {
                traffic.spawn(world, writer::write(traffic.clone(), table));
            }
            traffic.spawn(world, reader::read(traffic.clone(), table));
            traffic.spawn(world, reader::list(traffic.clone(), table));
            for plan in watcher::plans(table, traffic.begun.borrow()[&table]) {
                traffic.spawn(world, watcher::watch(traffic.clone(), plan));
            }
        }
    }

    fn spawn(&self, world: &World, client: impl Future<Output = ()> + 'static) {
        let busy = self.busy.clone();
        busy.set(busy.get() + 1);
        world.spawn(async move {
            client.await;
            busy.set(busy.get() - 1);
        });
    }

    /// Has writers and readers do nothing, or go on.
    pub(super) fn set_quiet(&self, is_quiet: bool) {
        self.is_quiet.set(is_quiet);
    }

    /// Has writers and readers end.
    pub(super) fn stop(&self) {
        self.is_over.set(true);
    }

    /// How many clients have not ended yet.
    pub(super) fn busy(&self) -> usize {
        self.busy.get()
    }

    /// Reads everything from every host once more.
    pub(super) fn conclude(&self, world: &World) {
        for host in 0..self.doors.len() {
            for table in TABLES {
                self.spawn(world, reader::conclude(self.clone(), host, table));
            }
        }
    }

    /// What was recorded.
    pub(super) fn history(&self) -> History {
        self.history.borrow().clone()
    }

    /// How many writes were acknowledged.
    pub(super) fn acknowledged(&self) -> usize {
        let acknowledged =
            |outcome: &WriteOutcome| matches!(outcome, WriteOutcome::Put(_) | WriteOutcome::Deleted { .. });
        let history = self.history.borrow();
        history.writes.iter().filter(|write| acknowledged(&write.outcome)).count()
    }

    fn now(&self) -> Micros {
        self.time.stamp()
    }

    /// Any host.
    fn anywhere(&self) -> usize {
        draw::below(self.doors.len() as u64) as usize
    }

    /// Asks a host, which may take its time.
    async fn ask<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        host: usize,
        work: impl FnOnce(Store) -> F + 'static,
    ) -> (Interval, Result<T, Gone>) {
        let invoked = self.now();
        let answer = timeout(PATIENCE, self.doors[host].ask(work)).await.unwrap_or(Err(Gone::Lost));
        (Interval { invoked, returned: self.now() }, answer)
    }

    /// A value that nobody has written.
    fn value(&self) -> u64 {
        self.values.set(self.values.get() + 1);
        self.values.get()
    }

    /// Waits a little, and as long as nothing is to be done.
    async fn rest(&self, ms: std::ops::Range<u64>) {
        self.pause(ms).await;
        while self.is_quiet.get() {
            self.pause(20..40).await;
        }
    }

    /// Waits a little.
    async fn pause(&self, ms: std::ops::Range<u64>) {
        sleep(Duration::from_millis(draw::within(ms))).await;
    }
}
