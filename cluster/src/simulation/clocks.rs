//! Clocks that differ: revisions follow the order in which writes were acknowledged, also between groups.

use std::time::Duration;

use super::bugs::{Bug, Making};
use super::handing_over::{ask, three};
use super::world::{SPREAD, World};
use crate::{Draft, Expectation, Key, Layout, Mutation, Outcome, Revision, Store, TableId, Write};

/// How far the clock of a host is set forward, in milliseconds.
const AHEAD_MS: i64 = 5_000;
/// How long it takes for a member to promise revisions when it hears of a clock only from others, in milliseconds.
const HEARSAY_MS: u64 = 1_000;
/// The interval at which a client looks for the object that is being written.
const POLL_INTERVAL: Duration = Duration::from_micros(100);

/// Returns a key of the table that belongs to the group with this name.
async fn key_in(store: &Store, group: &'static str) -> Key {
    let table = store.table(&TableId::new(SPREAD));
    let mut keys = (0..).map(|number| Key::namespaced("x", &format!("k{number}")));
    keys.find(|key| **table.write_shard(key.as_str()).clock.name() == *group).expect("one of them")
}

/// Makes a host lead a group.
fn lead(world: &mut World, host: usize, group: &'static str) {
    let name = world.hosts[host].name.clone();
    ask(world, host, move |store| async move { store.transfer(Some(group), &name).await }).expect("it can lead");
}

/// Creates an object in a group. Returns its revision.
async fn create_in(store: Store, group: &'static str) -> Revision {
    let mut bytes = vec![b'0'; Revision::DIGITS];
    bytes.push(b' ');
    let mutation = Mutation::Put(Draft { bytes, layout: Layout::default(), ..Draft::default() });
    let key = key_in(&store, group).await;
    let write = Write { table: TableId::new(SPREAD), key, expectation: Expectation::Absent, mutation };
    match store.write(write).await {
        Ok(Outcome::Committed { object, .. }) => object.revision(),
        other => panic!("it is not created: {other:?}"),
    }
}

/// Creates an object through a host, which leads the group.
fn create(world: &mut World, host: usize, group: &'static str) -> Revision {
    ask(world, host, move |store| create_in(store, group))
}

/// Returns a cluster in which two members each lead a group and hear of each other only from a third. The clock of the
/// first is far ahead.
fn apart(seed: u64) -> World {
    let (mut world, ..) = three(seed);
    lead(&mut world, 0, "g1");
    lead(&mut world, 1, "g2");
    world.shared_network.cut(0, 1, true);
    world.hosts[0].condition.skew_ms.store(AHEAD_MS, std::sync::atomic::Ordering::Relaxed);
    world
}

/// Writes through the first member, and then through the second. Returns the revisions, and how long the first write
/// took, in milliseconds.
fn two_writes(seed: u64) -> ([Revision; 2], u64) {
    let mut world = apart(seed);
    let begin = world.time.now_ms();
    let first = create(&mut world, 0, "g1");
    let took = world.time.now_ms() - begin;
    ([first, create(&mut world, 1, "g2")], took)
}

#[test]
fn a_write_is_acknowledged_once_all_others_will_assign_larger_revisions() {
    for seed in 1..6 {
        let (revisions, took) = two_writes(seed);
        assert!(revisions.is_sorted(), "seed {seed}: {revisions:?}");
        assert!(took < HEARSAY_MS, "seed {seed}: {took} ms");
    }
    let _making = Making::of(Some(Bug::UnpromisedAnswer));
    assert!((1..6).any(|seed| !two_writes(seed).0.is_sorted()), "this test shows nothing");
}

/// Writes through the first member, which shows the write before it is acknowledged, and after that through the second.
/// Returns the revisions.
fn seen_before(seed: u64) -> [Revision; 2] {
    let mut world = apart(seed);
    let client = world.hosts[0].client.clone();
    world.spawn(async move {
        let _ = client.ask(|store| create_in(store, "g1")).await;
    });
    let seen = ask(&mut world, 0, |store| async move {
        let (table, key) = (store.table(&TableId::new(SPREAD)), key_in(&store, "g1").await);
        let object = loop {
            match table.get(key.as_str()) {
                Some(object) => break object,
                None => tokio::time::sleep(POLL_INTERVAL).await,
            }
        };
        store.wait_promised(object.revision()).await.expect("others promise");
        object.revision()
    });
    [seen, create(&mut world, 1, "g2")]
}

#[test]
fn a_write_is_shown_once_all_others_will_assign_larger_revisions() {
    for seed in 1..6 {
        let revisions = seen_before(seed);
        assert!(revisions.is_sorted(), "seed {seed}: {revisions:?}");
    }
    let _making = Making::of(Some(Bug::UnpromisedAnswer));
    assert!((1..6).any(|seed| !seen_before(seed).is_sorted()), "this test shows nothing");
}
