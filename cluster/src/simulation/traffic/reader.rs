//! Readers: objects, and whole tables page by page, most recent or as a host has them.

use tokio::time::Instant;

use super::super::draw;
use super::super::history::{Interval, List, Scope, Seen, Table};
use super::super::reform::is_member;
use super::{PATIENCE, Traffic, objects};
use crate::{Key, Revision, Selection};

/// What one page is.
struct Page {
    revision: u64,
    items: Vec<(super::super::history::Key, Seen)>,
    /// Where the next begins, if there is one.
    after: Option<Key>,
}

/// Objects of a page.
const PAGE: usize = 3;

/// Reads objects of a table, until there is to be no more traffic.
pub(super) async fn read(traffic: Traffic, table: Table) {
    while !traffic.is_over.get() {
        let is_recent = !draw::once_in(3);
        traffic.get(traffic.anywhere(), &objects::any_key(table), is_recent).await;
        traffic.rest(1..30).await;
    }
}

/// Lists a table, until there is to be no more traffic.
pub(super) async fn list(traffic: Traffic, table: Table) {
    while !traffic.is_over.get() {
        let is_recent = !draw::once_in(3);
        let host = traffic.anywhere();
        traffic.list(host, table, is_recent, false).await;
        traffic.rest(1..60).await;
    }
}

/// Lists a table on a host once all is over, until it answers, and says how far there is something to be told of.
pub(super) async fn conclude(traffic: Traffic, host: usize, table: Table) {
    let Some(revision) = traffic.list(host, table, true, true).await else { return };
    let mut last = traffic.last.borrow_mut();
    let known = last.entry(table).or_default();
    *known = revision.max(*known);
}

impl Traffic {
    /// Lists a table; the revision of the list, when there was an answer to every page.
    async fn list(&self, host: usize, table: Table, is_recent: bool, is_final: bool) -> Option<u64> {
        let first = self.ask(host, move |store| page(store, table, None, is_recent)).await;
        let (Interval { invoked, mut returned }, Ok(Some(first))) = first else { return None };
        let (mut revisions, mut items, mut after) = (vec![first.revision], first.items, first.after);
        while let Some(from) = after.take() {
            self.pause(1..20).await;
            // Anybody can go on where another has begun.
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

/// One page of a table: the first, or what follows a key at a revision.
async fn page(store: crate::Store, table: Table, from: Option<(Revision, Key)>, is_recent: bool) -> Option<Page> {
    if !is_member(&store) {
        return None;
    }
    let read = store.table(&objects::store_table(table));
    let (snapshot, after) = match from {
        None => {
            match is_recent {
                true => drop(store.barrier(&read).await.ok()?),
                false => store.settled(&read).await,
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
    Some(Page { revision: snapshot.revision().get(), items, after })
}
