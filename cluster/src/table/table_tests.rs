//! The table against a model that keeps every version of everything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::shard::{Content, Shard};
use super::{Division, PlacedShard, Selection, Table};
use crate::chance::Random;
use crate::change::ChangeRange;
use crate::clock::GroupClock;
use crate::clock::HybridClock;
use crate::entry::{Command, Operation};
use crate::watch::Interest;
use crate::{
    Change, ChangeKind, Draft, Expectation, Key, Layout, Object, Outcome, Revision, Scope, SnapshotError, TableId,
    TermFilter, Terms,
};

const BASE: u64 = 400_000_000_000_000_000;
const HISTORY: Duration = Duration::from_secs(300);

fn table() -> Arc<Table> {
    let shard = Shard::new(Revision::new(BASE), ["spec.nodeName".into()]);
    let clock = GroupClock::new("default".into(), 0, Arc::default(), HybridClock::default(), HISTORY);
    clock.raise(Revision::new(BASE));
    let shards = vec![PlacedShard { shard: Arc::new(shard), clock: Arc::new(clock) }];
    let divisions = [Arc::new(Division::new(1, shards))].into();
    Arc::new(Table::new(TableId::new("pods"), divisions, Duration::from_secs(60)))
}

fn revision(number: u64) -> Revision {
    Revision::new(BASE + number)
}

fn put(key: &str, node: &str, expectation: Expectation, number: u64) -> Command {
    let terms = Terms::new(vec![], vec![("spec.nodeName".into(), node.into())]);
    let layout = Layout { revision_at: 0, head: 0, metadata: 0..0 };
    let draft = Draft { bytes: vec![b'0'; 40], layout, terms, ..Draft::default() };
    let key = Key::new(key);
    let object = draft.seal(key.clone(), revision(number)).unwrap();
    let operation = Operation::Put(object.into());
    Command { table: TableId::new("pods"), epoch: 1, shard: 0, key, revision: revision(number), expectation, operation }
}

fn delete(key: &str, expectation: Expectation, number: u64) -> Command {
    let (table, key, revision) = (TableId::new("pods"), Key::new(key), revision(number));
    Command { table, epoch: 1, shard: 0, key, revision, expectation, operation: Operation::Delete(None) }
}

fn commit(table: &Table, command: &Command) -> Outcome {
    let outcome = table.shard(0).apply(&[command]).remove(0).unwrap();
    table.clocks()[0].raise(command.revision);
    table.announce();
    outcome
}

fn trim(table: &Table, aged: Revision, bytes_max: usize, now: Instant) {
    table.shard(0).trim(aged, bytes_max, table.revision(), now);
}

fn list(snapshot: &super::Snapshot, selection: &Selection, chunk: usize) -> Vec<(String, Revision)> {
    let (mut all, mut cursor) = (Vec::new(), snapshot.cursor(selection.clone(), None));
    while cursor.read(chunk, &mut all).unwrap() {}
    all.iter().map(|object| (object.key().to_string(), object.revision())).collect()
}

/// The state after every revision, as the model remembers it: key to revision and node.
type States = BTreeMap<Revision, BTreeMap<String, (Revision, String)>>;

fn check_revision(table: &Arc<Table>, at: Revision, state: &BTreeMap<String, (Revision, String)>, chunk: usize) {
    let snapshot = table.snapshot_at(at).unwrap();
    let expected = |keep: &dyn Fn(&str, &str) -> bool| -> Vec<(String, Revision)> {
        let kept = state.iter().filter(|(key, (_, node))| keep(key, node));
        kept.map(|(key, (revision, _))| (key.clone(), *revision)).collect()
    };
    assert_eq!(list(&snapshot, &Selection::default(), chunk), expected(&|_, _| true));
    assert_eq!(snapshot.count(&Scope::All).unwrap(), state.len() as u64);
    for namespace in ["a", "a-b", "b"] {
        let scope = Scope::namespace(namespace);
        let scoped = Selection { scope: scope.clone(), ..Selection::default() };
        let listed = list(&snapshot, &scoped, chunk);
        assert_eq!(listed, expected(&|key, _| key.split('/').next() == Some(namespace)));
        assert_eq!(snapshot.count(&scope).unwrap(), listed.len() as u64);
        // Reading also continues correctly after a key of another namespace, before or after the scope.
        for after in ["a/", "a-a/x", "a/5", "a0", "b/o", "c/x"] {
            let (mut rest, mut cursor) = (Vec::new(), snapshot.cursor(scoped.clone(), Some(Key::new(after))));
            while cursor.read(chunk, &mut rest).unwrap() {}
            let rest: Vec<_> = rest.iter().map(|object| object.key().to_string()).collect();
            let expected = listed.iter().filter(|(key, _)| key.as_str() > after).map(|(key, _)| key.clone());
            assert_eq!(rest, expected.collect::<Vec<_>>());
        }
    }
    for node in ["n0", "n1", "n2"] {
        let selection =
            Selection { scope: Scope::All, field: Some(("spec.nodeName".into(), node.into())), ..Selection::default() };
        assert_eq!(list(&snapshot, &selection, chunk), expected(&|_, on| on == node));
        // The filter passes every object that has the node, and some others.
        let required = vec![vec![TermFilter::field("spec.nodeName", node)]];
        let listed = list(&snapshot, &Selection { required, ..Selection::default() }, chunk);
        assert!(expected(&|_, on| on == node).iter().all(|object| listed.contains(object)));
    }
}

#[test]
fn every_revision_of_the_history_reads_as_it_was() {
    for seed in 1..=20 {
        let mut random = Random::new(seed);
        let table = table();
        let (mut states, mut floor) = (States::new(), revision(0));
        states.insert(floor, BTreeMap::new());
        let mut state: BTreeMap<String, (Revision, String)> = BTreeMap::new();
        for number in 1..=300 {
            let key = format!("{}/o{}", ["a", "a-b", "b"][random.below(3) as usize], random.below(8));
            let node = format!("n{}", random.below(3));
            let current = state.get(&key).map(|(revision, _)| *revision);
            let guess = if random.below(4) == 0 { None } else { current };
            let expectation = guess.map_or(Expectation::Absent, Expectation::Revision);
            let deletes = guess.is_some() && random.below(3) == 0;
            let command =
                if deletes { delete(&key, expectation, number) } else { put(&key, &node, expectation, number) };
            match commit(&table, &command) {
                Outcome::Committed { object, previous } => {
                    assert_eq!(guess, current);
                    assert_eq!(previous.map(|previous| previous.revision()), current);
                    assert_eq!((object.revision(), object.is_tombstone()), (revision(number), deletes));
                    match deletes {
                        true => drop(state.remove(&key)),
                        false => drop(state.insert(key.clone(), (revision(number), node))),
                    }
                }
                Outcome::Conflict { current: found } => {
                    assert_ne!(guess, current);
                    assert_eq!(found.map(|found| found.revision()), current);
                }
            }
            states.insert(revision(number), state.clone());
            assert_eq!(table.get(&key).map(|object| object.revision()), state.get(&key).map(|(at, _)| *at));
            if random.below(25) == 0 {
                trim(&table, revision(number.saturating_sub(20)), usize::MAX, Instant::now());
                floor = table.floor();
                assert!(floor <= revision(number.saturating_sub(20)).max(revision(0)));
            }
        }
        for (at, state) in &states {
            match *at < floor {
                true => assert!(matches!(table.snapshot_at(*at), Err(SnapshotError::Compacted(_)))),
                false => check_revision(&table, *at, state, 1 + random.below(9) as usize),
            }
        }
        trim(&table, Revision::LAST, usize::MAX, Instant::now());
        check_revision(&table, table.revision(), &state, 100);
        let usage = table.usage();
        assert_eq!((usage.changes, usage.history_bytes, usage.objects), (0, 0, state.len() as u64));
    }
}

#[test]
fn a_replayed_log_gives_the_same_state() {
    let table = table();
    for number in 1..=100 {
        let key = format!("ns/o{}", number % 9);
        let current = table.get(&key).map(|object| object.revision());
        let expectation = current.map_or(Expectation::Absent, Expectation::Revision);
        let deletes = number % 7 == 0 && current.is_some();
        let command = if deletes { delete(&key, expectation, number) } else { put(&key, "n", expectation, number) };
        commit(&table, &command);
    }
    let changes = table.changes(revision(0), 1000).unwrap();
    let replica = self::table();
    let replayed = |change: &Arc<Change>| {
        let operation = match change.kind() {
            ChangeKind::Deleted => Operation::Delete(None),
            _ => Operation::Put(change.object().clone()),
        };
        (change.object().key().clone(), change.revision(), operation)
    };
    let changes_of = changes.iter().map(replayed).collect();
    let content = Content { changes: changes_of, ..Content::blank(revision(0), true) };
    drop(replica.shard(0).adopt(replica.shard(0).prepare(content)));
    replica.clocks()[0].raise(table.revision());
    let summary = |change: &Arc<Change>| {
        let previous = change.previous().map(|previous| previous.revision());
        (change.kind(), change.revision(), change.object().key().clone(), previous)
    };
    let replayed = replica.changes(revision(0), 1000).unwrap();
    assert_eq!(replayed.iter().map(summary).collect::<Vec<_>>(), changes.iter().map(summary).collect::<Vec<_>>());
    let all = Selection::default();
    assert_eq!(list(&replica.snapshot(), &all, 5), list(&table.snapshot(), &all, 7));
}

#[test]
fn a_held_snapshot_stays_readable_for_its_time() {
    let table = table();
    commit(&table, &put("a/x", "n", Expectation::Absent, 1));
    let snapshot = table.snapshot();
    commit(&table, &put("a/x", "n", Expectation::Revision(revision(1)), 2));
    trim(&table, Revision::LAST, 0, Instant::now());
    assert_eq!(snapshot.get("a/x").unwrap().unwrap().revision(), revision(1));
    trim(&table, Revision::LAST, 0, Instant::now() + Duration::from_secs(61));
    assert!(snapshot.get("a/x").is_err());
    assert_eq!(table.get("a/x").unwrap().revision(), revision(2));
    assert!(table.changes(revision(1), 1).is_err());
    assert!(table.changes(revision(2), 1).unwrap().is_empty());
}

#[test]
fn history_is_bounded_in_bytes() {
    let table = table();
    commit(&table, &put("a/x", "n", Expectation::Absent, 1));
    for number in 2..100 {
        commit(&table, &put("a/x", "n", Expectation::Revision(revision(number - 1)), number));
    }
    let all = table.usage().history_bytes;
    trim(&table, revision(0), all / 2, Instant::now());
    let usage = table.usage();
    assert!(usage.history_bytes <= all / 2 && usage.changes > 40, "{usage:?} of {all}");
}

#[tokio::test]
async fn only_changes_that_concern_a_subscription_wake_it() {
    let table = table();
    commit(&table, &put("a/x", "n1", Expectation::Absent, 1));
    let by_node = |node: &str| Interest { field: Some(("spec.nodeName".into(), node.into())), ..Interest::default() };
    let mut everything = table.subscribe(Interest::default(), revision(0)).unwrap();
    let mut on_n1 = table.subscribe(by_node("n1"), revision(1)).unwrap();
    let mut on_n2 = table.subscribe(by_node("n2"), revision(1)).unwrap();
    let in_b = Interest { namespace: Some("b".into()), ..Interest::default() };
    let in_b = table.subscribe(in_b, revision(1)).unwrap();
    let named = Interest { namespace: Some("a".into()), name: Some("x".into()), field: None };
    let named = table.subscribe(named, revision(1)).unwrap();
    assert!(everything.has_changed() && !on_n1.has_changed());

    commit(&table, &put("a/x", "n2", Expectation::Revision(revision(1)), 2));
    commit(&table, &put("a/y", "n1", Expectation::Absent, 3));
    let mut changes = Vec::new();
    on_n1.changed().await;
    assert!(!on_n1.read(10, &mut changes).unwrap());
    assert_eq!(changes.iter().map(|change| change.revision()).collect::<Vec<_>>(), [revision(2), revision(3)]);
    changes.clear();
    on_n2.changed().await;
    on_n2.read(10, &mut changes).unwrap();
    assert_eq!(changes.iter().map(|change| change.revision()).collect::<Vec<_>>(), [revision(2)]);
    assert_eq!(on_n2.position(), revision(3));
    assert!(!in_b.has_changed() && named.has_changed());
    assert_eq!(in_b.position(), revision(3));
    assert_eq!(named.position(), revision(1));
    changes.clear();
    assert!(everything.read(2, &mut changes).unwrap());
    assert!(!everything.read(2, &mut changes).unwrap());
    let kinds: Vec<_> = changes.iter().map(|change| change.kind()).collect();
    assert_eq!(kinds, [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Added]);

    // A subscription that no change concerns keeps its position, however much history is trimmed; one with an unread
    // change loses it.
    trim(&table, Revision::LAST, 0, Instant::now());
    assert_eq!(in_b.position(), revision(3));
    let mut named = named;
    assert!(named.read(1, &mut changes).is_err());
    drop((everything, on_n1, on_n2, in_b, named));
    assert_eq!(table.usage().subscriptions, 0);
}

/// Another replica told the client of the revision, and this replica is brought up to date by a snapshot whose history
/// begins above all revisions that it had.
#[tokio::test]
async fn a_subscription_from_a_future_revision_begins_there() {
    let table = table();
    commit(&table, &put("a/x", "n", Expectation::Absent, 1));
    let mut subscription = table.subscribe(Interest::default(), revision(8)).unwrap();
    let changes = [8, 9].map(|number| {
        let Operation::Put(object) = put("a/x", "n", Expectation::Absent, number).operation else { unreachable!() };
        (object.key().clone(), revision(number), Operation::Put(object))
    });
    let content = Content { changes: changes.into(), ..Content::blank(revision(5), true) };
    drop(table.shard(0).adopt(table.shard(0).prepare(content)));
    table.clocks()[0].raise(revision(9));
    table.announce();
    let mut seen = Vec::new();
    subscription.changed().await;
    subscription.read(10, &mut seen).unwrap();
    assert_eq!(seen.iter().map(|change| change.revision()).collect::<Vec<_>>(), [revision(9)]);
}

#[tokio::test]
async fn waiting_for_a_revision_ends_with_it_or_with_the_deadline() {
    let table = table();
    let soon = tokio::time::Instant::now() + Duration::from_millis(20);
    assert_eq!(table.wait_applied(revision(1), soon).await.unwrap_err().current, revision(0));
    let waiter = tokio::spawn({
        let table = table.clone();
        let later = tokio::time::Instant::now() + Duration::from_secs(120);
        async move { table.wait_applied(revision(1), later).await }
    });
    tokio::task::yield_now().await;
    commit(&table, &put("a/x", "n1", Expectation::Absent, 1));
    waiter.await.unwrap().unwrap();
}

#[test]
fn watchers_share_the_value_that_the_first_one_made() {
    let object: Arc<Object> = match put("a/x", "n", Expectation::Absent, 1).operation {
        Operation::Put(object) => object,
        Operation::Delete(_) => unreachable!(),
    };
    let change = Change::new(ChangeKind::Added, object, None);
    let first = change.shared(|| 1_u32);
    assert_eq!(*change.shared(|| 2_u32), 1);
    change.forget_shared();
    assert_eq!((*change.shared(|| 3_u32), *first), (3, 1));
}

#[test]
fn changes_are_found_after_any_revision() {
    for count in [0, 1, 2, 7, 40] {
        let table = table();
        for number in 1..=count {
            commit(&table, &put(&format!("a/{number}"), "n0", Expectation::Absent, 2 * number));
        }
        for after in 0..=2 * count + 1 {
            let mut changes = Vec::new();
            let of = ChangeRange { after: revision(after), through: revision(2 * count), max: usize::MAX };
            table.read_changes(of, &mut changes).unwrap();
            let found: Vec<Revision> = changes.iter().map(|change| change.revision()).collect();
            assert_eq!(found, (after / 2 + 1..=count).map(|number| revision(2 * number)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn readers_see_every_closed_change_while_a_snapshot_is_installed() {
    const KEYS: u64 = 500;
    const CLOSED: u64 = 4 * KEYS;
    let table = table();
    for number in 1..=CLOSED {
        let key = format!("ns/o{:03}", number % KEYS);
        let expectation = table.get(&key).map(|object| Expectation::Revision(object.revision()));
        commit(&table, &put(&key, "n", expectation.unwrap_or(Expectation::Absent), number));
    }
    let all = Selection::default();
    let (objects, changes) = (list(&table.snapshot(), &all, 100), table.changes(revision(KEYS), 10_000).unwrap());
    let mut begins = Vec::new();
    let mut cursor = table.snapshot_at(revision(KEYS)).unwrap().cursor(all.clone(), None);
    while cursor.read(1_000, &mut begins).unwrap() {}
    let content = || Content {
        objects: begins.clone(),
        changes: changes
            .iter()
            .map(|change| (change.object().key().clone(), change.revision(), Operation::Put(change.object().clone())))
            .collect(),
        ..Content::blank(revision(KEYS), true)
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..50).for_each(|_| drop(table.shard(0).adopt(table.shard(0).prepare(content()))));
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            assert_eq!(list(&table.snapshot(), &all, 100), objects);
            let after = revision(KEYS + 7);
            let subscription = table.subscribe(Interest::default(), after);
            let (mut subscription, mut seen) = (subscription.unwrap(), Vec::new());
            while subscription.read(1_000, &mut seen).unwrap() {}
            assert_eq!(seen.len() as u64, CLOSED - KEYS - 7);
            assert_eq!(table.changes(after, 10_000).unwrap().len() as u64, CLOSED - KEYS - 7);
        }
    });
}
