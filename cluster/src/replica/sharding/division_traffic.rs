//! Clients that use a table while it is divided, and check what they see.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::replica::test_cluster::{PATIENCE, catch_up};
use crate::{
    Change, ChangeKind, Draft, Expectation, Interest, Key, Layout, Mutation, Outcome, ReadError, Revision, Selection,
    Snapshot, SnapshotError, Store, Table, TableId, Terms, Write, WriteError,
};

pub(super) fn pods() -> TableId {
    TableId::new("pods")
}

pub(super) fn put(key: &str, expectation: Expectation, bytes: usize) -> Write {
    let terms = Terms::new(vec![], vec![("spec.nodeName".into(), "n1".into())]);
    let draft = Draft { bytes: vec![b'0'; bytes], layout: Layout::default(), terms, ..Draft::default() };
    Write { table: pods(), key: Key::new(key), expectation, mutation: Mutation::Put(draft) }
}

fn deletion(key: &str, revision: Revision) -> Write {
    let expectation = Expectation::Revision(revision);
    Write { table: pods(), key: Key::new(key), expectation, mutation: Mutation::Delete }
}

/// How long a visible change may take to reach the history, on a busy machine.
const RECORDING_TIME: Duration = PATIENCE;

/// The last answer that a writer received for each key: the revision, and whether the object exists.
pub(super) type Acknowledged = Arc<Mutex<BTreeMap<String, (Revision, bool)>>>;

/// Writers, readers, pagers and watchers that run until they are stopped.
pub(super) struct Traffic {
    stopped: Arc<AtomicBool>,
    acknowledged: Acknowledged,
    /// The longest time that a write took.
    slowest: Arc<Mutex<Duration>>,
    tasks: Vec<JoinHandle<usize>>,
    watchers: Vec<JoinHandle<Vec<Arc<Change>>>>,
    since: Revision,
}

impl Traffic {
    /// Starts to write to some stores, in turn, and to read from all of them.
    pub(super) fn begin(stores: &[Store]) -> Traffic {
        let since = stores.iter().map(|store| store.table(&pods()).revision()).min().unwrap();
        let (stopped, acknowledged, slowest) = (Arc::default(), Acknowledged::default(), Arc::default());
        let mut traffic = Traffic { stopped, acknowledged, slowest, tasks: Vec::new(), watchers: Vec::new(), since };
        for number in 0..6 {
            let store = stores[number % stores.len()].clone();
            let (stopped, acknowledged, slowest) =
                (traffic.stopped.clone(), traffic.acknowledged.clone(), traffic.slowest.clone());
            traffic.tasks.push(tokio::spawn(keep_writing(
                store,
                format!("w/{number}"),
                stopped,
                acknowledged,
                slowest,
            )));
        }
        for store in stores {
            let stopped = traffic.stopped.clone();
            traffic.tasks.push(tokio::spawn(keep_reading(
                store.clone(),
                stopped.clone(),
                traffic.acknowledged.clone(),
            )));
            traffic.tasks.push(tokio::spawn(keep_paging(store.clone(), stopped.clone())));
            traffic.watchers.push(tokio::spawn(keep_watching(store.clone(), stopped, since)));
        }
        traffic
    }

    /// Stops the traffic, and checks its answers against the history of a store. Returns the longest time that a write
    /// took.
    pub(super) async fn end(self, store: &Store) -> Duration {
        self.stopped.store(true, Ordering::SeqCst);
        for task in self.tasks {
            assert!(task.await.unwrap() > 0, "every task got something done");
        }
        let table = store.table(&pods());
        catch_up(store, &table).await;
        let changes = table.changes(self.since, usize::MAX).unwrap();
        check_history(&changes);
        for watcher in self.watchers {
            let seen = watcher.await.unwrap();
            assert!(!seen.is_empty());
            let revisions = |changes: &[Arc<Change>]| changes.iter().map(|c| c.revision()).collect::<Vec<_>>();
            assert_eq!(revisions(&seen), revisions(&changes)[..seen.len()], "each change once, in order");
            check_history(&seen);
        }
        for (key, (revision, present)) in self.acknowledged.lock().iter() {
            let live = table.get(key).map(|object| object.revision());
            assert_eq!(live, present.then_some(*revision), "{key}");
        }
        *self.slowest.lock()
    }
}

/// Checks that every change names the version that the previous change of the same key left.
pub(super) fn check_history(changes: &[Arc<Change>]) {
    assert!(changes.windows(2).all(|pair| pair[0].revision() < pair[1].revision()));
    let mut last: BTreeMap<&Key, (Revision, bool)> = BTreeMap::new();
    for change in changes {
        let key = change.object().key();
        let previous = change.previous().map(|previous| previous.revision());
        if let Some((revision, present)) = last.get(key) {
            assert_eq!(previous, present.then_some(*revision), "what {key} was before {}", change.revision());
        }
        last.insert(key, (change.revision(), change.kind() != ChangeKind::Deleted));
    }
}

pub(super) async fn keep_writing(
    store: Store,
    key: String,
    stopped: Arc<AtomicBool>,
    acknowledged: Acknowledged,
    slowest: Arc<Mutex<Duration>>,
) -> usize {
    let mut count = 0;
    while !stopped.load(Ordering::SeqCst) {
        let last = acknowledged.lock().get(&key).copied().filter(|(_, present)| *present);
        let next = match last {
            Some((revision, _)) if count % 5 == 4 => deletion(&key, revision),
            Some((revision, _)) => put(&key, Expectation::Revision(revision), 100 + count * 37 % 3000),
            None => put(&key, Expectation::Absent, 400),
        };
        let began = Instant::now();
        match store.write(next).await {
            Ok(Outcome::Committed { object, .. }) => {
                let took = began.elapsed();
                let mut slowest = slowest.lock();
                *slowest = slowest.max(took);
                acknowledged.lock().insert(key.clone(), (object.revision(), !object.is_tombstone()));
                count += 1;
            }
            Ok(Outcome::Conflict { current }) => panic!("nobody else writes {key}: {last:?} {current:?}"),
            Err(WriteError::Closed) => return count.max(1),
            Err(WriteError::Unavailable) => {} // no leader was found in time, as it happens on a busy machine
            Err(error) => panic!("{key}: {error}"),
        }
    }
    count
}

/// Checks again and again that a consistent read shows every write that was acknowledged before it.
async fn keep_reading(store: Store, stopped: Arc<AtomicBool>, acknowledged: Acknowledged) -> usize {
    let table = store.table(&pods());
    let mut count = 0;
    let mut last = Revision::ZERO;
    while !stopped.load(Ordering::SeqCst) {
        let before = acknowledged.lock().clone();
        let revision = match store.barrier(&table).await {
            Ok(revision) => revision,
            Err(ReadError::Closed) => return count.max(1),
            Err(ReadError::Unavailable) => continue, // as for a write
            Err(error) => panic!("{error}"),
        };
        assert!(revision >= last, "{revision} after {last}");
        last = revision;
        let snapshot = table.snapshot_at(revision).unwrap();
        let all: BTreeMap<Key, Revision> = list(&snapshot, 100).into_iter().collect();
        assert_eq!(snapshot.count(&crate::Scope::All).unwrap(), all.len() as u64);
        for (key, (acknowledged, present)) in &before {
            let shown = all.get(key.as_str()).copied();
            let is_later = shown >= present.then_some(*acknowledged) || is_deleted(&table, key, *acknowledged);
            assert!(is_later, "{key} at {revision}: {shown:?}, and not {acknowledged}");
            if let Ok(live) = store.most_recent(&table, key).await {
                let live = live.map(|object| object.revision());
                // A read may show that an object is gone a moment before the history has the deletion.
                let until = Instant::now() + RECORDING_TIME;
                while live < present.then_some(*acknowledged) && !is_deleted(&table, key, *acknowledged) {
                    assert!(Instant::now() < until, "{key}: {live:?}, and not {acknowledged}");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
        count += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    count
}

/// Returns whether a key that existed at a revision was deleted after it.
fn is_deleted(table: &Table, key: &str, since: Revision) -> bool {
    let changes = table.changes_beside(key, since).unwrap();
    changes.iter().any(|change| change.kind() == ChangeKind::Deleted && change.object().key().as_str() == key)
}

pub(super) fn list(snapshot: &Snapshot, chunk: usize) -> Vec<(Key, Revision)> {
    let (mut objects, mut cursor) = (Vec::new(), snapshot.cursor(Selection::default(), None));
    while cursor.read(chunk, &mut objects).unwrap() {}
    objects.iter().map(|object| (object.key().clone(), object.revision())).collect()
}

/// Checks again and again that the pages of one revision, each resumed from the last key of the one before, make up the
/// list at that revision.
async fn keep_paging(store: Store, stopped: Arc<AtomicBool>) -> usize {
    let table = store.table(&pods());
    let mut count = 0;
    while !stopped.load(Ordering::SeqCst) {
        let whole = table.snapshot();
        let (revision, expected) = (whole.revision(), list(&whole, 64));
        drop(whole);
        let (mut paged, mut after) = (Vec::new(), None);
        loop {
            tokio::time::sleep(Duration::from_millis(3)).await;
            let mut page = Vec::new();
            let snapshot = match table.snapshot_at(revision) {
                Err(SnapshotError::Future(future)) => panic!("{revision} was there: {future}"),
                snapshot => snapshot.unwrap(),
            };
            let mut cursor = snapshot.cursor(Selection::default(), after);
            let more = cursor.read(1 + expected.len() / 6, &mut page).unwrap();
            after = page.last().map(|object| object.key().clone());
            paged.extend(page.iter().map(|object| (object.key().clone(), object.revision())));
            if !more || after.is_none() {
                break;
            }
        }
        assert_eq!(paged, expected, "pages of {revision}");
        count += 1;
    }
    count
}

/// Follows all changes, and resumes now and then from the last change or from a bookmark.
async fn keep_watching(store: Store, stopped: Arc<AtomicBool>, since: Revision) -> Vec<Arc<Change>> {
    let table = store.table(&pods());
    let mut seen: Vec<Arc<Change>> = Vec::new();
    let mut subscription = table.subscribe(Interest::default(), since).unwrap();
    for round in 0_usize.. {
        if tokio::time::timeout(Duration::from_millis(5), subscription.changed()).await.is_ok() {
            subscription.read(1 + round % 40, &mut seen).unwrap();
        } else if stopped.load(Ordering::SeqCst)
            && seen.last().is_none_or(|last| last.revision() >= table.last_change())
        {
            break;
        }
        let (position, last) = (subscription.position(), seen.last().map_or(since, |last| last.revision()));
        assert!(position >= last, "a bookmark is never before what was told");
        if round % 13 == 12 {
            let from = if round % 2 == 0 { position } else { last };
            subscription = table.subscribe(Interest::default(), from).unwrap();
        }
    }
    seen
}
