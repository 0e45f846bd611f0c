//! Members whose disks are full.

use std::time::Duration;

use futures_util::FutureExt;

use super::room;
use crate::replica::test_cluster::{Cluster, again, create, pods, until};
use crate::{Draft, Expectation, Key, Layout, Mutation, Outcome, Write, WriteError};

/// The pause between two writes. Segments are small here, and a replica must report the lack of room while its segment
/// still has some, also on a busy machine.
const PACE: Duration = Duration::from_millis(50);

fn large(number: usize) -> Write {
    let draft = Draft { bytes: vec![b'0'; 20 << 10], layout: Layout::default(), ..Draft::default() };
    let (key, expectation) = (Key::new(&format!("ns/{number}")), Expectation::Absent);
    Write { table: pods(), key, expectation, mutation: Mutation::Put(draft) }
}

/// Operators recover by removing a full member, or by adding room.
#[tokio::test]
async fn members_are_removed_although_a_majority_has_no_room_for_writes() {
    let cluster = Cluster::new(&["a", "b", "c"], 1);
    let stores = cluster.open_all().await;
    for full in ["b", "c"] {
        cluster.disks[full].set_room(Some(0));
    }
    for number in 0..1_000 {
        match stores[0].write(large(number)).await {
            Ok(Outcome::Committed { .. }) => assert!(number < 999, "there is room"),
            Err(WriteError::NoSpace) => break,
            // No leader answered in time, as it happens on a busy machine.
            Err(WriteError::Unavailable | WriteError::Unknown) => assert!(number < 999, "nobody leads"),
            other => panic!("{number}: {other:?}"),
        }
        tokio::time::sleep(PACE).await;
    }
    again(async || stores[0].remove("c").await).await;
    until("c has no vote", || stores[0].cluster().members.len() == 2).await;
    cluster.disks["b"].set_room(None);
    until("b has room", || !stores[0].cluster().members.iter().any(|member| member.drained)).await;
    create(&stores[0], "ns/last").await;
}

#[tokio::test]
async fn a_replica_with_room_may_lead_although_the_task_that_follows_its_disk_failed() {
    let cluster = Cluster::new(&["a"], 1);
    let stores = cluster.open_all().await;
    let running = stores[0].running();
    let (wal, placement) = (&running.wal, &running.placement);
    placement.set_full(true);
    assert!(room::follow(wal.clone(), placement.clone()).now_or_never().is_none());
    assert!(!placement.is_drained());
    placement.set_slow(true);
    assert!(room::keep_pace(wal.clone(), placement.clone()).now_or_never().is_none());
    assert!(!placement.is_drained());
}
