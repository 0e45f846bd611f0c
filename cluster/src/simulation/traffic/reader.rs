//! Readers: of objects, and of whole tables page by page; consistent reads, or the state of one host.

use tokio::time::Instant;

use super::super::changes::is_member;
use super::super::draw;
use super::super::history::{Interval, List, Scope, Seen, Table};
use super::{PATIENCE, Traffic, objects};
use crate::{Key, Revision, Selection};

/// One page of a list.
struct ListPage {
    revision: u64,
    items: Vec<(super::super::history::Key, Seen)>,
    /// The key after which the next page begins; `None` at the end.
    after: Option<Key>,
}

/// The number of objects in a page.
const PAGE: usize = 3;

/// Reads objects of a table until the traffic ends.
pub(super) async fn read(traffic: Traffic, table: Table) {
    while !traffic.is_over.get() {
        let is_recent = !draw::once_in(3);
        traffic.get(traffic.anywhere(), &objects::any_key(table), is_recent).await;
        traffic.rest(1..30).await;
    }
}

/// Lists a table until the traffic ends.
pub(super) async fn list(traffic: Traffic, table: Table) {
    while !traffic.is_over.get() {
        let is_recent = !draw::once_in(3);
        let host = traffic.anywhere();
        traffic.list(host, table, is_recent, false).await;
        traffic.rest(1..60).await;
    }
}

/// Lists a table on a host at the end, and records the revision up to which watchers must receive changes. Records
/// nothing if the host does not answer.
pub(super) async fn conclude(traffic: Traffic, host: usize, table: Table) {
    let Some(revision) = traffic.list(host, table, true, true).await else { return };
    let mut last = traffic.last.borrow_mut();
    let known = last.entry(table).or_default();
    *known = revision.max(*known);
}

impl Traffic {
    /// Lists a table. Returns the revision of the list; `None` unless every page was answered.
    async fn list(&self, host: usize, table: Table, is_recent: bool, is_final: bool) -> Option<u64> {
        let first = self.ask(host, move |store| page(store, table, None, is_recent)).await;
        let (Interval { invoked, mut returned }, Ok(Some(first))) = first else { return None };
        let (mut revisions, mut items, mut after) = (vec![first.revision], first.items, first.after);
        while let Some(from) = after.take() {
            self.pause(1..20).await;
            // Any host can serve the next page.
            let host = if draw::once_in(2) || is_final { host } else { self.anywhere() };
            let at = Some((Revision::new(revisions[0]), from));
            let (at, answer) = self.ask(host, move |store| page(store, table, at, false)).await;
            let page = answer.ok().flatten()?;
            revisions.push(page.revision);
            items.extend(page.items);
            (after, returned) = (page.after, at.returned);
        }
        let revision = revisions[0];
        let (scope, at) = (Scope { table, namespace: None }, Interval { invoked, returned });
        self.history.borrow_mut().lists.push(List { scope, at, is_recent, revisions, items, is_final });
        Some(revision)
    }
}

/// Reads one page of a table: the first, or the one after a key at a revision. `None` when the host cannot serve it.
async fn page(store: crate::Store, table: Table, from: Option<(Revision, Key)>, is_recent: bool) -> Option<ListPage> {
    if !is_member(&store) {
        return None;
    }
    let read = store.table(&objects::store_table(table));
    let (snapshot, after) = match from {
        None => {
            match is_recent {
                true => drop(store.barrier(&read).await.ok()?),
                false => store.wait_for_last_change(&read).await,
            }
            (read.snapshot(), None)
        }
        Some((revision, key)) => {
            store.reach(&read, revision, Instant::now() + PATIENCE / 2).await.ok()?;
            (read.snapshot_at(revision).ok()?, Some(key))
        }
    };
    let mut cursor = snapshot.cursor(Selection::default(), after);
    let mut objects = Vec::new();
    let mut is_more = true;
    while is_more && objects.len() < PAGE {
        is_more = cursor.read(PAGE - objects.len(), &mut objects).ok()?;
    }
    let after = objects.last().filter(|_| is_more).map(|object| object.key().clone());
    let items = objects.iter().map(|object| objects::read(table, object)).collect();
    Some(ListPage { revision: snapshot.revision().get(), items, after })
}
