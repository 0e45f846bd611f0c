//! Clients, each of which asks random hosts, and the history of their requests and answers.

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
use super::host::{RequestError, StoreClient};
use super::time::Time;
use super::trace::Trace;
use super::world::{PLAIN, SPREAD, World};
use crate::Store;

/// The tables that clients write to.
pub(super) const TABLES: [Table; 2] = [Table::plain(PLAIN), Table::plain(SPREAD)];
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(6);

/// The state that all clients share. Cheap to clone.
#[derive(Clone)]
pub(super) struct Traffic {
    clients: Vec<StoreClient>,
    time: Time,
    trace: Trace,
    history: Rc<RefCell<History>>,
    /// The last known state of each key.
    known: Rc<RefCell<BTreeMap<Key, Option<Seen>>>>,
    values: Rc<Cell<u64>>,
    /// Whether writers and readers must end.
    is_over: Rc<Cell<bool>>,
    /// The revisions up to which watchers must receive everything before they end.
    last: Rc<RefCell<BTreeMap<Table, Revision>>>,
    /// Whether writers and readers pause.
    is_quiet: Rc<Cell<bool>>,
    /// The number of clients that have not ended.
    busy: Rc<Cell<usize>>,
    /// The revision of every table before anything was written to it.
    begun: Rc<RefCell<BTreeMap<Table, Start>>>,
}

impl Traffic {
    pub(super) fn new(world: &World) -> Traffic {
        Traffic {
            clients: world.clients(),
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

    /// Finds out where every table begins, so that watchers receive everything.
    pub(super) fn prepare(&self, world: &World) {
        for table in TABLES {
            let (traffic, host) = (self.clone(), 0);
            self.spawn(world, async move {
                loop {
                    let read = move |store: Store| async move {
                        store.barrier(&store.table(&objects::store_table(table))).await.map_or(0, crate::Revision::get)
                    };
                    // Until its groups have a history, a table begins at another revision on every start.
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

    /// Starts the clients.
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

    /// Makes writers and readers pause, or go on.
    pub(super) fn set_quiet(&self, is_quiet: bool) {
        self.is_quiet.set(is_quiet);
    }

    /// Makes writers and readers end.
    pub(super) fn stop(&self) {
        self.is_over.set(true);
    }

    /// Returns the number of clients that have not ended.
    pub(super) fn busy(&self) -> usize {
        self.busy.get()
    }

    /// Reads everything from every host once more.
    pub(super) fn conclude(&self, world: &World) {
        for host in 0..self.clients.len() {
            for table in TABLES {
                self.spawn(world, reader::conclude(self.clone(), host, table));
            }
        }
    }

    /// Returns the recorded history.
    pub(super) fn history(&self) -> History {
        self.history.borrow().clone()
    }

    /// Returns the number of acknowledged writes.
    pub(super) fn acknowledged(&self) -> usize {
        let acknowledged =
            |outcome: &WriteOutcome| matches!(outcome, WriteOutcome::Put(_) | WriteOutcome::Deleted { .. });
        let history = self.history.borrow();
        history.writes.iter().filter(|write| acknowledged(&write.outcome)).count()
    }

    fn now(&self) -> Micros {
        self.time.stamp()
    }

    /// Draws a host.
    fn anywhere(&self) -> usize {
        draw::below(self.clients.len() as u64) as usize
    }

    /// Runs work on a host. Returns its result, and when it was asked and answered.
    async fn ask<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        host: usize,
        work: impl FnOnce(Store) -> F + 'static,
    ) -> (Interval, Result<T, RequestError>) {
        let invoked = self.now();
        let answer = timeout(PATIENCE, self.clients[host].ask(work)).await.unwrap_or(Err(RequestError::Lost));
        (Interval { invoked, returned: self.now() }, answer)
    }

    /// Returns a value that was not written before.
    fn value(&self) -> u64 {
        self.values.set(self.values.get() + 1);
        self.values.get()
    }

    /// Waits a little, and as long as clients pause.
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
