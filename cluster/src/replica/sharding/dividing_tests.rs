//! Tables that are divided under traffic, through crashes, and while leaders change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::disk::simulated::SimulatedDisk;
use crate::machine::Machine;
use crate::replica::test_cluster::{self, Cluster, PATIENCE};
use crate::{
    Change, ChangeKind, Draft, Expectation, Interest, Key, Layout, Mutation, Options, Outcome, ReadError, Revision,
    Selection, Snapshot, SnapshotError, Store, Table, TableId, Terms, Write, WriteError,
};

fn pods() -> TableId {
    TableId::new("pods")
}

fn options() -> Options {
    let on_fatal: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    Options { wal_segment_bytes: 4 << 20, on_fatal, ..Options::new("/store") }
}

async fn open(disk: &SimulatedDisk) -> Store {
    Store::open_on(Machine::with_disk(Arc::new(disk.clone())), None, options()).await.unwrap()
}

fn put(key: &str, expectation: Expectation, bytes: usize) -> Write {
    let terms = Terms::new(vec![], vec![("spec.nodeName".into(), "n1".into())]);
    let draft = Draft { bytes: vec![b'0'; bytes], layout: Layout::default(), terms, ..Draft::default() };
    Write { table: pods(), key: Key::new(key), expectation, mutation: Mutation::Put(draft) }
}

fn deletion(key: &str, revision: Revision) -> Write {
    let expectation = Expectation::Revision(revision);
    Write { table: pods(), key: Key::new(key), expectation, mutation: Mutation::Delete }
}

async fn create(store: &Store, key: &str) -> Revision {
    match store.write(put(key, Expectation::Absent, 200)).await.unwrap() {
        Outcome::Committed { object, .. } => object.revision(),
        Outcome::Conflict { current } => panic!("{key} is there: {current:?}"),
    }
}

async fn fill(store: &Store, objects: usize) {
    let keys: Vec<String> = (0..objects).map(|number| format!("ns{}/o{number}", number % 7)).collect();
    futures_util::future::join_all(keys.iter().map(|key| create(store, key))).await;
}

/// How long a visible change may take to reach the history, on a busy machine.
const RECORDING_TIME: Duration = Duration::from_secs(5);

/// The last answer that a writer received for each key: the revision, and whether the object exists.
type Acknowledged = Arc<Mutex<BTreeMap<String, (Revision, bool)>>>;

/// Writers, readers, pagers and watchers that run until they are stopped.
struct Traffic {
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
    fn begin(stores: &[Store]) -> Traffic {
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
    async fn end(self, store: &Store) -> Duration {
        self.stopped.store(true, Ordering::SeqCst);
        for task in self.tasks {
            assert!(task.await.unwrap() > 0, "every task got something done");
        }
        let table = store.table(&pods());
        store.barrier(&table).await.unwrap();
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
fn check_history(changes: &[Arc<Change>]) {
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

async fn keep_writing(
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

fn list(snapshot: &Snapshot, chunk: usize) -> Vec<(Key, Revision)> {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_divided_under_traffic() {
    let store = open(&SimulatedDisk::default()).await;
    fill(&store, 3_000).await;
    let traffic = Traffic::begin(std::slice::from_ref(&store));
    for (shards, groups) in [(8, 8), (3, 8), (3, 8), (1, 8), (12, 12)] {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let began = Instant::now();
        store.divide(&pods(), shards).await.unwrap();
        eprintln!("{shards} shards after {:?}", began.elapsed());
        assert_eq!(store.shards()[0].groups.len(), usize::from(shards));
        assert_eq!(store.cluster().groups.len(), groups + 1);
    }
    tokio::time::sleep(Duration::from_millis(150)).await;
    let slowest = traffic.end(&store).await;
    eprintln!("the slowest write took {slowest:?}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert!(matches!(store.divide(&pods(), 0).await, Err(crate::DivideError::Shards(_))));
    store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_divided_table_is_complete_after_a_restart() {
    let disk = SimulatedDisk::default();
    let store = open(&disk).await;
    store.table(&pods()).index("spec.nodeName");
    let since = store.table(&pods()).revision();
    fill(&store, 500).await;
    store.divide(&pods(), 4).await.unwrap();
    let last = create(&store, "ns/after").await;
    store.barrier(&store.table(&pods())).await.unwrap();
    let (all, changes) =
        (list(&store.table(&pods()).snapshot(), 100), store.table(&pods()).changes(since, 1_000).unwrap());
    for snapshots in [false, true] {
        let store = open(&disk.crash(|_, _| false)).await;
        let table = store.table(&pods());
        assert_eq!(store.barrier(&table).await.unwrap(), table.revision());
        assert!(table.revision() >= last && table.floor() <= since, "{since} {:?}", table.floor());
        assert!(list(&table.snapshot(), 100) == all);
        let again = table.changes(since, 1_000).unwrap();
        assert!(again.iter().map(|c| c.revision()).eq(changes.iter().map(|c| c.revision())));
        let at = changes[100].revision();
        assert_eq!(list(&table.snapshot_at(at).unwrap(), 100).len(), 101, "what there was before the change");
        if snapshots {
            assert!(!store.write(put("ns/after", Expectation::Absent, 20)).await.unwrap().is_committed());
        }
        store.shutdown().await;
    }
    store.write_snapshots().await.unwrap();
    store.shutdown().await;
    let store = open(&disk).await;
    store.barrier(&store.table(&pods())).await.unwrap();
    assert!(list(&store.table(&pods()).snapshot(), 100) == all);
    assert_eq!(store.table(&pods()).changes(since, 1_000).unwrap().len(), changes.len());
    store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_division_is_freed_after_the_history_window() {
    let disk = SimulatedDisk::default();
    let short = Options { history_age_max: Duration::from_secs(1), ..options() };
    let machine = || Machine::with_disk(Arc::new(disk.clone()));
    let store = Store::open_on(machine(), None, short.clone()).await.unwrap();
    fill(&store, 300).await;
    store.divide(&pods(), 3).await.unwrap();
    let table = store.table(&pods());
    let former = table.divisions()[0].clone();
    assert_eq!(former.shards()[0].shard.keyspace_len(), 300);
    let began = Instant::now();
    while former.shards()[0].shard.keyspace_len() > 0 {
        assert!(began.elapsed() < PATIENCE, "it keeps what nobody can ask for any more");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let all = list(&table.snapshot(), 100);
    assert!(all.len() == 300 && table.floor() <= table.revision());
    store.write_snapshots().await.unwrap();
    store.shutdown().await;
    let store = Store::open_on(machine(), None, short).await.unwrap();
    let table = store.table(&pods());
    store.barrier(&table).await.unwrap();
    assert!(list(&table.snapshot(), 100) == all);
    create(&store, "ns/after").await;
    store.divide(&pods(), 2).await.unwrap();
    assert_eq!(table.len(), 301);
    store.shutdown().await;
}

impl Outcome {
    fn is_committed(&self) -> bool {
        matches!(self, Outcome::Committed { .. })
    }
}

/// A stage of a division: its name, and whether a store is in it.
type Stage = (&'static str, fn(&Store) -> bool);

/// The stages at which stores are stopped, in order.
const STAGES: [Stage; 5] = [
    ("the next division is known", |store| store.shards().iter().any(|table| table.next.is_some())),
    ("some shard is being filled", |store| next(store, |stage| stage.filled.step > 0)),
    ("the old division is ending", |store| store.registry().map().tables.values().any(|placement| placement.ending)),
    ("some shard has ended", |store| {
        let divisions = store.table(&pods()).divisions();
        divisions[0].shards().iter().any(|placed| placed.shard.stage().ended().is_some())
    }),
    ("some shard is open", |store| next(store, |stage| stage.opened.is_some())),
];

fn next(store: &Store, holds: fn(&crate::table::stage::StageContent) -> bool) -> bool {
    let divisions = store.table(&pods()).divisions();
    let next = divisions.iter().skip(1).flat_map(|division| division.shards());
    next.map(|placed| placed.shard.stage().get()).any(|stage| holds(&stage))
}

/// Waits until a store is in a stage, or past it.
async fn until(store: &Store, (what, is_now): &Stage) {
    let began = Instant::now();
    let is_over = || store.shards().iter().any(|table| table.next.is_none());
    while !is_now(store) && !is_over() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_division_continues_after_a_crash_at_any_stage() {
    for (number, stage) in STAGES.iter().enumerate() {
        let disk = SimulatedDisk::default();
        let store = open(&disk).await;
        fill(&store, 400).await;
        let since = store.table(&pods()).revision();
        let (stopped, acknowledged) = (Arc::new(AtomicBool::default()), Acknowledged::default());
        let writer = keep_writing(store.clone(), "w/0".into(), stopped.clone(), acknowledged.clone(), Arc::default());
        let writer = tokio::spawn(writer);
        let dividing = store.clone();
        let dividing = tokio::spawn(async move { drop(dividing.divide(&pods(), 5).await) });
        until(&store, stage).await;
        let acknowledged = acknowledged.lock().clone();
        let mut sectors = number;
        let after = disk.crash(|_, _| {
            sectors += 1;
            sectors % 3 == 0
        });
        [writer.abort_handle(), dividing.abort_handle()].iter().for_each(|task| task.abort());
        store.shutdown().await;

        let store = open(&after).await;
        let table = store.table(&pods());
        store.divide(&pods(), 5).await.unwrap();
        assert_eq!(store.shards()[0].groups.len(), 5);
        store.barrier(&table).await.unwrap();
        assert!(table.len() >= 400, "{}: {}", stage.0, table.len());
        let changes = table.changes(since, usize::MAX).unwrap();
        check_history(&changes);
        for (key, (revision, _)) in acknowledged {
            let known = changes.iter().any(|change| change.revision() == revision);
            assert!(known, "{}: {key} at {revision} was acknowledged", stage.0);
        }
        let current = table.get("w/0").map(|object| object.revision());
        let expectation = current.map_or(Expectation::Absent, Expectation::Revision);
        assert!(store.write(put("w/0", expectation, 100)).await.unwrap().is_committed(), "{}", stage.0);
        store.barrier(&table).await.unwrap();
        assert_eq!(list(&table.snapshot(), 50).len() as u64, table.len());
        store.shutdown().await;
    }
}

/// Divides the pods under traffic, and stops the leader of the default group at each stage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_divided_although_leaders_stop_at_any_stage() {
    for (number, stage) in STAGES.iter().enumerate() {
        let cluster = Cluster::new(&["a", "b", "c"], 0);
        let stores = cluster.open_all().await;
        let traffic = Traffic::begin(&stores[..2]);
        // The traffic uses two of the stores; the third one leads and is stopped.
        stores[0].transfer(None, "c").await.unwrap();
        test_cluster::until("c leads", || *stores[2].leadership().borrow()).await;
        let dividing = stores[0].clone();
        let dividing = tokio::spawn(async move { dividing.divide(&pods(), 4).await });
        until(&stores[number % 3], stage).await;
        let mut stores = stores;
        stores.pop().unwrap().shutdown().await;
        dividing.await.unwrap().unwrap();
        let c = cluster.open("c").await;
        assert!([&stores[0], &c].iter().all(|store| store.shards()[0].groups.len() == 4));
        let slowest = traffic.end(&c).await;
        eprintln!("{}: the slowest write took {slowest:?}", stage.0);
        stores.push(c);
        futures_util::future::join_all(stores.into_iter().map(Store::shutdown)).await;
    }
}
