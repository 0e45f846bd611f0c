//! Changes of members that would end a cluster, and members that move.

use std::collections::BTreeMap;
use std::time::Duration;

use flotilla_proto::replication::{Administer, administration};
use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::sharding::mapping;
use super::test_cluster::{Cluster, PATIENCE, again, create, divide, pods, read, until, unused_address};
use crate::disk::simulated::SimulatedDisk;
use crate::limits::LEADER_WAIT;
use crate::raft::{GONE, Unchanged};
use crate::shard_map::DEFAULT_GROUP;
use crate::{Expectation, MembersError, Outcome, Standing, Store};

/// Returns why a member is not removed. Asks again while there is no leader that could say it.
async fn kept(store: &Store, name: &str) -> String {
    let refused = async {
        loop {
            match store.remove(name).await.unwrap_err() {
                MembersError::Refused { reason, .. } if reason != "it has no leader" => return reason,
                MembersError::Refused { .. } | MembersError::Unavailable(_) => {}
                other => panic!("{other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("an answer in time")
}

#[tokio::test]
async fn a_member_is_not_removed_if_the_others_would_be_too_few() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let [a, b, c] = <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"));
    c.shutdown().await;
    let sees_c = || a.cluster().members.iter().any(|member| member.name == "c" && member.reachable);
    until("c is missed", || !sees_c()).await;
    for (store, name) in [(&a, "b"), (&b, "a"), (&a, "a"), (&b, "b")] {
        let why = kept(store, name).await;
        assert!(why.contains("1 of the 2 members that would vote"), "{why}");
    }
    create(&a, "ns/first").await;
    again(async || a.remove("c").await).await;
    create(&b, "ns/second").await;
    again(async || a.remove("b").await).await;
    assert!(kept(&a, "a").await.contains("the last member cannot be removed"));
    create(&a, "ns/third").await;
    a.shutdown().await;
    b.shutdown().await;
}

#[tokio::test]
async fn a_member_at_a_new_address_is_sent_the_log_there() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 1);
    let [a, b, c] = <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"));
    c.shutdown().await;
    let elsewhere = unused_address();
    cluster.addresses.insert("c".into(), elsewhere);
    let c = cluster.begin("c").await;
    // It calls the others, but they do not call it.
    until("it asks the leader", || a.cluster().members.iter().all(|member| member.reachable)).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!c.is_available(), "it is sent nothing");
    }
    again(async || a.admit("c", &elsewhere.to_string()).await).await;
    let first = create(&a, "ns/first").await;
    c.ready().await;
    until("it is of use", || c.is_available()).await;
    assert_eq!(read(&c, "ns/first").await, Some(first));
    // Its vote counts.
    b.shutdown().await;
    let second = create(&a, "ns/second").await;
    assert_eq!(read(&c, "ns/second").await, Some(second));
    a.shutdown().await;
    c.shutdown().await;
}

#[tokio::test]
async fn a_removed_member_goes_together_with_its_half_finished_replacement() {
    for pause_ms in [0, 3, 10, 30] {
        let mut cluster = Cluster::new(&["a", "b", "c"], 2);
        let [a, b, c] = <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"));
        again(async || b.transfer(None, "a").await).await;
        create(&a, "ns/first").await;
        c.shutdown().await;
        cluster.disks.insert("c".to_owned(), SimulatedDisk::default());
        let c = cluster.begin("c").await;
        let address = cluster.addresses["c"].to_string();
        // The caller stops waiting, and no other replica goes on with the remaining groups.
        let _ = tokio::time::timeout(Duration::from_millis(pause_ms), a.admit("c", &address)).await;
        let removing = async {
            while let Err(MembersError::Refused { .. }) = b.remove("c").await {
                tokio::time::sleep(Duration::from_millis(20)).await; // the change that was started has not ended yet
            }
        };
        tokio::time::timeout(PATIENCE, removing).await.expect("it is removed");
        for store in [&a, &b] {
            until("neither is a member", || store.cluster().members.iter().all(|member| member.name != "c")).await;
        }
        create(&b, "ns/second").await;
        for store in [a, b, c] {
            store.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_member_shows_nothing_before_it_applies_the_entry_with_its_vote() {
    for (groups, held) in [(0, DEFAULT_GROUP), (1, "g1")] {
        let cluster = Cluster::new(&["a", "b", "c"], groups);
        let [a, b, c] = <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"));
        again(async || a.remove("c").await).await;
        let votes = || c.running().groups.nodes().iter().filter(|node| node.exclusion().has_vote()).count();
        until("c knows", || *c.standing().borrow() == Standing::Removed && votes() == 0).await;
        let (release, released) = oneshot::channel();
        let node = c.running().groups.get(held).unwrap().leader_client.node().clone();
        node.reading().hold_applying(released.map(drop)).await;
        let first = create(&a, "ns/first").await;
        // The others consider it a voter that has everything, since its log has that.
        again(async || a.admit("c", &cluster.addresses["c"].to_string()).await).await;
        until("c has its votes", || votes() == c.running().groups.nodes().len()).await;
        let shown = async || {
            let mut standing = c.standing();
            standing.wait_for(|standing| standing.is_member()).await.unwrap();
            c.table(&pods()).get("ns/first").map(|object| object.revision())
        };
        let early = tokio::time::timeout(Duration::from_secs(1), shown()).await;
        assert!(early.is_err(), "{held} is shown without what was acknowledged: {early:?}");
        release.send(()).unwrap();
        assert_eq!(tokio::time::timeout(PATIENCE, shown()).await, Ok(Some(first)));
        for store in [a, b, c] {
            store.shutdown().await;
        }
    }
}

/// Opens one more replica, which was not admitted, and returns its address.
async fn begin_besides(cluster: &mut Cluster, name: &str) -> (Store, String) {
    let address = unused_address();
    cluster.addresses.insert(name.into(), address);
    cluster.disks.insert(name.into(), SimulatedDisk::default());
    (cluster.begin(name).await, address.to_string())
}

/// Returns the names of the members with a vote in a group, as a store knows.
fn voters(store: &Store, group: &str) -> Vec<String> {
    let members = store
        .running()
        .groups
        .get(group)
        .map(|group| group.leader_client.node().roster().members())
        .unwrap_or_default();
    let mut names: Vec<String> = members.into_iter().filter(|m| m.votes).map(|m| m.name).collect();
    names.sort();
    names
}

fn votes(store: &Store, name: &str) -> bool {
    store.cluster().members.iter().any(|member| member.name == name && member.votes)
}

/// Waits until exactly these members have a vote in this many groups.
async fn until_voters_are(store: &Store, names: &[&str], groups: usize) {
    let all = || store.status().groups.into_iter().map(|group| voters(store, &group.name)).collect::<Vec<_>>();
    let holds = || all().len() == groups && all().iter().all(|voters| voters == names);
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(waited.await.is_ok(), "{:?} should vote in {groups} groups: {:?}", names, all());
}

async fn ready_in_time(store: &Store) {
    tokio::time::timeout(PATIENCE, store.ready()).await.expect("ready in time");
}

#[tokio::test]
async fn a_member_that_joins_during_a_division_votes_in_the_new_groups() {
    for pause_ms in [0, 1, 3, 10, 30] {
        let mut cluster = Cluster::new(&["a", "b", "c"], 0);
        let stores = cluster.open_all().await;
        let (d, address) = begin_besides(&mut cluster, "d").await;
        let dividing = async {
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            stores[1].divide(&pods(), 8).await
        };
        let joining = again(async || stores[0].admit("d", &address).await);
        let ((), divided) = tokio::join!(joining, dividing);
        divided.unwrap();
        until_voters_are(&stores[2], &["a", "b", "c", "d"], 9).await;
        ready_in_time(&d).await;
        until("its votes are seen", || votes(&stores[0], "d") && votes(&d, "d")).await;
        d.shutdown().await;
        futures_util::future::join_all(stores.into_iter().map(Store::shutdown)).await;
    }
}

#[tokio::test]
async fn groups_founded_during_a_removal_lack_the_removed_member() {
    for pause_ms in [0, 1, 3, 10, 30] {
        let cluster = Cluster::new(&["a", "b"], 0);
        let [a, b] = <[Store; 2]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("two"));
        let removing = async {
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            again(async || a.remove("b").await).await;
        };
        let table = pods();
        let ((), divided) = tokio::join!(removing, a.divide(&table, 4));
        divided.unwrap();
        until_voters_are(&a, &["a"], 5).await;
        b.shutdown().await;
        create(&a, "ns/first").await;
        a.shutdown().await;
    }
}

#[tokio::test]
async fn a_division_decided_before_a_change_of_members_is_not_begun() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 0);
    let stores = cluster.open_all().await;
    let (d, address) = begin_besides(&mut cluster, "d").await;
    for joins in [true, false] {
        let (tables, groups) = (stores[0].registry(), &stores[0].running().groups);
        let (map, at) = tables.maps().borrow().clone();
        match joins {
            true => again(async || stores[1].admit("d", &address).await).await,
            false => again(async || stores[1].remove("d").await).await,
        }
        let divided = map.dividing(&pods(), 4, &BTreeMap::new()).unwrap().unwrap();
        let outcome = mapping::write(tables, groups, Expectation::Revision(at), &divided).await.unwrap();
        assert!(matches!(outcome, Outcome::Conflict { .. }), "{outcome:?}");
    }
    d.shutdown().await;
    futures_util::future::join_all(stores.into_iter().map(Store::shutdown)).await;
}

#[tokio::test]
async fn a_member_changes_groups_that_it_did_not_know_yet() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 0);
    let [a, b, c] = <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"));
    again(async || b.transfer(None, "b").await).await;
    let (d, address) = begin_besides(&mut cluster, "d").await;
    let (release, released) = oneshot::channel();
    let node = a.running().groups.get(DEFAULT_GROUP).unwrap().leader_client.node().clone();
    node.reading().hold_applying(released.map(drop)).await;
    divide(&b, 4).await;
    assert_eq!(a.running().groups.all().len(), 1, "a has not heard of the map");
    let releasing = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        release.send(()).unwrap();
    };
    tokio::join!(again(async || a.admit("d", &address).await), releasing);
    until_voters_are(&b, &["a", "b", "c", "d"], 5).await;
    ready_in_time(&d).await;
    for store in [a, b, c, d] {
        store.shutdown().await;
    }
}

#[tokio::test]
async fn a_member_is_shown_as_a_voter_only_when_it_votes_in_every_group() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 2);
    let stores = cluster.open_all().await;
    let (d, address) = begin_besides(&mut cluster, "d").await;
    let (name, member) = ("d".to_owned(), d.node());
    let admit = Administer { action: administration::ADMIT, member, name, address, ..Administer::default() };
    let default = stores[0].running().groups.get(DEFAULT_GROUP).unwrap();
    default.leader_client.administer(admit.clone()).await.unwrap();
    until("d has a vote in one group", || voters(&stores[0], DEFAULT_GROUP).contains(&"d".to_owned())).await;
    assert!(!votes(&stores[0], "d") && votes(&stores[0], "a"));
    again(async || stores[1].admit("d", &admit.address).await).await;
    until("d has all votes", || votes(&stores[0], "d")).await;
    d.shutdown().await;
    futures_util::future::join_all(stores.into_iter().map(Store::shutdown)).await;
}

#[tokio::test]
async fn changes_of_members_through_different_replicas_do_not_undo_each_other() {
    for pause_ms in [0, 1, 3, 10, 30] {
        let mut cluster = Cluster::new(&["a", "b", "c"], 2);
        let stores = cluster.open_all().await;
        let (d, address) = begin_besides(&mut cluster, "d").await;
        let removing = async {
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            again(async || stores[1].remove("c").await).await;
        };
        tokio::join!(again(async || stores[0].admit("d", &address).await), removing);
        until_voters_are(&stores[0], &["a", "b", "d"], 3).await;
        d.shutdown().await;
        futures_util::future::join_all(stores.into_iter().map(Store::shutdown)).await;
    }
}

#[tokio::test]
async fn a_replica_reads_the_newest_members_before_it_reports_one_as_unknown() {
    let cluster = Cluster::new(&["a", "b", "c"], 0);
    let [a, b, c] = <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"));
    assert_eq!(a.remove("d").await, Err(MembersError::Unknown("d".into())));
    again(async || a.remove("c").await).await;
    until("c knows", || *c.standing().borrow() == Standing::Removed).await;
    let address = cluster.addresses["c"].to_string();
    assert_eq!(c.remove("b").await, Err(MembersError::NoMember));
    assert_eq!(c.admit("c", &address).await, Err(MembersError::NoMember));
    assert_eq!(c.drain("d").await, Err(MembersError::NoMember));
    b.shutdown().await;
    let sees_b = || a.cluster().members.iter().any(|member| member.name == "b" && member.reachable);
    until("b is missed", || !sees_b()).await;
    for answer in [a.remove("d").await, a.drain("d").await, a.transfer(None, "d").await] {
        assert!(matches!(answer, Err(MembersError::Unavailable(_))), "{answer:?}");
    }
    a.shutdown().await;
    c.shutdown().await;
}

/// Opens three stores, the first of which leads, and a fourth, which is shut down while the third is asked to admit it.
async fn admit_one_that_is_gone(cluster: &mut Cluster) -> (Vec<Store>, tokio::task::JoinHandle<Result<(), Unchanged>>) {
    let stores = cluster.open_all().await;
    again(async || stores[0].transfer(None, "a").await).await;
    let (d, address) = begin_besides(cluster, "d").await;
    let (name, member) = ("d".to_owned(), d.node());
    d.shutdown().await;
    let admit = Administer { action: administration::ADMIT, member, name, address, ..Administer::default() };
    let asked = stores[2].running().groups.get(DEFAULT_GROUP).unwrap();
    let admitting = tokio::spawn(async move { asked.leader_client.administer(admit).await });
    until("d is sent the log", || stores.iter().all(|store| knows(store, "d"))).await;
    (stores, admitting)
}

fn knows(store: &Store, name: &str) -> bool {
    store.cluster().members.iter().any(|member| member.name == name)
}

#[tokio::test]
async fn a_member_is_admitted_although_another_leads_before_it_has_caught_up() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 0);
    let (stores, admitting) = admit_one_that_is_gone(&mut cluster).await;
    tokio::time::sleep(LEADER_WAIT + Duration::from_secs(1)).await;
    again(async || stores[0].transfer(None, "b").await).await;
    let d = cluster.begin("d").await;
    let admitted = tokio::time::timeout(PATIENCE, admitting).await.expect("in time").unwrap();
    assert_eq!(admitted, Ok(()));
    ready_in_time(&d).await;
}

#[tokio::test]
async fn an_admission_ends_when_the_new_member_disappears() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 0);
    let (_stores, admitting) = admit_one_that_is_gone(&mut cluster).await;
    let admitted = tokio::time::timeout(PATIENCE, admitting).await.expect("in time").unwrap();
    assert!(matches!(&admitted, Err(Unchanged::Refused(why)) if why.contains("repeat the command")), "{admitted:?}");
}

#[tokio::test]
async fn an_admission_ends_when_the_new_member_is_removed() {
    for leader_changes in [false, true] {
        let mut cluster = Cluster::new(&["a", "b", "c"], 0);
        let (stores, admitting) = admit_one_that_is_gone(&mut cluster).await;
        again(async || stores[1].remove("d").await).await;
        until("nobody knows it", || !stores.iter().any(|store| knows(store, "d"))).await;
        if leader_changes {
            again(async || stores[0].transfer(None, "b").await).await;
        }
        let admitted = tokio::time::timeout(PATIENCE, admitting).await.expect("in time").unwrap();
        assert_eq!(admitted, Err(Unchanged::Refused(GONE.into())));
        assert!(!stores.iter().any(|store| knows(store, "d")), "it stays removed");
    }
}

#[tokio::test]
async fn a_transfer_fails_if_another_member_than_the_named_one_leads() {
    let cluster = Cluster::new(&["a", "b", "c"], 0);
    let [a, b, c] = <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"));
    again(async || b.transfer(None, "a").await).await;
    let node = |store: &Store| store.running().groups.get(DEFAULT_GROUP).unwrap().leader_client.node().clone();
    let (from, other, to) = (node(&a), node(&b), c.node());
    until("b knows who leads", || other.roster().leader() == Some(from.id())).await;
    let kept_up = async { while from.leadership().keep_up(&[to]).await.is_none() {} };
    tokio::time::timeout(PATIENCE, kept_up).await.expect("c has everything");
    c.shutdown().await; // it cannot take over
    let standing = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        other.leadership().succeed().await;
    };
    let (handed, ()) = tokio::join!(from.leadership().hand_over(to), standing);
    assert_eq!(handed, Err(Unchanged::NotLeader(Some(other.id()))));
    a.shutdown().await;
    b.shutdown().await;
}

#[tokio::test]
async fn the_only_voter_leads_on_although_it_asked_a_former_member_to_take_over() {
    let cluster = Cluster::new(&["a", "b"], 0);
    let [a, b] = <[Store; 2]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("two"));
    let (node, former) = (a.running().groups.get(DEFAULT_GROUP).unwrap().leader_client.node().clone(), b.node());
    again(async || b.transfer(None, "a").await).await;
    again(async || a.remove("b").await).await;
    until("a leads alone", || node.roster().leads_alone()).await;
    let term = || node.status(DEFAULT_GROUP).term;
    let before = term();
    // As when b still had a vote while a chose whom to ask, and lost it before the request was sent.
    node.leadership().hand_over_without_answer(former).await;
    create(&a, "ns/first").await;
    assert!(term() > before, "a has given up its term and stood for a new one");
    a.shutdown().await;
    b.shutdown().await;
}
