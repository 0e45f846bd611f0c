//! Members that come back with less than they acknowledged.

use std::path::Path;
use std::time::Duration;

use futures_util::FutureExt;

use super::test_cluster::{Cluster, PATIENCE, again, create, pods, read, until};
use crate::OpenError;
use crate::disk::Disk;
use crate::wal::WalError;

/// The file that records that a member must not go on.
const FORFEIT: &str = "/store/forfeit";

fn has_forfeited(disk: &dyn Disk) -> bool {
    disk.list(Path::new("/store")).unwrap().contains(&FORFEIT.into())
}

#[tokio::test]
async fn a_member_with_an_older_copy_of_its_data_ends_without_harm() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 0);
    let (a, b, c) = tokio::join!(cluster.open("a"), cluster.open("b"), cluster.open("c"));
    again(async || a.transfer(None, "a").await).await;
    create(&a, "ns/first").await;
    c.shutdown().await;
    let older = cluster.disks["c"].crash(|_, _| true);
    let c = cluster.open("c").await;
    let second = create(&a, "ns/second").await;
    assert_eq!(read(&c, "ns/second").await, Some(second));
    // The others have committed it. The leader learns a little later that c has it on its disk, too.
    let nodes = [&a, &b].map(|store| store.running().groups.nodes().remove(0));
    let acknowledged = async {
        while nodes[0].leadership().keep_up(&[c.node()]).await.is_none()
            && nodes[1].leadership().keep_up(&[c.node()]).await.is_none()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, acknowledged).await.expect("c has everything");
    c.shutdown().await;

    cluster.disks.insert("c".into(), older.clone());
    let c = cluster.begin("c").await;
    until("c gives up", || has_forfeited(&older)).await;
    let third = create(&a, "ns/third").await;
    assert_eq!((read(&b, "ns/second").await, read(&b, "ns/third").await), (Some(second), Some(third)));
    c.shutdown().await;
    let again = cluster.try_to_open("c").await;
    assert!(matches!(&again, Err(OpenError::Directory { source, .. }) if source.to_string().contains("acknowledged")));
    tokio::join!(a.shutdown(), b.shutdown());
}

#[tokio::test]
async fn a_replica_ends_instead_of_truncating_acknowledged_entries() {
    let mut cluster = Cluster::new(&["a", "b", "c"], 0);
    let (a, b, c) = tokio::join!(cluster.open("a"), cluster.open("b"), cluster.open("c"));
    again(async || b.transfer(None, "b").await).await;
    create(&b, "ns/first").await;
    a.shutdown().await;
    let older = cluster.disks["a"].crash(|_, _| true);
    let a = cluster.open("a").await;
    c.shutdown().await;
    create(&b, "ns/second").await;
    tokio::join!(a.shutdown(), b.shutdown());

    // Of the members that have the second entry, b is down, and a does not have it any more.
    cluster.disks.insert("a".into(), older);
    let (a, c) = tokio::join!(cluster.open("a"), cluster.open("c"));
    create(&a, "ns/third").await;
    let b = cluster.begin("b").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let table = b.table(&pods());
    assert!(table.get("ns/second").is_some() && table.get("ns/third").is_none(), "it has taken something back");
    assert!(b.ready().now_or_never().is_none(), "it shows what nobody else does");
    create(&a, "ns/fourth").await;
    tokio::join!(a.shutdown(), b.shutdown(), c.shutdown());
}

#[tokio::test]
async fn a_member_without_its_log_does_not_keep_its_id() {
    let cluster = Cluster::new(&["a", "b", "c"], 0);
    let stores = cluster.open_all().await;
    create(&stores[0], "ns/first").await;
    for store in stores {
        store.shutdown().await;
    }
    let (disk, log) = (&cluster.disks["c"], Path::new("/store/wal"));
    for segment in disk.list(log).unwrap() {
        disk.remove(&segment).unwrap();
    }
    let refused = |found: Result<_, OpenError>| matches!(found, Err(OpenError::Storage(WalError::Missing { .. })));
    assert!(refused(cluster.try_to_open("c").await.map(drop)));
    disk.remove(Path::new("/store/log")).unwrap();
    assert!(refused(cluster.try_to_open("c").await.map(drop)), "its identity says that there was a log");
}
