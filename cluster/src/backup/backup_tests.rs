//! Backups of stores in use, stores restored from them, and damaged backups.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::restoring::{drafts, fill};
use super::*;
use crate::chunk;
use crate::disk::simulated::SimulatedDisk;
use crate::limits::BACKUP_CHUNK_BYTES;
use crate::machine::Machine;
use crate::{
    Compacted, Draft, Expectation, Key, Layout, Mutation, Object, OpenError, Options, Outcome, Selection, Store,
    TableOptions, Terms, Write,
};

/// Two tables of one group each, and one of several.
const TABLES: [&str; 3] = ["configmaps", "leases", "pods"];

pub(super) fn options(directory: &Path) -> Options {
    let sharded = |shards| TableOptions { shards: Some(shards), ..TableOptions::default() };
    let tables = [(TableId::new("pods"), sharded(4)), (TableId::new("leases"), sharded(1))].into();
    let on_fatal: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    Options { wal_segment_bytes: 1 << 20, groups: 3, tables, on_fatal, ..Options::new(directory) }
}

async fn open() -> Store {
    Store::open_on(Machine::with_disk(Arc::new(SimulatedDisk::default())), None, options(Path::new("/store")))
        .await
        .unwrap()
}

/// Returns a write of an object in which the digits of the revision come after eight bytes.
pub(super) fn put(table: &str, key: &str, expectation: Expectation, bytes: usize) -> Write {
    let mut text = b"content:".to_vec();
    text.resize(26.max(bytes), b'x');
    let terms = Terms::new(vec![("app".into(), key.into())], vec![("spec.nodeName".into(), "n1".into())]);
    let draft =
        Draft { bytes: text, layout: Layout { revision_at: 8, head: 1, metadata: 2..5 }, terms, ..Draft::default() };
    Write { table: TableId::new(table), key: Key::new(key), expectation, mutation: Mutation::Put(draft) }
}

pub(super) async fn write(store: &Store, write: Write) -> Revision {
    match store.write(write).await.unwrap() {
        Outcome::Committed { object, .. } => object.revision(),
        Outcome::Conflict { current } => panic!("{current:?}"),
    }
}

async fn seeded() -> Store {
    let store = open().await;
    for table in TABLES {
        for number in 0..20 {
            write(&store, put(table, &format!("ns/{number}"), Expectation::Absent, 100 + number)).await;
        }
    }
    store
}

async fn taken(store: &Store) -> Vec<u8> {
    let chunks: Result<Vec<_>, Compacted> = store.backup().await.unwrap().collect();
    chunks.unwrap().concat()
}

type Objects = BTreeMap<(TableId, Key), Object>;

fn read(bytes: &[u8]) -> (BackupHeader, Objects) {
    let mut reader = BackupReader::open(bytes).unwrap();
    let mut all = Objects::new();
    while let Some((table, objects)) = reader.read().unwrap() {
        for object in objects {
            let twice = all.insert((table.clone(), object.key().clone()), object);
            assert!(twice.is_none(), "{twice:?}");
        }
    }
    (reader.header().clone(), all)
}

fn check(bytes: &[u8]) -> Result<(BackupHeader, BackupSummary), BackupReadError> {
    BackupReader::open(bytes)?.check()
}

fn holding(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("backup");
    std::fs::write(&path, bytes).unwrap();
    (directory, path)
}

#[tokio::test]
async fn a_backup_has_every_object_once_at_one_revision() {
    let store = seeded().await;
    let large = write(&store, put("configmaps", "large", Expectation::Absent, 3 * BACKUP_CHUNK_BYTES)).await;
    let bytes = taken(&store).await;
    let (header, summary) = check(&bytes).unwrap();
    assert_eq!((header.groups, header.shards[&TableId::new("pods")]), (3, 4));
    assert!(header.revision >= large && summary.last >= header.revision && header.unix_ms > 0);
    assert_eq!((summary.objects, summary.bytes), (61, bytes.len() as u64));
    let (_, objects) = read(&bytes);
    assert_eq!(objects.len(), 61);
    for ((table, key), object) in objects {
        assert!(store.table(&table).get(key.as_str()).is_some_and(|live| *live == object), "{table} {key}");
    }
    // A finished backup holds no snapshots.
    assert!(store.tables().iter().all(|table| table.usage().snapshots == 0));
    store.shutdown().await;
}

#[tokio::test]
async fn an_incomplete_or_damaged_backup_is_refused() {
    let store = seeded().await;
    let bytes = taken(&store).await;
    store.shutdown().await;
    for length in 0..bytes.len() {
        match check(&bytes[..length]) {
            Err(BackupReadError::Truncated { bytes }) => assert_eq!(bytes, length as u64),
            Err(BackupReadError::Other) if length == 0 => {}
            other => panic!("{length}: {other:?}"),
        }
    }
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << (place % 8);
        let error = check(&damaged).unwrap_err();
        match place {
            0..8 => assert!(matches!(error, BackupReadError::Other), "{place}: {error}"),
            8..12 => assert!(
                matches!(error, BackupReadError::Newer { .. } | BackupReadError::Damaged { offset: 8, .. }),
                "{place}: {error}"
            ),
            _ => assert!(
                matches!(error, BackupReadError::Damaged { .. } | BackupReadError::Truncated { .. }),
                "{place}: {error}"
            ),
        }
    }
    let longer = [bytes.as_slice(), b"x"].concat();
    assert!(check(&longer).unwrap_err().to_string().contains("something follows its end"));
    let mut newer = bytes.clone();
    newer[8] = 9;
    assert_eq!(
        check(&newer).unwrap_err().to_string(),
        "the backup has format 9, of a later release; this one reads up to 1"
    );
    // A chunk that is missing completely is detected.
    let length = |at: usize| 8 + chunk::head(bytes[at..at + 8].try_into().unwrap()).0;
    let (first, second) = (12 + length(12), 12 + length(12) + length(12 + length(12)));
    let without = [&bytes[..first], &bytes[second..]].concat();
    assert!(check(&without).unwrap_err().to_string().contains("has not as much as its end says"));
}

/// Writes a pair again and again: a number into one table, and once that is acknowledged the same number into another.
/// Counts the pairs in `pairs`.
async fn keep_writing(store: Store, key: String, stopped: Arc<AtomicBool>, pairs: Arc<AtomicUsize>) -> usize {
    let mut last = [None, None];
    for number in 0.. {
        pairs.store(number, Ordering::SeqCst);
        if stopped.load(Ordering::SeqCst) {
            return number;
        }
        for (table, last) in ["pods", "configmaps"].into_iter().zip(&mut last) {
            let expectation = last.map_or(Expectation::Absent, Expectation::Revision);
            *last = Some(write(&store, put(table, &key, expectation, 100 + number)).await);
        }
    }
    unreachable!()
}

/// Waits until every writer has written another pair.
async fn all_write(pairs: &[Arc<AtomicUsize>]) {
    let before: Vec<usize> = pairs.iter().map(|pairs| pairs.load(Ordering::SeqCst)).collect();
    let written = async {
        // The first of these pairs may have been begun before.
        while pairs.iter().zip(&before).any(|(pairs, before)| pairs.load(Ordering::SeqCst) < before + 2) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), written).await.expect("writers go on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_during_writes_has_one_revision() {
    let store = open().await;
    let stopped = Arc::new(AtomicBool::default());
    let pairs: Vec<Arc<AtomicUsize>> = (0..6).map(|_| Arc::default()).collect();
    let spawn = |(number, pairs): (usize, &Arc<AtomicUsize>)| {
        tokio::spawn(keep_writing(store.clone(), format!("ns/{number}"), stopped.clone(), pairs.clone()))
    };
    let writers: Vec<_> = pairs.iter().enumerate().map(spawn).collect();
    for round in 0..8 {
        all_write(&pairs).await;
        let key = format!("ns/before-{round}");
        let before = write(&store, put("leases", &key, Expectation::Absent, 100)).await;
        let mut backup = store.backup().await.unwrap();
        let begun = backup.next().unwrap().unwrap();
        all_write(&pairs).await; // the backup must not contain writes from now on
        let rest: Vec<_> = backup.map(Result::unwrap).collect();
        let (header, objects) = read(&[&begun[..], &rest.concat()].concat());
        let get = |table: &str, key: &str| objects.get(&(TableId::new(table), Key::new(key)));
        assert!(header.revision >= before && get("leases", &key).is_some(), "what was acknowledged before");
        let mut there = Objects::new();
        for table in store.tables() {
            let mut cursor = table.snapshot_at(header.revision).unwrap().cursor(Selection::default(), None);
            let mut all = Vec::new();
            while cursor.read(100, &mut all).unwrap() {}
            there.extend(all.into_iter().map(|object| ((table.id().clone(), object.key().clone()), (*object).clone())));
        }
        assert!(objects == there, "all tables as of {}", header.revision);
        for number in 0..6 {
            let length = |table| get(table, &format!("ns/{number}")).map_or(99, |object| object.bytes().len());
            let (first, second) = (length("pods"), length("configmaps"));
            assert!(first == second || first == second + 1, "{first} {second}: the second was written after the first");
        }
    }
    stopped.store(true, Ordering::SeqCst);
    for writer in writers {
        assert!(writer.await.unwrap() > 8, "writers went on");
    }
    store.shutdown().await;
}

/// Checks that the restored store has the same objects, with revisions above `last` and a history that begins there.
async fn check_restored(store: &Store, original: &Objects, last: Revision) {
    let mut count = 0;
    for table in store.tables() {
        count += table.len();
        assert!(table.floor() > last, "{}: {} is not above {last}", table.id(), table.floor());
        assert_eq!(table.changes(last, 1).unwrap_err(), Compacted { floor: table.floor() });
        let refused = table.subscribe(crate::Interest::default(), last).err();
        assert_eq!(refused, Some(Compacted { floor: table.floor() }));
    }
    assert_eq!(count, original.len() as u64);
    for ((table, key), old) in original {
        let table = store.table(table);
        let read = store.barrier(&table).await.unwrap();
        let table_id = table.id();
        let new = table.get(key.as_str()).unwrap_or_else(|| panic!("no {table_id} {key}"));
        assert!(new.revision() > last && new.revision() <= read, "{last} {:?} {read}", new.revision());
        assert_eq!((new.layout(), new.terms()), (old.layout(), old.terms()));
        assert_eq!(new.bytes()[8..26], *new.revision().to_string().as_bytes());
        assert_eq!((&new.bytes()[..8], &new.bytes()[26..]), (&old.bytes()[..8], &old.bytes()[26..]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_store_has_the_same_objects_above_every_revision() {
    let store = seeded().await;
    let bytes = taken(&store).await;
    store.shutdown().await;
    let (_files, backup) = holding(&bytes);
    let original = read(&bytes).1;
    let hour_ahead = Revision::new(check(&bytes).unwrap().1.last.get() + (3_600_000 << 18));
    // The clock of this machine may be behind the one that assigned the old revisions, and the number of shards may
    // differ.
    let single = |directory: &Path| Options { groups: 0, tables: BTreeMap::new(), ..options(directory) };
    for (above, sharded) in [(Revision::ZERO, true), (hour_ahead, false)] {
        let directory = tempfile::tempdir().unwrap();
        let options = || if sharded { options(directory.path()) } else { single(directory.path()) };
        let restored = super::restore(Options { above, ..options() }, &backup).await.unwrap();
        assert!(restored.above > above && restored.above > restored.summary.last);
        assert_eq!(restored.summary.objects, 60);
        let last = restored.above.previous();
        for _ in 0..2 {
            let store = Store::open(options()).await.unwrap();
            check_restored(&store, &original, last).await;
            // The history of tables without objects begins there too.
            assert!(store.table(&TableId::new("secrets")).floor() > last);
            let of = original.keys().next().unwrap().1.as_str();
            let object = store.table(&TableId::new("configmaps")).get(of).unwrap();
            let changed = put("configmaps", of, Expectation::Revision(object.revision()), object.bytes().len());
            assert!(write(&store, changed).await > object.revision());
            store.shutdown().await;
        }
        let again = super::restore(options(), &backup).await.unwrap_err();
        assert!(matches!(again, RestoreError::NotEmpty { .. }), "{again}");
    }
}

#[tokio::test]
async fn restore_refuses_other_files_and_directories_in_use() {
    let store = seeded().await;
    let bytes = taken(&store).await;
    store.shutdown().await;
    let (_files, whole) = holding(&bytes);
    let (_parts, part) = holding(&bytes[..bytes.len() - 1]);
    let directory = tempfile::tempdir().unwrap();
    let absent = directory.path().join("absent");
    let error = super::restore(options(&absent), &part).await.unwrap_err();
    assert!(matches!(error, RestoreError::Backup(BackupReadError::Truncated { .. })) && !absent.exists(), "{error}");

    let used = options(&directory.path().join("used"));
    let running = Store::open(used.clone()).await.unwrap();
    let error = super::restore(used.clone(), &whole).await.unwrap_err();
    assert!(matches!(error, RestoreError::Open(OpenError::Locked { .. })), "{error}");
    running.shutdown().await;
    assert!(matches!(super::restore(used, &whole).await.unwrap_err(), RestoreError::NotEmpty { .. }));

    // A restore that fails leaves nothing behind. One that was killed leaves a directory that no server opens.
    let wanting = options(&directory.path().join("wanting"));
    let double = Options { groups: 0, ..wanting.clone() };
    assert!(matches!(super::restore(double, &whole).await.unwrap_err(), RestoreError::Open(OpenError::Shards(_))));
    super::restore(wanting.clone(), &whole).await.unwrap();
    std::fs::write(wanting.directory.join("restoring"), "").unwrap();
    // It was killed while it wrote its identity, or its note of where the log ends.
    std::fs::write(wanting.directory.join("member.tmp"), "").unwrap();
    std::fs::write(wanting.directory.join("log.tmp"), "").unwrap();
    assert!(matches!(Store::open(wanting.clone()).await.err(), Some(OpenError::Unfinished { .. })));
    // The same command does it anew.
    super::restore(wanting.clone(), &whole).await.unwrap();
    let store = Store::open(wanting.clone()).await.unwrap();
    assert_eq!(store.tables().iter().map(|table| table.len()).sum::<u64>(), 60);
    store.shutdown().await;
    let again = super::restore(wanting, &whole).await.unwrap_err();
    assert!(matches!(again, RestoreError::NotEmpty { .. }), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn collected_files_stay_until_the_store_is_made() {
    let store = seeded().await;
    let bytes = taken(&store).await;
    store.shutdown().await;
    let (_files, whole) = holding(&bytes);
    let above = check(&bytes).unwrap().1.last.next();
    let directory = tempfile::tempdir().unwrap();
    let options = Options { above, ..options(&directory.path().join("new")) };
    let collected = options.directory.join("import");
    let begin = || Unfinished::begin(&options.directory, &["import", "import.tmp"]);
    let backup = || drafts(BackupReader::open(&bytes[..]).unwrap());
    std::fs::create_dir(&options.directory).unwrap();
    std::fs::write(&collected, "somebody's").unwrap();
    assert!(matches!(begin().unwrap_err(), RestoreError::NotEmpty { .. }), "what nobody has begun");
    std::fs::remove_file(&collected).unwrap();

    let begun = begin().unwrap();
    assert!(matches!(begin().unwrap_err(), RestoreError::Open(OpenError::Locked { .. })));
    drop(begun);
    std::fs::write(&collected, "collected").unwrap();
    std::fs::write(options.directory.join("import.tmp"), "by a process that was killed").unwrap();
    std::fs::create_dir(options.directory.join("wal")).unwrap();
    let other = super::restore(options.clone(), &whole).await.unwrap_err();
    assert!(matches!(&other, RestoreError::Begun { found, .. } if found.starts_with("import")), "{other}");
    assert!(matches!(Store::open(options.clone()).await.err(), Some(OpenError::Unfinished { .. })));

    let begun = begin().unwrap();
    assert!(!options.directory.join("wal").exists());
    let twice = backup().chain(backup());
    assert!(matches!(begun.create(options.clone(), twice).await.unwrap_err(), RestoreError::Twice { .. }));
    assert!(matches!(Store::open(options.clone()).await.err(), Some(OpenError::Unfinished { .. })));
    begin().unwrap().create(options.clone(), backup()).await.unwrap();
    assert_eq!(std::fs::read_to_string(&collected).unwrap(), "collected");
    assert!(matches!(begin().unwrap_err(), RestoreError::NotEmpty { .. }), "it is a store now");
    let store = Store::open(options).await.unwrap();
    check_restored(&store, &read(&bytes).1, above.previous()).await;
    store.shutdown().await;
}

#[tokio::test]
async fn existing_objects_stop_a_restore() {
    let store = seeded().await;
    let bytes = taken(&store).await;
    let error = fill(&store, drafts(BackupReader::open(&bytes[..]).unwrap())).await.unwrap_err();
    assert!(matches!(error, RestoreError::Twice { .. }), "{error}");
    store.shutdown().await;
}
