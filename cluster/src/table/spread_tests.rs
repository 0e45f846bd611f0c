//! A table of several groups, applied and closed in random interleavings, against a model that keeps every revision.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::shard::Shard;
use super::{Division, PlacedShard, Selection, Snapshot, Subscription, Table};
use crate::chance::Random;
use crate::clock::GroupClock;
use crate::clock::HybridClock;
use crate::entry::{Command, Operation};
use crate::shard_map::GroupNumber;
use crate::watch::Interest;
use crate::{
    Change, ChangeKind, Draft, Expectation, Key, Layout, Outcome, Revision, Scope, TableId, TermFilter, Terms,
};

const BASE: u64 = 400_000_000_000_000_000;
const HISTORY: Duration = Duration::from_secs(300);
const NAMESPACES: [&str; 3] = ["a", "a-b", "b"];

/// The objects of a state of the model, each with its revision and its node.
type State = BTreeMap<String, (Revision, String)>;

/// A table of several groups. Time advances with every step. Every group assigns its own revisions from it, as
/// sequencers do, and applies them later, at a different pace in each group.
struct World {
    random: Random,
    table: Arc<Table>,
    time: u64,
    /// The entries that each group has yet to apply: writes, and revisions to close up to.
    logs: BTreeMap<GroupNumber, VecDeque<(Revision, Option<Command>)>>,
    state: State,
    /// The state after every revision.
    states: BTreeMap<Revision, State>,
    /// The changes in revision order: revision, key, and whether it was deleted.
    changes: Vec<(Revision, String, bool)>,
}

impl World {
    fn new(seed: u64, groups: u8, shards: u16) -> World {
        let base = Revision::new(BASE);
        let clock = |group_number: GroupNumber| {
            Arc::new(GroupClock::new(
                format!("g{group_number}").into(),
                group_number,
                Arc::default(),
                HybridClock::default(),
                HISTORY,
            ))
        };
        let clocks: Vec<Arc<GroupClock>> = (0..groups).map(clock).collect();
        clocks.iter().for_each(|clock| clock.raise(base));
        let shard = |number: u16| {
            let shard = Arc::new(Shard::new(base, ["spec.nodeName".into()]));
            PlacedShard { shard, clock: clocks[usize::from(number) % usize::from(groups)].clone() }
        };
        let divisions = [Arc::new(Division::new(1, (0..shards).map(shard).collect()))].into();
        let table = Arc::new(Table::new(TableId::new("pods"), divisions, Duration::from_secs(60)));
        let states = BTreeMap::from([(base, State::new())]);
        let (random, logs, changes) = (Random::new(seed), BTreeMap::new(), Vec::new());
        World { random, table, time: 0, logs, state: State::new(), states, changes }
    }

    fn revision(&mut self, group_number: GroupNumber) -> Revision {
        self.time += 1;
        Revision::new(BASE + self.time * 256 + u64::from(group_number))
    }

    /// Writes a random key.
    fn write(&mut self) {
        let (namespace, name) = (self.random.below(3) as usize, self.random.below(12));
        let key = format!("{}/o{name}", NAMESPACES[namespace]);
        let group_number = self.table.write_shard(&key).clock.group_number();
        let revision = self.revision(group_number);
        let current = self.state.get(&key).map(|(revision, _)| *revision);
        let expectation = current.map_or(Expectation::Absent, Expectation::Revision);
        let node = format!("n{}", self.random.below(3));
        let deletes = current.is_some() && self.random.below(3) == 0;
        let operation = if deletes { Operation::Delete(None) } else { put(&key, &node, revision) };
        let (table, shard) = (TableId::new("pods"), self.table.write_shard(&key).shard);
        let command = Command { table, epoch: 1, shard, key: Key::new(&key), revision, expectation, operation };
        self.logs.entry(group_number).or_default().push_back((revision, Some(command)));
        match deletes {
            true => drop(self.state.remove(&key)),
            false => drop(self.state.insert(key.clone(), (revision, node))),
        }
        self.states.insert(revision, self.state.clone());
        self.changes.push((revision, key, deletes));
    }

    /// Makes a group commit that it is closed up to now.
    fn close(&mut self) {
        let group_number = self.random.below(self.table.clocks().len() as u64) as GroupNumber;
        let revision = self.revision(group_number);
        self.logs.entry(group_number).or_default().push_back((revision, None));
    }

    /// Makes a group apply the next entries of its log and close up to the last of them.
    fn apply(&mut self, group_number: GroupNumber, count: usize) {
        let mut last = None;
        for _ in 0..count {
            let Some((revision, command)) = self.logs.entry(group_number).or_default().pop_front() else { break };
            if let Some(command) = command {
                let number = command.shard;
                let outcome = self.table.shard(number).apply(&[&command]).remove(0);
                assert!(matches!(outcome, Some(Outcome::Committed { .. })));
            }
            last = Some(revision);
        }
        let Some(last) = last else { return };
        self.table.clocks()[usize::from(group_number)].raise(last);
        if self.random.below(4) > 0 {
            self.table.announce();
        }
    }

    /// Makes every group apply everything and close up to the last change.
    fn close_all(&mut self) {
        let group_numbers = self.table.clocks().len() as GroupNumber;
        (0..group_numbers).for_each(|group_number| self.apply(group_number, usize::MAX));
        let last = self.table.last_change();
        self.table.clocks().iter().for_each(|clock| clock.raise(last));
        self.table.announce();
    }

    fn state_at(&self, revision: Revision) -> &State {
        self.states.range(..=revision).next_back().unwrap().1
    }

    fn check_snapshot(&mut self, snapshot: &Snapshot) {
        let state = self.state_at(snapshot.revision()).clone();
        let chunk = 1 + self.random.below(20) as usize;
        let expected = |keep: &dyn Fn(&str, &str) -> bool| -> Vec<(String, Revision)> {
            let kept = state.iter().filter(|(key, (_, node))| keep(key, node));
            kept.map(|(key, (revision, _))| (key.clone(), *revision)).collect()
        };
        let all = Selection::default();
        assert_eq!(list(snapshot, &all, None, chunk), expected(&|_, _| true));
        assert_eq!(snapshot.count(&Scope::All).unwrap(), state.len() as u64);
        for namespace in NAMESPACES {
            let scope = Scope::namespace(namespace);
            let listed = list(snapshot, &Selection { scope: scope.clone(), ..Selection::default() }, None, chunk);
            assert_eq!(listed, expected(&|key, _| key.split('/').next() == Some(namespace)));
            assert_eq!(snapshot.count(&scope).unwrap(), listed.len() as u64);
        }
        for node in ["n0", "n1", "n2"] {
            let selection = Selection {
                scope: Scope::All,
                field: Some(("spec.nodeName".into(), node.into())),
                ..Selection::default()
            };
            assert_eq!(list(snapshot, &selection, None, chunk), expected(&|_, on| on == node));
            // The filter passes every object that has the node, and some others.
            let required = vec![vec![TermFilter::field("spec.nodeName", node)]];
            let listed = list(snapshot, &Selection { required, ..Selection::default() }, None, chunk);
            assert!(expected(&|_, on| on == node).iter().all(|object| listed.contains(object)));
        }
        // The next page needs to know only the last key of this one.
        let after = format!("{}/o{}", NAMESPACES[self.random.below(3) as usize], self.random.below(12));
        let rest = list(snapshot, &all, Some(Key::new(&after)), chunk);
        assert_eq!(rest, expected(&|key, _| key > after.as_str()));
        for (key, (revision, _)) in &state {
            assert_eq!(snapshot.get(key).unwrap().unwrap().revision(), *revision);
        }
        if snapshot.revision() == self.table.revision() {
            for key in NAMESPACES.iter().flat_map(|namespace| (0..12).map(move |name| format!("{namespace}/o{name}"))) {
                let shown = self.table.get_closed(&key).map(|object| object.revision());
                assert_eq!(shown, state.get(&key).map(|(revision, _)| *revision), "as lists show it");
            }
        }
    }
}

fn put(key: &str, node: &str, revision: Revision) -> Operation {
    let terms = Terms::new(vec![], vec![("spec.nodeName".into(), node.into())]);
    let layout = Layout { revision_at: 0, head: 0, metadata: 0..0 };
    let draft = Draft { bytes: vec![b'0'; 40], layout, terms, ..Draft::default() };
    Operation::Put(draft.seal(Key::new(key), revision).unwrap().into())
}

fn list(snapshot: &Snapshot, selection: &Selection, after: Option<Key>, chunk: usize) -> Vec<(String, Revision)> {
    let (mut all, mut cursor) = (Vec::new(), snapshot.cursor(selection.clone(), after));
    loop {
        let before = all.len();
        let more = cursor.read(chunk, &mut all).unwrap();
        assert!(all.len() - before <= chunk);
        if !more {
            return all.iter().map(|object| (object.key().to_string(), object.revision())).collect();
        }
    }
}

/// A watcher that resumes again and again from the last revision that it received.
struct Watcher {
    subscription: Subscription,
    interest: Interest,
    since: Revision,
    delivered: Vec<(Revision, String, bool)>,
}

impl Watcher {
    fn new(table: &Arc<Table>, interest: Interest, since: Revision) -> Watcher {
        let subscription = table.subscribe(interest.clone(), since).unwrap();
        Watcher { subscription, interest, since, delivered: Vec::new() }
    }

    fn read(&mut self, max: usize) {
        let mut changes: Vec<Arc<Change>> = Vec::new();
        self.subscription.read(max, &mut changes).unwrap();
        assert!(changes.len() <= max);
        let delivered = |change: &Arc<Change>| {
            (change.revision(), change.object().key().to_string(), change.kind() == ChangeKind::Deleted)
        };
        self.delivered.extend(changes.iter().map(delivered));
    }

    /// Resumes as a client would: from the last change that it received, or from a bookmark.
    fn resume(&mut self, table: &Arc<Table>, from_bookmark: bool) {
        let position = self.subscription.position();
        let last = self.delivered.last().map_or(self.since, |(revision, ..)| *revision);
        assert!(position >= last, "a bookmark is never before what was told");
        let after = if from_bookmark { position } else { last };
        self.subscription = table.subscribe(self.interest.clone(), after).unwrap();
    }
}

fn interests() -> Vec<Interest> {
    let namespace = Interest { namespace: Some("a".into()), ..Interest::default() };
    let object = Interest { name: Some("o3".into()), ..namespace.clone() };
    vec![Interest::default(), namespace, object]
}

#[test]
fn lists_are_consistent_and_watches_miss_and_repeat_nothing() {
    for seed in 1..=60 {
        let groups = (seed % 8 + 1) as u8;
        let shards = [1, 3, 8, 13][seed as usize % 4].max(u16::from(groups));
        let mut world = World::new(seed, groups, shards);
        let start = world.table.revision();
        let mut watchers: Vec<Watcher> =
            interests().into_iter().map(|interest| Watcher::new(&world.table, interest, start)).collect();
        let mut held: Vec<Snapshot> = Vec::new();
        for _ in 0..250 {
            match world.random.below(12) {
                0..4 => world.write(),
                4 => world.close(),
                5..8 => {
                    let (group_number, count) = (world.random.below(u64::from(groups)), world.random.below(5) as usize);
                    world.apply(group_number as GroupNumber, count);
                }
                8 => {
                    let snapshot = world.table.snapshot();
                    world.check_snapshot(&snapshot);
                    held.push(snapshot);
                }
                9 => {
                    let after = world.table.revision();
                    let interest = interests().remove(world.random.below(3) as usize);
                    watchers.push(Watcher::new(&world.table, interest, after));
                }
                _ => {
                    let (which, max) = (world.random.below(watchers.len() as u64), world.random.below(9) as usize + 1);
                    let (resumes, bookmark) = (world.random.below(2) == 0, world.random.below(2) == 0);
                    let watcher = &mut watchers[which as usize];
                    watcher.read(max);
                    if resumes {
                        watcher.resume(&world.table, bookmark);
                    }
                }
            }
        }
        world.close_all();
        assert!(world.table.revision() >= world.changes.last().unwrap().0);
        for snapshot in held {
            world.check_snapshot(&snapshot);
        }
        let now = world.table.snapshot();
        world.check_snapshot(&now);
        for mut watcher in watchers {
            while watcher.subscription.has_changed() {
                watcher.read(7);
            }
            let concerns = |key: &str| {
                let (namespace, name) = key.split_once('/').unwrap();
                watcher.interest.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
                    && watcher.interest.name.as_ref().is_none_or(|wanted| wanted == name)
            };
            let expected = world.changes.iter().filter(|(at, key, _)| *at > watcher.since && concerns(key));
            assert_eq!(watcher.delivered, expected.cloned().collect::<Vec<_>>(), "seed {seed}");
            assert!(watcher.subscription.position() >= world.table.last_change());
        }
    }
}

#[test]
fn changes_above_the_closed_revision_are_not_shown() {
    let mut world = World::new(3, 4, 8);
    world.write();
    (0..4).for_each(|group_number| world.apply(group_number, 1));
    let (first, key) = (world.changes[0].0, world.changes[0].1.clone());
    let start = world.table.revision();
    assert!(start < first, "three groups may still write before it");
    assert!(world.table.snapshot().get(&key).unwrap().is_none());
    assert!(world.table.get(&key).is_some(), "the object itself is known");
    assert!(world.table.changes(start, 10).unwrap().is_empty());
    let mut before = world.table.subscribe(Interest::default(), start).unwrap();
    // The client that wrote it may watch from there, although other clients see nothing up to there yet.
    let after = world.table.subscribe(Interest::default(), first).unwrap();
    world.table.announce();
    assert!(!before.has_changed() && !after.has_changed());
    assert_eq!((before.position(), after.position()), (start, first));
    world.close_all();
    let mut changes = Vec::new();
    before.read(10, &mut changes).unwrap();
    assert_eq!(changes.iter().map(|change| change.revision()).collect::<Vec<_>>(), [first]);
    let mut after = after;
    assert!(!after.read(10, &mut changes).unwrap() && changes.len() == 1);
    assert_eq!(world.table.changes(start, 10).unwrap().len(), 1);
}

#[test]
fn history_is_kept_from_the_closed_revision_on() {
    let mut world = World::new(5, 3, 3);
    for _ in 0..50 {
        world.write();
    }
    world.close_all();
    let closed = world.table.revision();
    // One group goes on writing while the others are idle: the revision up to which they are closed must stay readable.
    let key = world.changes[0].1.clone();
    let group_number = world.table.write_shard(&key).clock.group_number();
    while world.changes.last().unwrap().0 < Revision::new(closed.get() + 20 * 256) {
        let revision = world.revision(group_number);
        let current = world.table.get(&key).map(|object| object.revision());
        let expectation = current.map_or(Expectation::Absent, Expectation::Revision);
        let (table, operation) = (TableId::new("pods"), put(&key, "n0", revision));
        let shard = world.table.write_shard(&key).shard;
        let command = Command { table, epoch: 1, shard, key: Key::new(&key), revision, expectation, operation };
        world.table.shard(shard).apply(&[&command]);
        world.table.write_shard(&key).clock.raise(revision);
        world.changes.push((revision, key.clone(), false));
    }
    for number in 0..world.table.shard_count() {
        world.table.shard(number).trim(Revision::LAST, 0, world.table.revision(), Instant::now());
    }
    assert_eq!(world.table.revision(), closed);
    assert_eq!(world.table.snapshot().revision(), closed);
    let snapshot = world.table.snapshot();
    world.check_snapshot(&snapshot);
}

#[test]
fn subscribers_get_changes_after_the_closed_revision_went_back() {
    let mut world = World::new(7, 2, 2);
    let ahead = Arc::new(GroupClock::new("default".into(), 0, Arc::default(), HybridClock::default(), HISTORY));
    ahead.raise(Revision::new(BASE + 1_000_000));
    let placed = PlacedShard { shard: Arc::new(Shard::new(Revision::new(BASE), [])), clock: ahead };
    let divisions = [Arc::new(Division::new(0, vec![placed]))].into();
    // As after a restart, when the shard map is not known yet.
    let table = Arc::new(Table::new(TableId::new("pods"), divisions, Duration::from_secs(60)));
    table.announce();
    let mut early = table.subscribe(Interest::default(), table.revision()).unwrap();
    table.divide(world.table.divisions());
    assert!(early.has_changed() && early.read(1, &mut Vec::new()).is_err(), "it begins again");
    drop(early);
    world.table = table;
    let mut watcher = Watcher::new(&world.table, Interest::default(), Revision::new(BASE));
    (0..20).for_each(|_| world.write());
    world.close_all();
    watcher.read(usize::MAX);
    assert_eq!(watcher.delivered.len(), 20);
}
