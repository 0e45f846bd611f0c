//! Watchers: each resumes from the last revision that it received, or again from an earlier one, on any host.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::super::changes::is_member;
use super::super::draw;
use super::super::history::{Delivery, End, EventKind, Key, Scope, Seen, Session, Start, Stream, Table};
use super::{Traffic, objects};
use crate::{ChangeKind, Interest, Revision, Selection, Store};

/// The interval between bookmarks to an idle watcher.
const BOOKMARK_INTERVAL: Duration = Duration::from_millis(100);
/// How long a host may take to reach the revision at which a watcher begins.
const REACH: Duration = Duration::from_secs(2);

/// One session in this many begins at an earlier revision of the watcher, like a client that has stored only that.
const BACK_ONE_IN: u64 = 5;

/// The scope of a watcher, and the point at which it begins.
pub(super) struct Plan {
    scope: Scope,
    start: Start,
}

/// Returns one plan for all namespaces, one for a single one, and one that begins with the present objects, again and
/// again.
pub(super) fn plans(table: Table, start: Start) -> Vec<Plan> {
    let of = |namespace: Option<&str>, start| {
        let scope = Scope { table, namespace: namespace.map(str::to_owned) };
        Plan { scope, start }
    };
    vec![of(None, start), of(Some(objects::NAMESPACES[0]), start), of(None, Start::InitialEvents)]
}

/// A message of a host to a watcher.
enum WatchMessage {
    Event(EventKind, Key, Seen),
    Bookmark(u64, bool),
    Expired,
}

/// Watches until everything was received.
pub(super) async fn watch(traffic: Traffic, plan: Plan) {
    let Plan { scope, mut start } = plan;
    let begins_anew = matches!(start, Start::InitialEvents);
    let mut stream = Stream { scope, sessions: Vec::new(), is_caught_up: false };
    let number = {
        let mut history = traffic.history.borrow_mut();
        history.streams.push(stream.clone());
        history.streams.len() - 1
    };
    while !stream.is_caught_up {
        let session = traffic.follow(&stream.scope, start).await;
        let resumed = resume(&session);
        start = match session.end {
            End::Expired => Start::InitialEvents,
            End::Closed if begins_anew && draw::once_in(2) => Start::InitialEvents,
            End::Closed => resumed.unwrap_or(start),
        };
        let last = traffic.last.borrow().get(&stream.scope.table).copied();
        let began = match session.start {
            Start::After { revision, .. } => Some(revision),
            Start::InitialEvents => None,
        };
        let last_delivered = session.deliveries.iter().map(revision_of).max().max(began);
        stream.is_caught_up =
            last.is_some_and(|last| last_delivered.is_some_and(|last_delivered| last_delivered >= last));
        stream.sessions.push(session);
        if draw::once_in(BACK_ONE_IN) {
            start = resume_within(draw::one_of(&stream.sessions)).unwrap_or(start);
        }
        traffic.history.borrow_mut().streams[number] = stream.clone();
        traffic.pause(1..50).await;
    }
}

/// Returns the start of a session that resumes the given one; `None` when that has not received a full initial state.
fn resume(session: &Session) -> Option<Start> {
    let begun = |delivery: &Delivery| matches!(delivery, Delivery::Bookmark { ends_initial: true, .. });
    if matches!(session.start, Start::InitialEvents) && !session.deliveries.iter().any(begun) {
        return None;
    }
    let revision = session.deliveries.iter().map(revision_of).max()?;
    Some(Start::After { revision, delivered: session.told_at })
}

/// Returns the start of a session that resumes the given one at a random earlier point.
fn resume_within(session: &Session) -> Option<Start> {
    let begun = match session.start {
        Start::After { .. } => 0,
        Start::InitialEvents => {
            let ends = |delivery: &Delivery| matches!(delivery, Delivery::Bookmark { ends_initial: true, .. });
            session.deliveries.iter().position(ends)?
        }
    };
    let deliveries = &session.deliveries[begun..];
    let last = deliveries.get(draw::below(deliveries.len().max(1) as u64) as usize)?;
    Some(Start::After { revision: revision_of(last), delivered: session.told_at })
}

fn revision_of(delivery: &Delivery) -> u64 {
    match delivery {
        Delivery::Event { seen, .. } => seen.revision,
        Delivery::Bookmark { revision, .. } => *revision,
    }
}

impl Traffic {
    /// Watches for some time, in one session.
    async fn follow(&self, scope: &Scope, start: Start) -> Session {
        let (member, invoked) = (self.anywhere(), self.now());
        let mut session = Session { member, start, invoked, told_at: 0, deliveries: Vec::new(), end: End::Closed };
        let (sender, mut messages) = mpsc::unbounded_channel();
        let (served, client) = (scope.clone(), self.clients[member].clone());
        // The host stops serving a watch when the receiver is dropped.
        let serving = client.ask(move |store| serve(store, served, start, sender));
        tokio::pin!(serving);
        let until = Instant::now() + Duration::from_millis(draw::within(50..3_000));
        let listening = async {
            while let Ok(Some(next)) = tokio::time::timeout_at(until, messages.recv()).await {
                let at = self.now();
                session.told_at = at;
                match next {
                    WatchMessage::Event(kind, key, seen) => {
                        session.deliveries.push(Delivery::Event { kind, key, seen, at })
                    }
                    WatchMessage::Bookmark(revision, ends_initial) => {
                        session.deliveries.push(Delivery::Bookmark { revision, ends_initial });
                    }
                    WatchMessage::Expired => session.end = End::Expired,
                }
            }
        };
        tokio::select! {
            biased;
            () = listening => {}
            _ = &mut serving => {}
        }
        session
    }
}

/// Serves one session on a host, until the receiver is dropped.
async fn serve(store: Store, scope: Scope, start: Start, sender: mpsc::UnboundedSender<WatchMessage>) {
    if !is_member(&store) {
        return;
    }
    let table = store.table(&objects::store_table(scope.table));
    let after = match start {
        Start::After { revision, .. } => {
            let revision = Revision::new(revision);
            if store.reach(&table, revision, Instant::now() + REACH).await.is_err() {
                return;
            }
            revision
        }
        Start::InitialEvents => {
            let Some(revision) = begin(&store, &scope, &sender).await else { return };
            revision
        }
    };
    let interest = Interest { namespace: scope.namespace.as_deref().map(Into::into), ..Interest::default() };
    let mut subscription = match table.subscribe(interest, after) {
        Ok(subscription) => subscription,
        Err(_) => return drop(sender.send(WatchMessage::Expired)),
    };
    let mut marked = after;
    while !sender.is_closed() && is_member(&store) {
        let waited = timeout(BOOKMARK_INTERVAL, subscription.changed()).await;
        let mut changes = Vec::new();
        if waited.is_ok() && subscription.read(8, &mut changes).is_err() {
            return drop(sender.send(WatchMessage::Expired));
        }
        for change in changes {
            let kind = match change.kind() {
                ChangeKind::Added => EventKind::Added,
                ChangeKind::Modified => EventKind::Modified,
                ChangeKind::Deleted => EventKind::Deleted,
            };
            let (key, seen) = objects::read(scope.table, change.object());
            let _ = sender.send(WatchMessage::Event(kind, key, seen));
        }
        let position = subscription.position();
        if position > marked {
            marked = position;
            let _ = sender.send(WatchMessage::Bookmark(position.get(), false));
        }
    }
}

/// Sends the present objects. Returns their revision; `None` when they cannot be read.
async fn begin(store: &Store, scope: &Scope, sender: &mpsc::UnboundedSender<WatchMessage>) -> Option<Revision> {
    let table = store.table(&objects::store_table(scope.table));
    store.barrier(&table).await.ok()?;
    let snapshot = table.snapshot();
    let (mut cursor, mut present) = (snapshot.cursor(Selection::default(), None), Vec::new());
    while cursor.read(8, &mut present).ok()? {}
    for object in present {
        let (key, seen) = objects::read(scope.table, &object);
        if scope.holds(&key) {
            let _ = sender.send(WatchMessage::Event(EventKind::Added, key, seen));
        }
    }
    let _ = sender.send(WatchMessage::Bookmark(snapshot.revision().get(), true));
    Some(snapshot.revision())
}
