//! Tables that are divided under traffic, through crashes, and while leaders change.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::time::Instant;

use super::division_traffic::{Acknowledged, Traffic, check_history, keep_writing, list, pods, put};
use crate::disk::simulated::SimulatedDisk;
use crate::machine::Machine;
use crate::replica::test_cluster::{self, Cluster, PATIENCE};
use crate::{Expectation, Options, Outcome, Revision, Store};

fn options() -> Options {
    let on_fatal: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    Options { wal_segment_bytes: 4 << 20, on_fatal, ..Options::new("/store") }
}

async fn open(disk: &SimulatedDisk) -> Store {
    Store::open_on(Machine::with_disk(Arc::new(disk.clone())), None, options()).await.unwrap()
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

/// Divides a table under traffic. Returns whether no write waited long, compared with the divisions.
async fn writes_go_on_during_divisions() -> bool {
    let store = open(&SimulatedDisk::default()).await;
    fill(&store, 3_000).await;
    let traffic = Traffic::begin(std::slice::from_ref(&store));
    let mut longest = Duration::ZERO;
    for (shards, groups) in [(8, 8), (3, 8), (3, 8), (1, 8), (12, 12)] {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let began = Instant::now();
        test_cluster::divide(&store, shards).await;
        eprintln!("{shards} shards after {:?}", began.elapsed());
        longest = longest.max(began.elapsed());
        assert_eq!(store.shards()[0].groups.len(), usize::from(shards));
        assert_eq!(store.cluster().groups.len(), groups + 1);
    }
    tokio::time::sleep(Duration::from_millis(150)).await;
    let slowest = traffic.end(&store).await;
    eprintln!("the slowest write took {slowest:?}");
    assert!(matches!(store.divide(&pods(), 0).await, Err(crate::DivideError::Shards(_))));
    store.shutdown().await;
    // On a busy machine everything takes longer.
    slowest < Duration::from_secs(1).max(longest / 2)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_divided_under_traffic() {
    test_cluster::undisturbed("writes go on during divisions", writes_go_on_during_divisions).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_divided_table_is_complete_after_a_restart() {
    let disk = SimulatedDisk::default();
    let store = open(&disk).await;
    store.table(&pods()).index("spec.nodeName");
    let since = store.table(&pods()).revision();
    fill(&store, 500).await;
    test_cluster::divide(&store, 4).await;
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
    let began = Instant::now();
    test_cluster::divide(&store, 3).await;
    let table = store.table(&pods());
    let former = table.divisions()[0].clone();
    let kept = former.shards()[0].shard.keyspace_len();
    assert!(kept == 300 || began.elapsed() >= short.history_age_max, "only {kept} within the history window");
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
    test_cluster::divide(&store, 2).await;
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
        test_cluster::divide(&store, 5).await;
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
        test_cluster::lead(&stores[0], "c", || *stores[2].leadership().borrow()).await;
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
