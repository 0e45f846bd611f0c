//! Members of a cluster whose directories are salvaged at a bad moment.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::test_cluster::{Cluster, PATIENCE, again, create, divide, pods, read, until};
use crate::disk::Disk;
use crate::disk::simulated::SimulatedDisk;
use crate::shard_map::DEFAULT_GROUP;
use crate::{Store, salvage};

/// Copies the files of a directory of a simulated disk into a real one.
fn copy(disk: &SimulatedDisk, from: &str, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for path in disk.list(Path::new(from)).unwrap() {
        let file = disk.open(&path).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        std::fs::write(to.join(path.file_name().unwrap()), bytes).unwrap();
    }
}

#[tokio::test]
async fn a_member_that_ended_while_it_installed_a_snapshot_is_salvaged() {
    let cluster = Cluster::new(&["a", "b", "c"], 0);
    let [a, b, c] = <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"));
    again(async || b.transfer(None, "a").await).await;
    create(&a, "ns/first").await;
    assert!(read(&c, "ns/first").await.is_some());
    c.shutdown().await;
    let (scratch, disk) = (tempfile::tempdir().unwrap(), &cluster.disks["c"]);
    let directory = scratch.path().join("c");
    copy(disk, "/store", &directory);
    copy(disk, "/store/wal", &directory.join("wal"));
    let c = cluster.open("c").await;
    for number in 0..20 {
        create(&a, &format!("ns/{number}")).await;
    }
    assert!(read(&c, "ns/19").await.is_some());
    c.write_snapshots().await.unwrap();
    for store in [a, b, c] {
        store.shutdown().await;
    }
    // The snapshot has the group's name, and the log still ends where it did.
    copy(disk, "/store/snapshots/default", &directory.join("snapshots/default"));

    let copied = scratch.path().join("copy");
    let salvaging = salvage(&directory, &copied, None, Arc::new(|_| {}));
    let store = tokio::time::timeout(PATIENCE, salvaging).await.expect("in time").unwrap();
    for name in ["ns/first", "ns/0", "ns/19"] {
        assert!(store.table(&pods()).get(name).is_some(), "{name}");
    }
    store.shutdown().await;
}

#[tokio::test]
async fn a_salvage_yields_all_tables_or_fails() {
    // In the end the pods are in a group that `c` has, or in one that it does not know.
    for (shards, is_there) in [(vec![2, 1], true), (vec![3], false)] {
        let cluster = Cluster::new(&["a", "b", "c"], 1);
        let [a, b, c] = <[Store; 3]>::try_from(cluster.open_all().await).unwrap_or_else(|_| panic!("three"));
        create(&a, "ns/first").await;
        assert!(read(&c, "ns/first").await.is_some());
        again(async || b.transfer(None, "b").await).await;
        let (release, released) = oneshot::channel();
        let node = c.running().groups.get(DEFAULT_GROUP).unwrap().leader_client.node().clone();
        node.reading().hold_applying(released.map(drop)).await;
        for shards in shards {
            divide(&b, shards).await;
        }
        let last = |store: &Store| store.status().groups.iter().map(|group| group.last_index).collect::<Vec<_>>();
        until("c has the logs that it knows of", || last(&c)[..2] == last(&b)[..2]).await;
        let (scratch, disk) = (tempfile::tempdir().unwrap(), &cluster.disks["c"]);
        let directory = scratch.path().join("c");
        copy(disk, "/store", &directory);
        copy(disk, "/store/wal", &directory.join("wal"));
        std::fs::create_dir(directory.join("snapshots")).unwrap();
        release.send(()).unwrap();
        for store in [a, b, c] {
            store.shutdown().await;
        }

        let copied = scratch.path().join("copy");
        let salvaging = salvage(&directory, &copied, None, Arc::new(|_| {}));
        match tokio::time::timeout(PATIENCE, salvaging).await.expect("in time") {
            Ok(store) => {
                assert!(is_there && store.table(&pods()).get("ns/first").is_some());
                store.shutdown().await;
            }
            Err(error) => {
                assert!(!is_there && format!("{error:?}").contains("may have a part of the tables only"), "{error:?}")
            }
        }
    }
}
