//! A reopened store has its earlier content, whatever its history is and wherever its log ends.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{self, join_all};

use crate::chance::Random;
use crate::disk::KeyWrapping;
use crate::disk::simulated::SimulatedDisk;
use crate::disk::simulated_keys::{Adding, contains};
use crate::machine::Machine;
use crate::{
    ChangeKind, Draft, Expectation, Interest, Key, Layout, Mutation, OpenError, Options, Outcome, Revision, Selection,
    Store, Table, TableId, TableOptions, Terms, WalError, Write,
};

const TABLES: [&str; 2] = ["pods", "leases"];

fn options() -> Options {
    let indexed = TableOptions { shards: None, indexes: vec!["spec.nodeName".into()] };
    let tables = [(TableId::new("pods"), indexed)].into();
    Options { wal_segment_bytes: 64 << 10, on_fatal: Arc::new(|_| {}), tables, ..Options::new("/store") }
}

async fn open(disk: &SimulatedDisk, options: Options) -> Result<Store, OpenError> {
    Store::open_on(Machine::with_disk(Arc::new(disk.clone())), None, options).await
}

/// A change, as the answer to its writer states it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Made {
    revision: Revision,
    key: String,
    /// The value; `None` when the object was deleted.
    bytes: Option<Vec<u8>>,
}

/// The changes of each table, by revision.
type History = BTreeMap<&'static str, Vec<Made>>;

fn live(history: &[Made]) -> BTreeMap<&str, &Made> {
    let mut live = BTreeMap::new();
    for made in history {
        match made.bytes {
            Some(_) => drop(live.insert(&*made.key, made)),
            None => drop(live.remove(&*made.key)),
        }
    }
    live
}

/// Makes random writes, several at a time: creates, changes, deletes, and conflicts.
async fn write_at_random(store: &Store, random: &mut Random, rounds: u64, history: &mut History) {
    for _ in 0..rounds {
        let table = TABLES[random.below(2) as usize];
        let known = history.entry(table).or_default();
        let mut writes: BTreeMap<String, Write> = BTreeMap::new();
        for _ in 0..=random.below(4) {
            let key = format!("ns{}/o{}", random.below(3), random.below(8));
            let current = live(known).get(&*key).map(|made| made.revision);
            let expectation = match random.below(10) {
                0 => Expectation::Revision(Revision::FIRST), // conflicts
                _ => current.map_or(Expectation::Absent, Expectation::Revision),
            };
            let terms = Terms::new(vec![], vec![("spec.nodeName".into(), format!("n{}", random.below(3)).into())]);
            let bytes = vec![b'0' + random.below(10) as u8; 20 + random.below(2_000) as usize];
            let draft = Draft { bytes, layout: Layout::default(), terms, ..Draft::default() };
            let deletes = current.is_some() && random.below(5) == 0;
            let mutation = if deletes { Mutation::Delete } else { Mutation::Put(draft) };
            let write = Write { table: TableId::new(table), key: Key::new(&key), expectation, mutation };
            writes.insert(key, write);
        }
        for outcome in join_all(writes.into_values().map(|write| store.write(write))).await {
            if let Outcome::Committed { object, .. } = outcome.unwrap() {
                let bytes = (!object.is_tombstone()).then(|| object.bytes().to_vec());
                known.push(Made { revision: object.revision(), key: object.key().to_string(), bytes });
            }
        }
        known.sort_by_key(|made| made.revision);
    }
}

/// Returns the changes after a revision, as a watcher from there receives them.
fn watched(table: &Arc<Table>, after: Revision) -> Vec<Made> {
    let mut subscription = table.subscribe(Interest::default(), after).unwrap();
    let mut changes = Vec::new();
    while subscription.read(7, &mut changes).unwrap() {}
    let made = |change: &Arc<crate::Change>| {
        let (object, is_deleted) = (change.object(), change.kind() == ChangeKind::Deleted);
        assert_eq!(object.is_tombstone(), is_deleted);
        let bytes = (!is_deleted).then(|| object.bytes().to_vec());
        Made { revision: change.revision(), key: object.key().to_string(), bytes }
    };
    changes.iter().map(made).collect()
}

/// Checks that a table shows exactly this history: the objects at every revision from its floor on, their counts, the
/// results of an index, and the changes since each revision.
fn check(table: &Arc<Table>, history: &[Made], stride: usize) {
    let floor = table.floor();
    let kept = history.partition_point(|made| made.revision <= floor);
    for upto in (kept..=history.len()).rev().step_by(stride) {
        let (before, after) = history.split_at(upto);
        let at = before.last().map_or(floor, |made| made.revision).max(floor);
        let expected = live(before);
        let snapshot = table.snapshot_at(at).unwrap();
        let (mut objects, mut cursor) = (Vec::new(), snapshot.cursor(Selection::default(), None));
        while cursor.read(5, &mut objects).unwrap() {}
        let shown: Vec<_> = objects.iter().map(|object| (object.key().to_string(), object.revision())).collect();
        let wanted: Vec<_> = expected.values().map(|made| (made.key.clone(), made.revision)).collect();
        assert_eq!(shown, wanted, "at {at}");
        for object in &objects {
            assert_eq!(Some(&object.bytes()[..]), expected[object.key().as_str()].bytes.as_deref());
        }
        assert_eq!(snapshot.count(&crate::Scope::All).unwrap(), wanted.len() as u64);
        let found: usize = (0..3)
            .map(|node| {
                let field = Some(("spec.nodeName".into(), format!("n{node}").into()));
                let (mut found, selection) = (Vec::new(), Selection { field, ..Selection::default() });
                let mut cursor = snapshot.cursor(selection, None);
                while cursor.read(100, &mut found).unwrap() {}
                found.len()
            })
            .sum();
        assert_eq!(found, wanted.len());
        assert_eq!(watched(table, at), after);
    }
    assert!(table.snapshot_at(floor.previous()).is_err(), "what is before the floor is not there");
}

fn check_all(store: &Store, history: &History, stride: usize) {
    history.iter().for_each(|(table, made)| check(&store.table(&TableId::new(table)), made, stride));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replayed_store_has_its_former_state() {
    for seed in 1..=3 {
        let (mut random, mut history) = (Random::new(seed), History::default());
        let mut disk = SimulatedDisk::default();
        for life in 0..3 {
            let store = open(&disk, options()).await.unwrap();
            let floors = TABLES.map(|table| store.table(&TableId::new(table)).floor());
            check_all(&store, &history, 5);
            write_at_random(&store, &mut random, 40, &mut history).await;
            if random.below(3) == 0 {
                store.write_snapshots().await.unwrap();
                write_at_random(&store, &mut random, 20, &mut history).await;
            }
            let after = disk.crash(|_, _| random.below(2) == 0);
            check_all(&store, &history, 5);
            store.shutdown().await;
            // The store was stopped, or killed before that.
            disk = if life == 1 { disk.clone() } else { after };
            let reopened = open(&disk, options()).await.unwrap();
            check_all(&reopened, &history, 5);
            assert_eq!(TABLES.map(|table| reopened.table(&TableId::new(table)).floor()), floors, "seed {seed}");
            reopened.shutdown().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_while_a_snapshot_is_written_loses_nothing() {
    let (mut random, mut history, disk) = (Random::new(7), History::default(), SimulatedDisk::default());
    let store = open(&disk, options()).await.unwrap();
    write_at_random(&store, &mut random, 100, &mut history).await;
    for _ in 0..8 {
        let crashing = async {
            let rounds = random.below(12);
            write_at_random(&store, &mut random, rounds, &mut history).await;
            disk.crash(|_, _| random.below(2) == 0)
        };
        let (written, crashed) = future::join(store.write_snapshots(), crashing).await;
        written.unwrap();
        let reopened = open(&crashed, options()).await.unwrap();
        check_all(&reopened, &history, 7);
        reopened.shutdown().await;
    }
    store.shutdown().await;
}

/// Returns whether the values of objects can be read on the disk: they repeat one digit.
fn is_readable(disk: &SimulatedDisk) -> bool {
    disk.files().iter().any(|(path, _)| contains(&disk.bytes(path), &[b'7'; 20]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_opened_with_other_keys_stores_its_log_and_snapshots_anew() {
    let (mut random, mut history) = (Random::new(9), History::default());
    let mut disk = SimulatedDisk::default();
    let with = |current, known: &[u8]| -> Arc<dyn KeyWrapping> { Adding::with(current, known) };
    for (keys, is_encrypted) in [
        (None, false),
        (Some(with(Some(1), &[1])), true),
        (Some(with(Some(2), &[1, 2])), true),
        (Some(with(Some(2), &[2])), true),
        (Some(with(None, &[2])), false),
        (None, false),
    ] {
        let options = || Options { key_wrapping: keys.clone(), ..options() };
        let store = open(&disk, options()).await.unwrap();
        assert!(history.is_empty() || is_readable(&disk) != is_encrypted);
        check_all(&store, &history, 5);
        write_at_random(&store, &mut random, 60, &mut history).await;
        store.write_snapshots().await.unwrap();
        write_at_random(&store, &mut random, 40, &mut history).await;
        assert_ne!(is_readable(&disk), is_encrypted);
        // The machine fails, and then the disk is full while the files are stored anew by further keys.
        let after = disk.crash(|_, _| random.below(2) == 0);
        store.shutdown().await;
        disk = after;
        let others = Options { key_wrapping: Some(with(Some(3), &[1, 2, 3])), ..self::options() };
        let abandoned = disk.crash(|_, _| true);
        abandoned.set_room(Some(random.below(200_000)));
        match open(&abandoned, others.clone()).await {
            Ok(store) => store.shutdown().await,
            Err(_) => {
                abandoned.set_room(None);
                let store = open(&abandoned, others).await.unwrap();
                check_all(&store, &history, 5);
                store.shutdown().await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replay_drops_history_beyond_its_bound() {
    let (mut random, mut history, disk) = (Random::new(3), History::default(), SimulatedDisk::default());
    let store = open(&disk, options()).await.unwrap();
    write_at_random(&store, &mut random, 200, &mut history).await;
    store.shutdown().await;
    let small = Options { history_bytes_max: 30_000, ..options() };
    let store = open(&disk, small).await.unwrap();
    for (table, made) in &history {
        let table = store.table(&TableId::new(table));
        let usage = table.usage();
        assert!(usage.history_bytes <= 30_000 && usage.changes > 10, "{usage:?} of {} changes", made.len());
        check(&table, made, 1);
    }
    store.shutdown().await;
}

/// Returns the newest segment of the log, and the offset from which it has only zeros.
fn end_of_log(disk: &SimulatedDisk) -> (PathBuf, usize) {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "wal");
    let (path, _) = disk.files().into_iter().filter(|(path, _)| is_segment(path)).max().unwrap();
    let mut end = 0;
    disk.alter(&path, |bytes| end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    (path, end)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_ends_anywhere_keeps_its_beginning() {
    let (mut random, mut history, disk) = (Random::new(5), History::default(), SimulatedDisk::default());
    let store = open(&disk, options()).await.unwrap();
    write_at_random(&store, &mut random, 60, &mut history).await;
    let disk = disk.crash(|_, _| true);
    store.shutdown().await;
    let (path, end) = end_of_log(&disk);
    let begin = end.saturating_sub(24 << 10).max(512).min(end - 1);
    let bytes =
        (end.saturating_sub(40)..=end).chain((0..40).map(|_| begin + random.below((end - begin) as u64) as usize));
    for cut in bytes.chain((begin..end).step_by(512).map(|at| at.next_multiple_of(512))).collect::<Vec<_>>() {
        let cut_off = disk.crash(|_, _| true);
        cut_off.alter(&path, |bytes| bytes[cut..].fill(0));
        let store = match open(&cut_off, options()).await {
            Ok(store) => store,
            // Part of a sector is missing, which is decay and not an interrupted write.
            Err(OpenError::Storage(WalError::Damaged { .. })) if cut % 512 > 0 => continue,
            Err(error) => panic!("cut at {cut} of {end}: {error}"),
        };
        for (table, made) in &history {
            let table = store.table(&TableId::new(table));
            let last = table.changes(table.floor(), usize::MAX).unwrap().last().map(|change| change.revision());
            let there = made.partition_point(|made| last.is_some_and(|last| made.revision <= last));
            check(&table, &made[..there], 8);
        }
        if cut == end {
            check_all(&store, &history, 1);
        }
        store.shutdown().await;
    }
}
