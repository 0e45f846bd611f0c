//! The store on a real disk: after a restart it has every acknowledged write, with its history.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own, and may block")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::{
    ChangeKind, Draft, Expectation, Interest, Key, Layout, Mutation, OpenError, Options, Outcome, Revision, Scope,
    Selection, Store, TableId, TableOptions, Terms, Write, WriteError,
};

/// A temporary directory, which is removed at the end.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Directory {
        Directory(tempfile::tempdir().unwrap())
    }

    fn options(&self) -> Options {
        Options { wal_segment_bytes: 4 << 20, ..Options::new(self.0.path()) }
    }
}

fn draft(text: &str) -> Draft {
    let bytes = format!("{{\"rv\":\"{}\",\"text\":\"{text}\"}}", "0".repeat(18)).into_bytes();
    let layout = Layout { revision_at: 7, head: 1, metadata: 1..5 };
    Draft { bytes, layout, terms: Terms::new(vec![], vec![("spec.nodeName".into(), "n1".into())]), ..Draft::default() }
}

fn put(table: &str, key: &str, expectation: Expectation, text: &str) -> Write {
    let mutation = Mutation::Put(draft(text));
    Write { table: TableId::new(table), key: Key::new(key), expectation, mutation }
}

fn delete(table: &str, key: &str, revision: Revision) -> Write {
    let expectation = Expectation::Revision(revision);
    Write { table: TableId::new(table), key: Key::new(key), expectation, mutation: Mutation::Delete }
}

async fn commit(store: &Store, write: Write) -> Revision {
    match store.write(write).await.unwrap() {
        Outcome::Committed { object, .. } => object.revision(),
        Outcome::Conflict { current } => panic!("conflict with {current:?}"),
    }
}

fn keys(store: &Store, table: &str) -> Vec<(String, Revision)> {
    let (snapshot, mut objects) = (store.table(&TableId::new(table)).snapshot(), Vec::new());
    let mut cursor = snapshot.cursor(Selection::default(), None);
    while cursor.read(100, &mut objects).unwrap() {}
    assert_eq!(snapshot.count(&Scope::All).unwrap(), objects.len() as u64);
    objects.iter().map(|object| (object.key().to_string(), object.revision())).collect()
}

#[tokio::test]
async fn writes_are_decided_by_their_expectations() {
    let directory = Directory::new();
    let store = Store::open(directory.options()).await.unwrap();
    let table = store.table(&TableId::new("pods"));
    assert!(table.revision() > Revision::FIRST, "an empty table has a revision");
    let first = commit(&store, put("pods", "ns/a", Expectation::Absent, "one")).await;
    assert_eq!(store.barrier(&table).await.unwrap(), first);
    let object = table.get("ns/a").unwrap();
    assert!(std::str::from_utf8(object.bytes()).unwrap().contains(&first.to_string()));
    let again = store.write(put("pods", "ns/a", Expectation::Absent, "two")).await.unwrap();
    assert!(matches!(again, Outcome::Conflict { current: Some(current) } if current.revision() == first));
    let second = commit(&store, put("pods", "ns/a", Expectation::Revision(first), "two")).await;
    assert!(second > first);
    let stale = store.write(delete("pods", "ns/a", first)).await.unwrap();
    assert!(matches!(stale, Outcome::Conflict { .. }));
    match store.write(delete("pods", "ns/a", second)).await.unwrap() {
        Outcome::Committed { object, previous } => {
            assert!(object.is_tombstone() && object.revision() > second);
            assert!(std::str::from_utf8(object.bytes()).unwrap().contains(&object.revision().to_string()));
            assert_eq!(previous.unwrap().revision(), second);
        }
        other => panic!("{other:?}"),
    }
    assert!(table.get("ns/a").is_none());
    let mut oversized = draft("");
    oversized.bytes.resize(5 << 20, b' ');
    let mutation = Mutation::Put(oversized);
    let (table, key, expectation) = (TableId::new("pods"), Key::new("ns/b"), Expectation::Absent);
    let refused = store.write(Write { table, key, expectation, mutation }).await.unwrap_err();
    assert!(matches!(refused, WriteError::TooLarge { .. }) && refused.is_definite());
    let other = store.clone();
    store.shutdown().await;
    assert_eq!(other.write(put("pods", "ns/c", Expectation::Absent, "")).await.unwrap_err(), WriteError::Closed);
}

#[tokio::test]
async fn a_directory_is_used_by_one_store_at_a_time() {
    let directory = Directory::new();
    let store = Store::open(directory.options()).await.unwrap();
    assert!(matches!(Store::open(directory.options()).await, Err(OpenError::Locked { .. })));
    store.shutdown().await;
    Store::open(directory.options()).await.unwrap().shutdown().await;
}

/// Makes writes to several tables from many tasks at once. None of them conflicts with another.
async fn write_many(store: &Store, writers: usize, each: usize) {
    let tasks = (0..writers).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut last = None;
            for number in 0..each {
                let table = ["pods", "leases"][writer % 2];
                let key = format!("ns{}/w{writer}", writer % 3);
                let expectation = last.map_or(Expectation::Absent, Expectation::Revision);
                if number % 10 == 9 {
                    commit(&store, delete(table, &key, last.take().unwrap())).await;
                } else {
                    last = Some(commit(&store, put(table, &key, expectation, &"x".repeat(number * 20))).await);
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

async fn survives(options: impl Fn() -> Options) {
    let store = Store::open(options()).await.unwrap();
    let pods = store.table(&TableId::new("pods"));
    let start = pods.revision();
    let mut watch = pods.subscribe(Interest::default(), start).unwrap();
    write_many(&store, 16, 45).await;
    store.barrier(&pods).await.unwrap();
    store.barrier(&store.table(&TableId::new("leases"))).await.unwrap();
    let mut delivered = Vec::new();
    watch.changed().await;
    watch.read(100, &mut delivered).unwrap();
    let resumed_at = watch.position();
    let (before, leases) = (keys(&store, "pods"), keys(&store, "leases"));
    let all: Vec<_> = pods.changes(start, usize::MAX).unwrap();
    let last = pods.revision();
    drop((watch, pods));
    store.shutdown().await;

    let store = Store::open(options()).await.unwrap();
    assert_eq!((keys(&store, "pods"), keys(&store, "leases")), (before, leases));
    let pods = store.table(&TableId::new("pods"));
    assert!(pods.revision() >= last);
    // A watch that had read some changes resumes after them, without a gap and without repetition.
    let mut watch = pods.subscribe(Interest::default(), resumed_at).unwrap();
    watch.changed().await;
    while watch.read(50, &mut delivered).unwrap() {}
    let summary = |changes: &[Arc<flotilla_cluster::Change>]| -> Vec<(ChangeKind, Revision, String, Vec<u8>)> {
        let of = |change: &Arc<flotilla_cluster::Change>| {
            let object = change.object();
            (change.kind(), change.revision(), object.key().to_string(), object.bytes().to_vec())
        };
        changes.iter().map(of).collect()
    };
    assert_eq!(summary(&delivered), summary(&all));
    let next = commit(&store, put("pods", "ns/new", Expectation::Absent, "")).await;
    assert!(next > last);
    store.shutdown().await;
}

#[tokio::test]
async fn everything_acknowledged_is_there_after_a_restart() {
    let directory = Directory::new();
    survives(|| directory.options()).await;
}

#[tokio::test]
async fn several_groups_share_the_log() {
    let directory = Directory::new();
    let own = TableOptions { shards: Some(1), indexes: vec![] };
    let tables = [(TableId::new("leases"), own)];
    survives(|| Options { groups: 1, tables: tables.clone().into(), ..directory.options() }).await;
}

#[tokio::test]
async fn tables_of_several_groups_survive_a_restart() {
    let directory = Directory::new();
    survives(|| sharded(&directory)).await;
}

/// Returns options with both tables spread over several groups, and frequent snapshots.
fn sharded(directory: &Directory) -> Options {
    let spread = |shards| TableOptions { shards: Some(shards), indexes: vec![] };
    let tables = [(TableId::new("leases"), spread(3)), (TableId::new("pods"), spread(8))];
    Options { groups: 5, tables: tables.into(), snapshot_log_bytes: 20_000, ..directory.options() }
}

#[tokio::test]
async fn a_snapshot_supersedes_the_log_and_keeps_the_history() {
    let directory = Directory::new();
    let options = || Options { snapshot_log_bytes: 50_000, wal_segment_bytes: 1 << 20, ..directory.options() };
    let store = Store::open(options()).await.unwrap();
    let table = store.table(&TableId::new("pods"));
    let start = table.revision();
    let padding = "x".repeat(5_000);
    let mut last = None;
    for number in 0..1_000 {
        let key = format!("ns/o{}", number % 7);
        let current = table.get(&key).map(|object| object.revision());
        let expectation = current.map_or(Expectation::Absent, Expectation::Revision);
        let write = if number % 11 == 10 { current.map(|current| delete("pods", &key, current)) } else { None };
        last = Some(commit(&store, write.unwrap_or_else(|| put("pods", &key, expectation, &padding))).await);
    }
    let snapshots = directory.0.path().join("snapshots/default");
    wait_for("a snapshot", || std::fs::read_dir(&snapshots).is_ok_and(|files| files.count() > 0)).await;
    wait_for("segments to be given back", || store.status().wal.segments <= 3).await;
    let (before, changes) = (keys(&store, "pods"), table.changes(start, usize::MAX).unwrap());
    assert_eq!(changes.len(), 1_000);
    drop(table);
    store.shutdown().await;

    let store = Store::open(options()).await.unwrap();
    let table = store.table(&TableId::new("pods"));
    assert_eq!((keys(&store, "pods"), Some(table.revision())), (before, last));
    let after = table.changes(start, usize::MAX).unwrap();
    let summary = |changes: &[Arc<flotilla_cluster::Change>]| -> Vec<_> {
        changes.iter().map(|change| (change.kind(), change.object().bytes().clone())).collect()
    };
    assert_eq!(summary(&after), summary(&changes));
    let middle = changes[500].revision();
    assert!(table.get_at("ns/o1", middle).unwrap().is_some());
    store.shutdown().await;
    damage_is_refused(&snapshots, options).await;
}

#[tokio::test]
async fn a_group_with_few_writes_does_not_keep_the_log_from_being_freed() {
    let directory = Directory::new();
    let spread = |shards| TableOptions { shards: Some(shards), indexes: vec![] };
    let tables: std::collections::BTreeMap<_, _> =
        [(TableId::new("pods"), spread(1)), (TableId::new("leases"), spread(3))].into();
    let (snapshot_log_bytes, wal_segment_bytes) = (100_000, 256 << 10);
    let options =
        || Options { groups: 3, tables: tables.clone(), snapshot_log_bytes, wal_segment_bytes, ..directory.options() };
    let store = Store::open(options()).await.unwrap();
    for number in 0..6 {
        commit(&store, put("leases", &format!("ns/l{number}"), Expectation::Absent, "")).await;
    }
    let (id, padding) = (TableId::new("leases"), "x".repeat(5_000));
    store.barrier(&store.table(&id)).await.unwrap();
    let leases = keys(&store, "leases");
    let mut last = None;
    for _ in 0..600 {
        let expectation = last.map_or(Expectation::Absent, Expectation::Revision);
        last = Some(commit(&store, put("pods", "ns/a", expectation, &padding)).await);
    }
    wait_for("segments to be given back", || store.status().wal.segments <= 6).await;
    store.shutdown().await;
    let store = Store::open(options()).await.unwrap();
    store.barrier(&store.table(&id)).await.unwrap();
    assert_eq!((keys(&store, "leases"), store.table(&TableId::new("pods")).len()), (leases, 1));
    store.shutdown().await;
}

/// Waits until a condition holds. Panics after two minutes.
async fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("waited in vain for {what}");
}

async fn damage_is_refused(snapshots: &Path, options: impl Fn() -> Options) {
    let path = std::fs::read_dir(snapshots).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&path).unwrap();
    for offset in [9, 40, whole.len() / 2, whole.len() - 3] {
        let mut damaged = whole.clone();
        damaged[offset] ^= 4;
        std::fs::write(&path, damaged).unwrap();
        let Err(OpenError::Group { source, .. }) = Store::open(options()).await else { panic!("byte {offset}") };
        let named = path.file_name().unwrap().to_str().unwrap();
        assert!(source.to_string().contains(named), "{source}");
    }
    std::fs::write(&path, whole).unwrap();
    Store::open(options()).await.unwrap().shutdown().await;
}

/// Runs in a child process: writes and prints acknowledged writes, until it is killed.
#[tokio::test]
async fn writes_until_killed() {
    let Ok(path) = std::env::var("FLOTILLA_WRITE_UNTIL_KILLED") else { return };
    let store = Store::open(Options { snapshot_log_bytes: 200_000, ..Options::new(path) }).await.unwrap();
    let writers = (0..8).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let key = format!("ns/w{writer}");
            let mut last = store.table(&TableId::new("pods")).get(&key).map(|object| object.revision());
            loop {
                let expectation = last.map_or(Expectation::Absent, Expectation::Revision);
                let revision = commit(&store, put("pods", &key, expectation, &"x".repeat(500))).await;
                last = Some(revision);
                println!("acknowledged {key} {revision}");
            }
        })
    });
    let writers: Vec<tokio::task::JoinHandle<()>> = writers.collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    use std::io::BufRead;
    let directory = Directory::new();
    let mut start = None;
    for round in 0..3 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writes_until_killed", "--nocapture"])
            .env("FLOTILLA_WRITE_UNTIL_KILLED", directory.0.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut acknowledged: Vec<(String, Revision)> = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [.., "acknowledged", key, revision] = words[..] {
                acknowledged.push((key.to_owned(), revision.parse().unwrap()));
            }
            if acknowledged.len() == 600 * (round + 1) {
                child.kill().unwrap(); // the content of the pipe is still read
            }
        }
        child.wait().unwrap();
        let store = Store::open(directory.options()).await.unwrap();
        let table = store.table(&TableId::new("pods"));
        let since = *start.get_or_insert(acknowledged[0].1);
        assert!(since >= table.floor(), "the history reaches back over restarts");
        let changes = table.changes(since, usize::MAX).unwrap();
        let happened: std::collections::BTreeSet<Revision> = changes.iter().map(|change| change.revision()).collect();
        for (key, revision) in &acknowledged {
            assert!(*revision == since || happened.contains(revision), "{key} at {revision} was acknowledged");
        }
        store.shutdown().await;
    }
}
