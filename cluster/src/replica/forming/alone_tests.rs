//! A store that started without others and is given some, over the real transport.

use std::sync::Arc;
use std::time::Duration;

use crate::disk::simulated::SimulatedDisk;
use crate::machine::Machine;
use crate::replica::test_cluster::{Cluster, PATIENCE, again, create, pods, read};
use crate::{MembersError, Options, Revision, Standing, Store, TableOptions};

/// Opens the store on a disk as a single replica, as a server does that is given no others.
async fn alone(disk: &SimulatedDisk) -> Store {
    let sharded = TableOptions { shards: Some(1), ..TableOptions::default() };
    let tables = [(pods(), sharded)].into();
    let options = Options { wal_segment_bytes: 1 << 20, groups: 1, tables, ..Options::new("/store") };
    Store::open_on(Machine::with_disk(Arc::new(disk.clone())), None, options).await.unwrap()
}

/// Creates a store with one replica and one object, and closes it again.
async fn filled(disk: &SimulatedDisk, key: &str) -> Revision {
    let store = alone(disk).await;
    let revision = create(&store, key).await;
    store.shutdown().await;
    revision
}

async fn admit(store: &Store, cluster: &Cluster, name: &str) {
    let address = cluster.addresses[name].to_string();
    again(async || store.admit(name, &address).await).await;
}

async fn ready(store: &Store) {
    tokio::time::timeout(PATIENCE, store.ready()).await.expect("ready in time");
}

#[tokio::test]
async fn a_single_replica_keeps_its_data_when_others_join() {
    // Its new name sorts first, then last, and then it is the name that the replica has already.
    for names in [["a", "b", "c"], ["x", "b", "c"], ["flotilla", "b", "c"]] {
        let (old, cluster) = (names[0], Cluster::new(&names, 1));
        let first = filled(&cluster.disks[old], "ns/first").await;

        let (b, c) = (cluster.begin("b").await, cluster.begin("c").await);
        tokio::time::sleep(Duration::from_millis(500)).await;
        let a = cluster.begin(old).await;
        assert_eq!(read(&a, "ns/first").await, Some(first));
        let seen = a.cluster();
        let own: Vec<_> = seen.members.iter().map(|member| (member.name.as_str(), member.address.as_str())).collect();
        assert_eq!(own, [(old, cluster.addresses[old].to_string().as_str())]);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!([&b, &c].iter().all(|store| *store.standing().borrow() == Standing::Waiting));
        assert!([&b, &c].iter().all(|store| store.cluster().cluster.is_empty() && !seen.cluster.is_empty()));

        for (name, store) in [("b", &b), ("c", &c)] {
            admit(&a, &cluster, name).await;
            ready(store).await;
            assert_eq!(read(store, "ns/first").await, Some(first));
        }
        let second = create(&c, "ns/second").await;
        // Every group knows the replica's address, and follows others.
        again(async || b.transfer(None, "b").await).await;
        let third = create(&c, "ns/third").await;
        a.shutdown().await;
        create(&b, "ns/fourth").await;
        let a = cluster.open(old).await;
        assert!(read(&a, "ns/fourth").await.is_some());
        for store in [&a, &b, &c] {
            assert_eq!(read(store, "ns/second").await, Some(second));
            assert_eq!(read(store, "ns/third").await, Some(third));
            assert_eq!(store.cluster().cluster, seen.cluster);
        }
    }
}

#[tokio::test]
async fn a_single_replica_serves_while_its_peers_are_down() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let first = filled(&cluster.disks["a"], "ns/first").await;
    let a = cluster.open("a").await;
    let id = a.cluster().cluster;
    assert_eq!(read(&a, "ns/first").await, Some(first));
    create(&a, "ns/second").await;
    a.shutdown().await;
    let a = cluster.open("a").await;
    assert_eq!(a.cluster().cluster, id, "it is the same cluster");
    assert!(read(&a, "ns/second").await.is_some());
    let b = cluster.begin("b").await;
    admit(&a, &cluster, "b").await;
    ready(&b).await;
    assert_eq!(read(&b, "ns/first").await, Some(first));
}

#[tokio::test]
async fn a_single_replica_has_the_address_of_its_last_start() {
    let mut cluster = Cluster::new(&["a", "b"], 1);
    filled(&cluster.disks["a"], "ns/first").await;
    cluster.open("a").await.shutdown().await;
    let moved = Cluster::new(&["a"], 0).addresses["a"];
    cluster.addresses.insert("a".into(), moved);
    let a = cluster.open("a").await;
    assert_eq!(a.cluster().members[0].address, moved.to_string());
    let b = cluster.begin("b").await;
    admit(&a, &cluster, "b").await;
    ready(&b).await;
    again(async || b.transfer(None, "b").await).await;
    create(&b, "ns/second").await;
    assert!(read(&a, "ns/second").await.is_some());
}

#[tokio::test]
async fn two_single_replicas_keep_their_own_data() {
    let cluster = Cluster::new(&["a", "b"], 1);
    let first = filled(&cluster.disks["a"], "ns/first").await;
    let second = filled(&cluster.disks["b"], "ns/second").await;
    let (a, b) = tokio::join!(cluster.open("a"), cluster.open("b"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let refused = a.admit("b", &cluster.addresses["b"].to_string()).await;
    assert!(matches!(refused, Err(MembersError::Other { .. })), "{refused:?}");
    assert_eq!((read(&a, "ns/first").await, read(&a, "ns/second").await), (Some(first), None));
    assert_eq!((read(&b, "ns/first").await, read(&b, "ns/second").await), (None, Some(second)));
    a.shutdown().await;
    b.shutdown().await;
    let (a, b) = tokio::join!(cluster.open("a"), cluster.open("b"));
    assert_ne!(a.cluster().cluster, b.cluster().cluster);
    assert_eq!((read(&a, "ns/first").await, read(&b, "ns/second").await), (Some(first), Some(second)));
}

#[tokio::test]
async fn a_single_replica_is_recognized_after_its_log_was_trimmed() {
    let cluster = Cluster::new(&["a", "b"], 1);
    let store = alone(&cluster.disks["a"]).await;
    let first = create(&store, "ns/first").await;
    store.write_snapshots().await.unwrap(); // as a restored backup ends
    store.shutdown().await;
    let b = cluster.begin("b").await;
    let a = cluster.open("a").await;
    assert_eq!(read(&a, "ns/first").await, Some(first));
    admit(&a, &cluster, "b").await;
    ready(&b).await;
    assert_eq!(read(&b, "ns/first").await, Some(first));
}
