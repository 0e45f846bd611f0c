//! Groups that rest on three replicas, and the events that wake them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::limits::{ELECTION_TIMEOUT, QUORUM_SILENCE_MAX, REST_AFTER};
use crate::replica::test_cluster::{Cluster, PATIENCE, again, create, read, undisturbed, until};
use crate::{GroupStatus, Standing, Store};

fn groups(store: &Store) -> Vec<GroupStatus> {
    store.status().groups
}

/// Waits until every group rests on every replica. Returns the term of each group.
async fn all_rest(stores: &[Store]) -> BTreeMap<String, u64> {
    let all = || stores.iter().flat_map(groups).collect::<Vec<_>>();
    until("all groups rest", || all().iter().all(|group| group.rests)).await;
    all().into_iter().map(|group| (group.name, group.term)).collect()
}

/// Waits longer than any replica waits for a missing leader.
async fn wait_for_elections() {
    tokio::time::sleep(4 * ELECTION_TIMEOUT.end).await;
}

#[tokio::test]
async fn idle_groups_rest_until_a_write_or_read_wakes_them() {
    let cluster = Cluster::new(&["a", "b", "c"], 6);
    let stores = cluster.open_all().await;
    let (mut quiet, mut awake) = (0, 0);
    for (number, store) in stores.iter().enumerate() {
        let terms = all_rest(&stores).await;
        tokio::time::sleep(QUORUM_SILENCE_MAX).await;
        until("all are available although they rest", || stores.iter().all(Store::is_available)).await;
        let key = format!("ns/{number}");
        let revision = create(store, &key).await;
        until("all are available", || stores.iter().all(Store::is_available)).await;
        for store in &stores {
            assert_eq!(read(store, &key).await, Some(revision));
            awake += u32::from(groups(store).iter().any(|group| !group.rests));
        }
        quiet += u32::from(all_rest(&stores).await == terms);
    }
    // On a machine that stands still now and then, a replica may be considered missing although it is up, and a group
    // may rest again before the test looks.
    assert!(awake > 4, "whoever writes or reads is awake, not only {awake} times of 9");
    assert!(quiet > 0, "neither rest nor waking deposes anybody");
    for store in stores {
        store.shutdown().await;
    }
}

#[tokio::test]
async fn a_candidate_wakes_a_resting_leader_and_gets_no_vote() {
    let cluster = Cluster::new(&["a", "b", "c"], 0);
    let stores = cluster.open_all().await;
    let node = |store: &Store| store.running().groups.nodes().remove(0);
    let gets_no_vote = async || {
        let terms = all_rest(&stores).await;
        let follower = stores.iter().map(node).find(|node| node.roster().leader() != Some(node.id())).unwrap();
        let leader = follower.roster().leader();
        wait_for_elections().await; // the last heartbeat is long past
        follower.resting().stand_if_others_would_vote().await;
        let leads = |store: &&Store| Some(store.node()) == leader;
        let is_woken = || stores.iter().filter(leads).all(|store| !groups(store)[0].rests);
        let began = Instant::now();
        while !is_woken() {
            if began.elapsed() > REST_AFTER {
                return false; // or it rests again, because this test stood still
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        wait_for_elections().await;
        follower.roster().leader() == leader && all_rest(&stores).await == terms
    };
    undisturbed("the leader wakes and stays", gets_no_vote).await;
}

#[tokio::test]
async fn groups_rest_while_a_member_is_down_and_wake_when_it_returns() {
    let cluster = Cluster::new(&["a", "b", "c"], 3);
    let mut stores = cluster.open_all().await;
    all_rest(&stores).await;
    stores.remove(1).shutdown().await;
    let first = create(&stores[0], "ns/first").await;
    all_rest(&stores).await;
    wait_for_elections().await;
    let terms = all_rest(&stores).await;
    let began = Instant::now();
    stores.push(cluster.open("b").await);
    assert_eq!(read(&stores[2], "ns/first").await, Some(first));
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert_eq!(all_rest(&stores[..2]).await.len(), terms.len());
}

#[tokio::test]
async fn groups_rest_while_a_removed_member_asks_for_votes() {
    let cluster = Cluster::new(&["a", "b", "c"], 3);
    let stores = cluster.open_all().await;
    again(async || stores[0].remove("c").await).await;
    let (members, removed) = stores.split_at(2);
    until("c knows", || *removed[0].standing().borrow() == Standing::Removed).await;
    let rest = async || {
        let terms = all_rest(members).await;
        for _ in 0..30 {
            tokio::time::sleep(ELECTION_TIMEOUT.start / 2).await;
            if !members.iter().flat_map(groups).all(|group| group.rests) {
                return false;
            }
        }
        all_rest(members).await == terms
    };
    undisturbed("nobody wakes them", rest).await;
    // It takes part again as soon as it is admitted.
    again(async || stores[1].admit("c", &cluster.addresses["c"].to_string()).await).await;
    removed[0].ready().await;
    let first = create(&stores[2], "ns/first").await;
    assert_eq!(read(&stores[0], "ns/first").await, Some(first));
}
