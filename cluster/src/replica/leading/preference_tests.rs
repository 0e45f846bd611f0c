//! Groups with a preferred leader.

use std::collections::BTreeMap;

use crate::disk::simulated::SimulatedDisk;
use crate::limits::BALANCE_INTERVAL;
use crate::replica::test_cluster::{Cluster, again, create, undisturbed, until};
use crate::{MembersError, Store};

/// Returns the name of the member that leads a group, as a store knows.
fn leader(store: &Store, group: &str) -> String {
    let members = store.cluster().members;
    let leads = |member: &&crate::MemberStatus| member.leads.iter().any(|led| led == group);
    members.iter().find(leads).map(|member| member.name.clone()).unwrap_or_default()
}

/// Returns how many groups a member leads, as a store knows.
fn led(store: &Store, name: &str) -> usize {
    store.cluster().members.iter().filter(|member| member.name == name).map(|member| member.leads.len()).sum()
}

async fn some_rounds() {
    tokio::time::sleep(BALANCE_INTERVAL * 3).await;
}

async fn open_three(cluster: &Cluster) -> [Store; 3] {
    <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"))
}

async fn shut_down(stores: impl IntoIterator<Item = Store>) {
    futures_util::future::join_all(stores.into_iter().map(Store::shutdown)).await;
}

#[tokio::test]
async fn a_group_returns_to_its_preferred_member_after_restarts() {
    let cluster = Cluster::new(&["a", "b", "c"], 2);
    let [a, b, c] = open_three(&cluster).await;
    again(async || a.prefer(None, "b").await).await;
    again(async || a.prefer(None, "b").await).await; // safe to repeat
    let keeps = async || {
        until("b leads everything", || led(&b, "b") == 3).await;
        some_rounds().await;
        led(&a, "b") == 3
    };
    undisturbed("it keeps them although that is uneven", keeps).await;

    b.shutdown().await;
    until("others lead", || led(&a, "a") + led(&a, "c") == 3).await;
    create(&a, "ns/first").await;
    let b = cluster.open("b").await;
    until("b leads everything again", || led(&a, "b") == 3).await;

    let id = b.node();
    shut_down([a, b, c]).await;
    let [a, b, c] = open_three(&cluster).await;
    let keeps = async || {
        until("b leads everything again", || led(&a, "b") == 3).await;
        some_rounds().await;
        led(&c, "b") == 3
    };
    undisturbed("it keeps them after all were restarted", keeps).await;
    let groups = ["default", "g1", "g2"].map(|group| (group.to_owned(), id));
    assert_eq!(c.cluster().preferred, BTreeMap::from(groups));

    again(async || b.prefer_nobody(Some("g1")).await).await;
    assert_eq!(b.cluster().preferred.len(), 2);
    again(async || c.prefer_nobody(None).await).await;
    assert!(c.cluster().preferred.is_empty());
    until("leaders are spread", || ["a", "b", "c"].iter().all(|name| led(&a, name) == 1)).await;
    shut_down([a, b, c]).await;
}

#[tokio::test]
async fn a_transfer_outlasts_older_preferences_for_a_while() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let [a, b, c] = open_three(&cluster).await;
    again(async || a.prefer(Some("g1"), "b").await).await;
    until("c knows", || c.cluster().preferred.len() == 1).await;
    let stays = async || {
        again(async || a.transfer(Some("g1"), "c").await).await;
        some_rounds().await;
        leader(&b, "g1") == "c"
    };
    undisturbed("it stays where it was transferred to", stays).await;

    again(async || a.prefer(Some("g1"), "a").await).await;
    until("a leads", || leader(&a, "g1") == "a").await;
    a.shutdown().await;
    until("another leads", || ["b", "c"].contains(&&*leader(&b, "g1"))).await;
    let a = cluster.open("a").await;
    until("a leads again, whoever held it", || leader(&b, "g1") == "a").await;
    shut_down([a, b, c]).await;
}

#[tokio::test]
async fn a_preference_is_stored_although_the_member_cannot_lead_yet() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let [a, b, c] = open_three(&cluster).await;
    again(async || b.drain("b").await).await;
    let deferred = a.prefer(Some("g1"), "b").await.unwrap_err();
    assert!(matches!(deferred, MembersError::Deferred { .. }), "{deferred}");
    assert!(deferred.to_string().ends_with("cannot lead yet: b: the member is drained"), "{deferred}");
    let stays_away = async || {
        some_rounds().await;
        leader(&a, "g1") != "b"
    };
    undisturbed("b does not lead while it is drained", stays_away).await;
    again(async || a.undrain("b").await).await;
    until("b leads", || leader(&a, "g1") == "b").await;
    for refused in [a.prefer(Some("none"), "b").await, a.prefer_nobody(Some("none")).await] {
        assert_eq!(refused, Err(MembersError::UnknownGroup("none".into())));
    }
    assert_eq!(a.prefer(None, "nobody").await, Err(MembersError::Unknown("nobody".into())));
    shut_down([a, b, c]).await;
}

#[tokio::test]
async fn a_replacement_inherits_the_preference_and_its_removal_ends_it() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 2);
    let [a, b, c] = open_three(&cluster).await;
    again(async || a.prefer(None, "c").await).await;
    again(async || a.prefer(Some("g2"), "b").await).await;
    c.shutdown().await;
    cluster.disks.insert("c".to_owned(), SimulatedDisk::default());
    let c = cluster.begin("c").await;
    again(async || a.admit("c", &cluster.addresses["c"].to_string()).await).await;
    until("c leads again", || led(&a, "c") == 2).await;
    let preferred = |store: &Store| store.registry().map().preferred.clone();
    assert_eq!(preferred(&a), [(0, c.node()), (1, c.node()), (2, b.node())].into());

    again(async || a.remove("c").await).await;
    assert_eq!(preferred(&a), [(2, b.node())].into());
    create(&a, "ns/first").await;
    shut_down([a, b, c]).await;
}

#[tokio::test]
async fn ids_of_former_members_are_ignored_and_a_single_replica_takes_preferences() {
    let mut cluster = Cluster::new(&["a", "b"], 1);
    let [a, b] = <[Store; 2]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("two"));
    // As in a map that outlived its members.
    again(async || a.change_preferences(|map| map.preferring([0, 1], Some(1))).await).await;
    assert!(a.cluster().preferred.is_empty(), "nobody has that id");
    let are_spread = async || {
        some_rounds().await;
        (led(&a, "a"), led(&a, "b")) == (1, 1)
    };
    undisturbed("leaders are spread as if nothing were preferred", are_spread).await;
    again(async || a.remove("b").await).await;
    again(async || a.prefer(Some("g1"), "a").await).await;
    assert_eq!(a.cluster().preferred, [("g1".to_owned(), a.node())].into());
    shut_down([a, b]).await;
    cluster.addresses.remove("b");
    let a = cluster.open("a").await;
    create(&a, "ns/first").await;
    until("a leads everything", || led(&a, "a") == 2).await;
    a.shutdown().await;
}
