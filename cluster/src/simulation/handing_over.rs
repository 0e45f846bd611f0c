//! Hands leadership over while something stands still: the process of the next leader, while another replica takes
//! over, or the disks of all followers.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use super::host::Crash;
use super::world::World;
use crate::Store;
use crate::limits::LEADER_TIMEOUT;
use crate::raft::Node;
use crate::shard_map::DEFAULT_GROUP;

/// How long an expected event may take, in milliseconds.
const PATIENCE_MS: u64 = 30_000;
/// How long an access to a disk that stands still takes, in milliseconds.
const STANDSTILL_MS: u64 = 10_000_000;
/// How long nothing may happen after the process goes on, in milliseconds.
const CALM_MS: u64 = 3_000;

/// Runs work with the store of a host. Returns its result.
pub(super) fn ask<T: 'static, F: Future<Output = T> + 'static>(
    world: &mut World,
    host: usize,
    work: impl FnOnce(Store) -> F + 'static,
) -> T {
    let (client, answer) = (world.hosts[host].client.clone(), Rc::new(RefCell::new(None)));
    let answered = answer.clone();
    world.spawn(async move { *answered.borrow_mut() = client.ask(work).await.ok() });
    assert!(world.wait(PATIENCE_MS, |_| answer.borrow().is_some()), "a host does not answer");
    answer.take().expect("an answer")
}

fn default_group(store: &Store) -> Node {
    store.running().groups.get(DEFAULT_GROUP).expect("it is there").leader_client.node().clone()
}

/// Returns the term and the leader of the group `default`, as a host knows them.
pub(super) fn reign(world: &mut World, host: usize) -> (u64, Option<u64>) {
    ask(world, host, |store| async move {
        let node = default_group(&store);
        (node.status(DEFAULT_GROUP).term, node.roster().leader())
    })
}

/// Lets time pass until all of these hosts follow the same leader in one term later than `after`. Returns both.
fn wait_for_leader(world: &mut World, hosts: &[usize], after: u64) -> (u64, u64) {
    for _ in 0..PATIENCE_MS {
        let reigns: Vec<_> = hosts.iter().map(|host| reign(world, *host)).collect();
        if let (term, Some(leader)) = reigns[0]
            && term > after
            && reigns.iter().all(|reign| *reign == reigns[0])
        {
            return (term, leader);
        }
    }
    panic!("nobody leads");
}

/// Makes a host ask another one to lead, without waiting for the answer.
fn hand_over(world: &mut World, from: usize, to: u64) {
    ask(world, from, move |store| async move { default_group(&store).leadership().hand_over_without_answer(to).await });
}

/// Starts three hosts. Returns them with their ids, the term, and the index of the leader.
pub(super) fn three(seed: u64) -> (World, Vec<u64>, (u64, usize)) {
    let mut world = World::new(seed, 3, false);
    world.hosts.iter_mut().for_each(|host| host.start());
    for host in 0..3 {
        assert!(world.wait(PATIENCE_MS, |world| world.hosts[host].client.is_open()));
        ask(&mut world, host, |store| async move { store.ready().await });
    }
    let ids: Vec<u64> = (0..3).map(|host| ask(&mut world, host, |store| async move { store.node() })).collect();
    let (term, leader) = wait_for_leader(&mut world, &[0, 1, 2], 0);
    let first = ids.iter().position(|id| *id == leader).expect("a member");
    (world, ids, (term, first))
}

/// Returns whether a host takes writes as the leader.
fn takes_writes(world: &mut World, host: usize) -> bool {
    ask(world, host, |store| async move { default_group(&store).tenure().is_some() })
}

#[test]
fn a_leader_elected_during_a_disk_standstill_leads_after_it() {
    for seed in 1..9 {
        let (mut world, ids, (term, first)) = three(seed);
        let (next, other) = ((first + 1) % 3, (first + 2) % 3);
        hand_over(&mut world, first, ids[next]);
        while reign(&mut world, next).1 != Some(ids[next]) {}
        for follower in [first, other] {
            world.hosts[follower].condition.disk_ms.store(STANDSTILL_MS, Ordering::Relaxed);
        }
        world.wait(2 * LEADER_TIMEOUT.as_millis() as u64 + CALM_MS, |_| false);
        if takes_writes(&mut world, next) {
            continue; // an entry was written before the disks stood still, or soon after
        }
        world.calm_disk(other);
        world.hosts[other].crash(Crash::Kill);
        world.hosts[other].start();
        assert!(world.wait(PATIENCE_MS, |world| world.hosts[other].client.is_open()));
        let (later, leader) = wait_for_leader(&mut world, &[next, other], term);
        assert_eq!(leader, ids[next], "seed {seed}: another one leads in term {later}");
        world.wait(CALM_MS, |_| false);
        assert!(takes_writes(&mut world, next), "seed {seed}");
        return;
    }
    panic!("the disks never stood still in time");
}

#[test]
fn a_frozen_successor_does_not_depose_the_present_leader() {
    for seed in 1..6 {
        let (mut world, ids, (term, first)) = three(seed);
        let (second, third) = ((first + 1) % 3, (first + 2) % 3);
        // Of two candidates in one term, the one with the larger id deposes the other.
        let (next, still) = if ids[second] < ids[third] { (second, third) } else { (third, second) };

        world.hosts[still].is_frozen = true;
        hand_over(&mut world, first, ids[still]);
        hand_over(&mut world, first, ids[next]);
        let reign = wait_for_leader(&mut world, &[first, next], term);
        assert_eq!(reign.1, ids[next]);
        // The request to lead reaches it before it hears of the present leader.
        world.shared_network.cut(next, still, true);
        world.hosts[still].is_frozen = false;
        world.wait(50, |_| false);
        world.shared_network.cut(next, still, false);
        assert_eq!(wait_for_leader(&mut world, &[first, next, still], term), reign, "seed {seed}");
        world.wait(CALM_MS, |_| false);
        assert_eq!(wait_for_leader(&mut world, &[first, next, still], term), reign, "seed {seed}");
    }
}
