//! Garbage collection by owner references ("Garbage Collection", "Owners and Dependents").
//!
//! Every table is followed into a graph of who belongs to whom. Whatever a decision rests on is read again when it is
//! made: the graph says only where to look.

mod collect;
mod graph;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::{Interest, Object};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;

use self::graph::{Graph, Item, Uid};
use super::agent::Agent;
use super::metadata::{is_deleting, mentions, metadata, uid};
use super::queue::Queue;
use crate::follow::{Seen, follow};
use crate::metrics::queues::QueueMetrics;
use crate::served::Served;
use crate::status::ApiResult;

/// Objects that are dealt with at a time.
const WORKERS: usize = 32;
/// Time given to the followers of all tables, so that an owner is let go only when dependents that were there before
/// are known.
const SETTLE: Duration = Duration::from_millis(20);

struct Collector {
    agent: Rc<Agent>,
    tables: RefCell<Vec<Arc<Served>>>,
    graph: RefCell<Graph>,
    queue: Queue<Item>,
    /// Tables of which not every object was seen yet.
    unseen: Cell<usize>,
    complete: Notify,
}

/// Collects garbage.
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
    let mut defined = collector.agent.registry.resources.changes();
    let mut followers: FuturesUnordered<_> = collector.adopt().map(|table| collector.follow(table)).collect();
    let following = async {
        loop {
            tokio::select! {
                _ = defined.changed() => followers.extend(collector.adopt().map(|table| collector.follow(table))),
                _ = followers.next() => {} // none ends
            }
        }
    };
    tokio::join!(following, async {
        while collector.unseen.get() > 0 {
            collector.complete.notified().await;
        }
        collector.queue.work(WORKERS, |item| collector.attempt(item)).await;
    });
    Ok(())
}

/// Events own nothing and come in great numbers; what cannot be listed and deleted is not stored.
fn is_followed(served: &Served) -> bool {
    served.resource.name != "events" && ["list", "watch", "delete"].iter().all(|verb| served.has_verb(verb))
}

impl Collector {
    /// Takes in the tables that are not known yet; their places.
    fn adopt(&self) -> Range<usize> {
        let mut tables = self.tables.borrow_mut();
        let from = tables.len();
        for served in self.agent.registry.resources.stored() {
            if is_followed(&served) && !tables.iter().any(|known| known.table == served.table) {
                tables.push(served);
            }
        }
        self.unseen.set(self.unseen.get() + tables.len() - from);
        from..tables.len()
    }

    /// The resource of a kind that is defined no more, and whose table was followed.
    fn defined_before(&self, group: &str, kind: &str) -> Option<Arc<Served>> {
        self.tables.borrow().iter().find(|of| of.group() == group && of.kind().name == kind).cloned()
    }

    /// The resource whose objects a table holds, as it is served now, or was.
    fn served(&self, table: usize) -> Arc<Served> {
        let known = self.tables.borrow()[table].clone();
        self.agent.registry.resources.of_resource(known.group(), &known.resource.name).unwrap_or(known)
    }

    async fn follow(&self, table: usize) {
        let mut listed = false;
        let followed = self.agent.registry.table(&self.served(table));
        follow(&followed, Interest::default(), |seen| match seen {
            Seen::Begin => self.graph.borrow_mut().forget_table(table),
            Seen::Listed(_) if listed => self.review(),
            Seen::Listed(_) => {
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
        self.queue.add_after(item, SETTLE);
    }

    /// Looks at everything, since what happened meanwhile is not known.
    fn review(&self) {
        let all: Vec<Item> = self.graph.borrow().all().collect();
        all.into_iter().for_each(|item| self.enqueue(item));
    }
}
