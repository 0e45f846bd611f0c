//! Waits for a revision that a table has not reached yet.

use std::time::Duration;

use tokio::time::Instant;

use super::test_cluster::{Cluster, PATIENCE, create};
use crate::{Revision, TableId};

#[tokio::test]
async fn a_table_reaches_a_revision_that_another_group_assigned() {
    let cluster = Cluster::new(&["a", "b", "c"], 2);
    let stores = cluster.open_all().await;
    // Pods are in groups of their own, and the group `default` gets no writes.
    let written = create(&stores[1], "ns/pod").await;
    for store in &stores {
        let idle = store.table(&TableId::new("configmaps"));
        let reached = store.reach(&idle, written, Instant::now() + PATIENCE).await;
        reached.expect("a revision that somebody was told of");
        assert!(idle.revision() >= written);
        // A revision that no client can have received is not reached by closing groups.
        let never = Revision::new(written.get() + (1 << 40));
        let refused = store.reach(&idle, never, Instant::now() + Duration::from_millis(300)).await;
        assert!(refused.expect_err("nobody assigned it").current < never);
        assert!(idle.revision() < never);
    }
}
