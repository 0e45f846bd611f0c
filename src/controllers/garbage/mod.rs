//! Garbage collection by owner references ("Garbage Collection", "Owners and Dependents").
//!
//! Every table is followed into a graph of who belongs to whom. Whatever a decision rests on is read again when it is
//! made: the graph says only where to look.

mod collect;
mod graph;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::{Interest, Object};
use futures_util::future::join_all;
use tokio::sync::Notify;

use self::graph::{Graph, Item, Uid};
use super::agent::Agent;
use super::metadata::{is_deleting, mentions, metadata};
use super::queue::Queue;
use crate::follow::{Seen, follow};
use crate::registry::Served;
use crate::status::ApiResult;

/// Objects that are dealt with at a time.
const WORKERS: usize = 32;
/// Time given to the followers of all tables, so that an owner is let go only when dependents that were there before
/// are known.
const SETTLE: Duration = Duration::from_millis(20);

struct Collector {
    agent: Rc<Agent>,
    tables: Vec<Arc<Served>>,
    graph: RefCell<Graph>,
    queue: Queue<Item>,
    /// Tables of which not every object was seen yet.
    unseen: Cell<usize>,
    complete: Notify,
}

/// Collects garbage.
pub async fn run(agent: Rc<Agent>) -> ApiResult<()> {
    let tables = agent.registry.resources.stored();
    let tables: Vec<Arc<Served>> = tables.into_iter().filter(|served| is_followed(served)).collect();
    let unseen = Cell::new(tables.len());
    let queue = Queue::new(&agent.registry.metrics, "garbage_collector_attempt_to_delete");
    let collector = Collector { agent, tables, graph: RefCell::default(), queue, unseen, complete: Notify::new() };
    let followers = (0..collector.tables.len()).map(|table| collector.follow(table));
    tokio::join!(join_all(followers), async {
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
    async fn follow(&self, table: usize) {
        let mut listed = false;
        let followed = self.agent.registry.table(&self.tables[table]);
        follow(&followed, Interest::default(), |seen| match seen {
            Seen::Begin => self.graph.borrow_mut().forget_table(table),
            Seen::Listed if listed => self.review(),
            Seen::Listed => {
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

/// The UID in the metadata of an object: no member before it can hold the same text.
fn uid(object: &Object) -> Option<&str> {
    const MEMBER: &[u8] = b"\"uid\":\"";
    let metadata = object.metadata();
    let start = metadata.windows(MEMBER.len()).position(|window| window == MEMBER)? + MEMBER.len();
    let length = metadata[start..].iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&metadata[start..start + length]).ok()
}
