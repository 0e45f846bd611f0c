//! Garbage collection by owner references ("Garbage Collection", "Owners and Dependents").
//!
//! The controller follows every table and maintains a graph of ownership. The graph only finds candidates: every
//! decision reads the objects concerned again.

mod collect;
mod graph;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::{Interest, Object};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;

use self::graph::{Graph, Item, Uid};
use super::agent::Agent;
use super::metadata::{is_deleting, mentions, metadata, uid};
use super::queue::Queue;
use crate::follow::{Seen, follow};
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::served::Served;
use crate::status::ApiResult;

struct Collector {
    agent: Rc<Agent>,
    tables: RefCell<Vec<Arc<Served>>>,
    graph: RefCell<Graph>,
    queue: Queue<Item>,
    /// Number of tables whose objects have not all been seen yet.
    unseen: Cell<usize>,
    complete: Notify,
}

/// Runs the garbage collector.
pub async fn run(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let queue = Queue::new(measured);
    let collector = Collector {
        agent,
        tables: RefCell::default(),
        graph: RefCell::default(),
        queue,
        unseen: Cell::default(),
        complete: Notify::new(),
    };
    let mut defined = collector.agent.registry.tables.resources.changes();
    let mut followers: FuturesUnordered<_> = collector.adopt().map(|table| collector.follow(table)).collect();
    let following = async {
        loop {
            tokio::select! {
                _ = defined.changed() => followers.extend(collector.adopt().map(|table| collector.follow(table))),
                _ = followers.next() => {} // no follower ends
            }
        }
    };
    tokio::join!(following, async {
        while collector.unseen.get() > 0 {
            collector.complete.notified().await;
        }
        collector.queue.work(limits::GARBAGE_WORKERS, |item| collector.attempt(item)).await;
    });
    Ok(())
}

/// Returns whether a resource is followed. Events are not, since they own nothing and are many, nor are resources
/// without the verbs list, watch and delete.
fn is_followed(served: &Served) -> bool {
    served.resource.name != "events" && ["list", "watch", "delete"].iter().all(|verb| served.has_verb(verb))
}

impl Collector {
    /// Adds the tables that are not followed yet. Returns their numbers.
    fn adopt(&self) -> Range<usize> {
        let mut tables = self.tables.borrow_mut();
        let from = tables.len();
        for served in self.agent.registry.tables.resources.stored() {
            if is_followed(&served) && !tables.iter().any(|known| known.table == served.table) {
                tables.push(served);
            }
        }
        self.unseen.set(self.unseen.get() + tables.len() - from);
        from..tables.len()
    }

    /// Returns the resource of a kind whose definition is gone, if its table was followed. `None` otherwise.
    fn defined_before(&self, group: &str, kind: &str) -> Option<Arc<Served>> {
        self.tables.borrow().iter().find(|of| of.group() == group && of.kind().name == kind).cloned()
    }

    /// Returns the resource of a table, as it is served. If it is no longer served, returns it as it was.
    fn served(&self, table: usize) -> Arc<Served> {
        let known = self.tables.borrow()[table].clone();
        self.agent.registry.tables.resources.of_resource(known.group(), &known.resource.name).unwrap_or(known)
    }

    async fn follow(&self, table: usize) {
        let mut listed = false;
        let followed = self.agent.registry.tables.table(&self.served(table));
        follow(&followed, Interest::default(), |seen| match seen {
            Seen::Begin => self.graph.borrow_mut().forget_table(table),
            Seen::ListEnd(_) if listed => self.review(),
            Seen::ListEnd(_) => {
                listed = true;
                self.unseen.set(self.unseen.get() - 1);
                self.complete.notify_one();
            }
            Seen::Present(object) => self.see(table, object),
            Seen::Changed(change) => self.see(table, change.object()),
        })
        .await;
    }

    fn see(&self, table: usize, object: &Object) {
        let Some(uid) = uid(object) else { return };
        let gone = object.is_tombstone();
        let concerns = !gone && (is_deleting(object) || mentions(object, "\"ownerReferences\":"));
        if !gone && !concerns && !self.graph.borrow().knows(uid) {
            return;
        }
        let concerned = if gone {
            self.graph.borrow_mut().forget(uid)
        } else {
            let Ok(metadata) = metadata(object) else { return };
            let item = Item { table, key: object.key().clone(), uid: Uid::from(uid) };
            self.graph.borrow_mut().note(item, &metadata)
        };
        for item in concerned {
            self.enqueue(item);
        }
    }

    fn enqueue(&self, item: Item) {
        self.queue.add_after(item, limits::GARBAGE_SETTLE);
    }

    /// Puts all objects into the queue, since changes may have been missed.
    fn review(&self) {
        let all: Vec<Item> = self.graph.borrow().all().collect();
        all.into_iter().for_each(|item| self.enqueue(item));
    }
}
