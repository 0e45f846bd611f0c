//! The whole store on a disk that crashes, fills up and fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::chance::Random;
use crate::clock::WallClock;
use crate::disk::Disk as _;
use crate::disk::simulated::SimulatedDisk;
use crate::limits::LOCAL_READ_WAIT;
use crate::machine::Machine;
use crate::shard_map::DEFAULT_GROUP;
use crate::{
    ChangeKind, Draft, Expectation, Interest, Key, Layout, Mutation, Options, Outcome, Revision, Store, TableId,
    TableOptions, Write, WriteError,
};

/// How long tests wait for an event that must happen, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn options() -> Options {
    let on_fatal: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    Options { wal_segment_bytes: 256 << 10, on_fatal, ..Options::new("/store") }
}

async fn open(disk: &SimulatedDisk, options: Options) -> Store {
    Store::open_on(Machine::with_disk(Arc::new(disk.clone())), None, options).await.unwrap()
}

fn write(key: &str, expectation: Expectation, bytes: usize) -> Write {
    let draft = Draft { bytes: vec![b'0'; bytes], layout: Layout::default(), ..Draft::default() };
    Write { table: TableId::new("pods"), key: Key::new(key), expectation, mutation: Mutation::Put(draft) }
}

fn deletion(key: &str, revision: Revision) -> Write {
    let expectation = Expectation::Revision(revision);
    Write { table: TableId::new("pods"), key: Key::new(key), expectation, mutation: Mutation::Delete }
}

/// The answers to each writer: the revisions of its key in order, and whether each was a deletion.
type Acknowledged = Arc<Mutex<BTreeMap<String, Vec<(Revision, bool)>>>>;

/// Writes one key again and again, until the store is gone.
async fn keep_writing(store: Store, key: String, acknowledged: Acknowledged) {
    let mut last: Option<Revision> = store.table(&TableId::new("pods")).get(&key).map(|object| object.revision());
    for number in 0.. {
        let next = match last {
            Some(revision) if number % 5 == 4 => deletion(&key, revision),
            Some(revision) => write(&key, Expectation::Revision(revision), 100 + number * 37 % 3000),
            None => write(&key, Expectation::Absent, 400),
        };
        match store.write(next).await {
            Ok(Outcome::Committed { object, .. }) => {
                last = (!object.is_tombstone()).then(|| object.revision());
                let write = (object.revision(), object.is_tombstone());
                acknowledged.lock().entry(key.clone()).or_default().push(write);
            }
            Ok(Outcome::Conflict { .. }) => panic!("nobody else writes {key}"),
            Err(_) => return,
        }
    }
}

/// Checks that every acknowledged write is in the history, which continues the earlier history without a gap.
fn check(store: &Store, since: Revision, acknowledged: &BTreeMap<String, Vec<(Revision, bool)>>) {
    let table = store.table(&TableId::new("pods"));
    let changes = table.changes(since, usize::MAX).unwrap();
    assert!(changes.windows(2).all(|pair| pair[0].revision() < pair[1].revision()));
    for (key, writes) in acknowledged {
        let of_key: Vec<(Revision, bool)> = changes
            .iter()
            .filter(|change| change.object().key().as_str() == key)
            .map(|change| (change.revision(), change.kind() == ChangeKind::Deleted))
            .collect();
        assert_eq!(&of_key[..writes.len().min(of_key.len())], writes, "what {key} was told of");
        // A write that was proposed and not acknowledged may have happened too: at most the one that was waiting.
        assert!(of_key.len() <= writes.len() + 1);
        let live = of_key.last().filter(|(_, deleted)| !deleted).map(|(revision, _)| *revision);
        assert_eq!(table.get(key).map(|object| object.revision()), live);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_write_is_lost_in_a_crash() {
    for seed in 1..=6_u64 {
        let mut random = Random::new(seed);
        let mut disk = SimulatedDisk::default();
        let (mut everything, mut since) = (BTreeMap::<String, Vec<(Revision, bool)>>::new(), None);
        for _ in 0..3 {
            let small_snapshots = Options { snapshot_log_bytes: 20_000, ..options() };
            let store = open(&disk, small_snapshots).await;
            let since = *since.get_or_insert_with(|| store.table(&TableId::new("pods")).revision());
            check(&store, since, &everything);
            let acknowledged = Acknowledged::default();
            let writers: Vec<_> = (0..6)
                .map(|writer| tokio::spawn(keep_writing(store.clone(), format!("ns/{writer}"), acknowledged.clone())))
                .collect();
            tokio::time::sleep(Duration::from_millis(1 + random.below(if seed % 2 == 0 { 60 } else { 1_400 }))).await;
            // Writes that were acknowledged before the power fails count. The disk keeps everything that was synced,
            // and any part of the rest.
            let writes = acknowledged.lock().clone();
            let after = disk.crash(|_, _| random.below(2) == 0);
            writers.iter().for_each(|writer| writer.abort());
            store.shutdown().await;
            // The store that crashed is compared by key: its last writes, which were not acknowledged, may be missing.
            let reopened = open(&after, options()).await;
            let table = reopened.table(&TableId::new("pods"));
            for (key, writes) in writes {
                everything.entry(key).or_default().extend(writes);
            }
            for change in table.changes(since, usize::MAX).unwrap() {
                let writes = everything.entry(change.object().key().to_string()).or_default();
                let revision = change.revision();
                if writes.last().is_none_or(|(last, _)| *last < revision) {
                    writes.push((revision, change.kind() == ChangeKind::Deleted));
                } else {
                    assert!(writes.iter().any(|(known, _)| *known == revision), "{revision} came from nowhere");
                }
            }
            check(&reopened, since, &everything);
            reopened.shutdown().await;
            disk = after;
        }
    }
}

/// A client that was told of a change and watches from there must see its own next writes, in whichever shard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_writes_have_larger_revisions_across_groups() {
    let machine = Machine {
        clock: WallClock::new(|| 1_790_000_000_000), // stands still, so that groups are not in order by chance
        ..Machine::with_disk(Arc::new(SimulatedDisk::default()))
    };
    let pods = TableId::new("pods");
    let mut options = Options { groups: 2, ..options() };
    options.tables.insert(pods.clone(), TableOptions { shards: Some(2), ..TableOptions::default() });
    let store = Store::open_on(machine, None, options).await.unwrap();
    let table = store.table(&pods);
    let group_number = |key: &str| table.write_shard(key).clock.group_number();
    let keys: Vec<String> = (0..64).map(|number| format!("ns/o{number}")).collect();
    let (later, earlier): (Vec<_>, Vec<_>) = keys.iter().partition(|key| group_number(key) == 1);
    let mut seen = Vec::new();
    for (first, second) in earlier.into_iter().zip(later) {
        let mut revisions = Vec::new();
        for key in [first, second] {
            let Outcome::Committed { object, .. } = store.write(write(key, Expectation::Absent, 100)).await.unwrap()
            else {
                panic!("nobody else writes {key}")
            };
            revisions.push(object.revision());
        }
        assert!(revisions[0] < revisions[1], "{first}, {second}: {revisions:?}");
        let mut watch = table.subscribe(Interest::default(), revisions[0]).unwrap();
        store.barrier(&table).await.unwrap();
        watch.changed().await;
        seen.clear();
        watch.read(10, &mut seen).unwrap();
        assert_eq!(seen.iter().map(|change| change.revision()).collect::<Vec<_>>(), revisions[1..]);
    }
    store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_and_nothing_else() {
    let disk = SimulatedDisk::default();
    disk.set_room(Some(700 << 10));
    let store = open(&disk, options()).await;
    let table = store.table(&TableId::new("pods"));
    let mut written = 0;
    let refused = loop {
        match store.write(write(&format!("ns/{written}"), Expectation::Absent, 10_000)).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1_000, "the disk never fills up");
    };
    assert_eq!(refused, WriteError::NoSpace);
    assert!(refused.is_definite() && written > 20);
    assert_eq!(table.len(), written);
    assert!(store.barrier(&table).await.is_ok(), "reads and the group go on");
    disk.set_room(Some(2 << 20));
    store.write(write("ns/last", Expectation::Absent, 10_000)).await.unwrap();
    store.shutdown().await;
    let store = open(&disk.crash(|_, _| false), options()).await;
    assert_eq!(store.table(&TableId::new("pods")).len(), written + 1);
    store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_without_room_is_tried_again() {
    let disk = SimulatedDisk::default();
    let store = open(&disk, Options { snapshot_log_bytes: 100_000, ..options() }).await;
    disk.set_room(Some(600 << 10)); // enough for the log, but not for a snapshot with all history
    let mut last = None;
    for _ in 0..40 {
        let expectation = last.map_or(Expectation::Absent, Expectation::Revision);
        match store.write(write("ns/a", expectation, 10_000)).await.unwrap() {
            Outcome::Committed { object, .. } => last = Some(object.revision()),
            Outcome::Conflict { current } => panic!("{current:?}"),
        }
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let snapshots = |disk: &SimulatedDisk| disk.files().iter().filter(|(path, _)| path.ends_with_snap()).count();
    assert_eq!(snapshots(&disk), 0);
    disk.set_room(None);
    let written = async {
        while snapshots(&disk) != 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.expect("a snapshot");
    store.write(write("ns/b", Expectation::Absent, 10_000)).await.unwrap();
    store.shutdown().await;
    let store = open(&disk, options()).await;
    assert_eq!(store.table(&TableId::new("pods")).len(), 2);
    store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unused_table_begins_where_the_log_began_even_after_a_snapshot() {
    let disk = SimulatedDisk::default();
    let store = open(&disk, options()).await;
    let begun = store.table(&TableId::new("pods")).floor();
    store.write(write("ns/a", Expectation::Absent, 100)).await.unwrap();
    store.write_snapshots().await.unwrap();
    store.shutdown().await;
    let store = open(&disk, options()).await;
    // A member with the complete log tells clients revisions since its beginning, with which they may come to this one.
    let unused = store.table(&TableId::new("secrets"));
    assert!(unused.floor() <= begun, "{} is above {begun}", unused.floor());
    assert!(unused.changes(begun, 1).unwrap().is_empty());
    store.shutdown().await;
}

/// Whether a file is a snapshot.
trait EndsWithSnap {
    fn ends_with_snap(&self) -> bool;
}

impl EndsWithSnap for std::path::PathBuf {
    fn ends_with_snap(&self) -> bool {
        self.extension().is_some_and(|extension| extension == "snap")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failed_sync_nothing_is_acknowledged() {
    let (disk, fatal) = (SimulatedDisk::default(), Arc::new(AtomicBool::default()));
    let flag = fatal.clone();
    let on_fatal: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(move |_| flag.store(true, Ordering::SeqCst));
    let store = open(&disk, Options { on_fatal, ..options() }).await;
    store.write(write("ns/a", Expectation::Absent, 100)).await.unwrap();
    disk.fail_sync_after(0);
    let unknown = store.write(write("ns/b", Expectation::Absent, 100)).await.unwrap_err();
    assert!(!unknown.is_definite() && fatal.load(Ordering::SeqCst));
    assert!(store.write(write("ns/c", Expectation::Absent, 100)).await.is_err());
    assert!(store.table(&TableId::new("pods")).get("ns/b").is_none());
    tokio::time::timeout(PATIENCE, store.shutdown()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_without_an_identity_file_is_refused() {
    let disk = SimulatedDisk::default();
    let store = open(&disk, options()).await;
    store.write(write("ns/a", Expectation::Absent, 100)).await.unwrap();
    store.shutdown().await;
    let member = std::path::Path::new("/store/member");
    disk.remove(member).unwrap();
    let files = disk.files();
    let opening = Store::open_on(Machine::with_disk(Arc::new(disk.clone())), None, options());
    let opened = tokio::time::timeout(PATIENCE, opening).await.expect("an answer");
    let refused = opened.err().expect("a refusal").to_string();
    assert!(refused.contains("/store/member"), "{refused}");
    assert_eq!(disk.files(), files);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_waits_until_clients_may_name_its_revision() {
    let idle = Options { history_age_max: Duration::from_secs(1), ..options() };
    let store = open(&SimulatedDisk::default(), idle).await;
    let table = store.table(&TableId::new("pods"));
    let outdated = async {
        while table.revision() >= table.horizon() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, outdated).await.expect("the history window of an idle table passes");

    // The group closes later than reads wait that need no majority.
    let (release, released) = oneshot::channel();
    let node = store.running().groups.get(DEFAULT_GROUP).unwrap().leader_client.node().clone();
    node.reading().hold_applying(released.map(drop)).await;
    store.renew_closed_revision(&table).await;
    assert!(table.revision() < table.horizon());
    let asked = table.horizon();
    let releasing = async {
        tokio::time::sleep(3 * LOCAL_READ_WAIT).await;
        release.send(()).unwrap();
    };
    store.barrier(&table).await.unwrap();
    let (renewed, ()) = tokio::join!(store.renew_expired_revision(&table), releasing);
    renewed.unwrap();
    assert!(table.revision() >= asked, "{}, {asked}", table.revision());
    store.shutdown().await;
}
