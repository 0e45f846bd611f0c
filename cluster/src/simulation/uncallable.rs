//! A leader that the others cannot call. It is cut off from one, and hears another only over connections that it made
//! before.

use super::faults::{make_callable, make_uncallable};
use super::handing_over::{ask, reign, three};
use super::world::{PLAIN, SPREAD, World};
use crate::{Draft, Expectation, Key, Layout, Mutation, Outcome, Revision, Store, TableId, Write};

/// How long it may take until others lead and take writes, in milliseconds.
const HAND_OVER_MS: u64 = 8_000;
/// How long the groups may take to be spread over the others, and how long each must then stay where it is, in
/// milliseconds.
const CALM_MS: u64 = 10_000;

/// Creates an object in a table. Returns whether it was committed.
async fn create(store: Store, table: &str, key: String) -> bool {
    let mut bytes = vec![b'0'; Revision::DIGITS];
    bytes.push(b' ');
    let mutation = Mutation::Put(Draft { bytes, layout: Layout::default(), ..Draft::default() });
    let (table, key) = (TableId::new(table), Key::namespaced("x", &key));
    let written = store.write(Write { table, key, expectation: Expectation::Absent, mutation }).await;
    matches!(written, Ok(Outcome::Committed { .. }))
}

/// Creates objects through a host until one is committed in every group.
fn write_everywhere(world: &mut World, host: usize) {
    let began = world.time.now_ms();
    // Eight keys are in different shards.
    for (table, number) in [PLAIN, SPREAD].into_iter().flat_map(|table| (0..8).map(move |number| (table, number))) {
        loop {
            let (now, name) = (world.time.now_ms(), world.hosts[host].name.clone());
            if ask(world, host, move |store| create(store, table, format!("{name}-{number}-{now}"))) {
                break;
            }
            assert!(now < began + HAND_OVER_MS, "{name} writes nothing", name = world.hosts[host].name);
        }
    }
    let took = world.time.now_ms() - began;
    assert!(took < HAND_OVER_MS, "{} writes after {took} ms", world.hosts[host].name);
}

/// Makes the first host lead everything and then uncallable, with the connections that `make_uncallable` lets remain.
/// Checks that the others take writes, and go on, and that the first host follows once it can be called.
fn check(seed: u64, remaining: usize) {
    let (mut world, ids, _) = three(seed);
    let name = world.hosts[0].name.clone();
    ask(&mut world, 0, move |store| async move { store.transfer(None, &name).await }).expect("it can lead");
    let client = world.hosts[0].client.clone();
    make_uncallable(&world, 0, 1, remaining);
    world.spawn(async move {
        // So that it has an entry that may reach no other.
        let _ = client.ask(|store| create(store, PLAIN, "lost".into())).await;
    });
    write_everywhere(&mut world, 1);
    write_everywhere(&mut world, 2);
    world.wait(CALM_MS, |_| false);
    let led = reign(&mut world, 2);
    assert_ne!(led.1, Some(ids[0]), "seed {seed}");
    world.wait(CALM_MS, |_| false);
    assert_eq!(reign(&mut world, 1), led, "seed {seed}: it is handed back and forth");
    assert_eq!(reign(&mut world, 2), led, "seed {seed}");
    make_callable(&world, 0);
    write_everywhere(&mut world, 0);
}

#[test]
fn a_leader_that_others_cannot_call_hands_over() {
    for seed in 1..6 {
        check(seed, usize::MAX);
    }
}

#[test]
fn a_leader_that_gets_no_entries_to_others_hands_over() {
    for seed in 1..6 {
        check(seed, 1);
    }
}
