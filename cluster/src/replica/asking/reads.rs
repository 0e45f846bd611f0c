//! Read points. Reads that wait for one share the question to the leader.

use tokio::sync::{mpsc, oneshot};

use super::leader_client::LeaderClient;
use crate::ReadError;
use crate::limits::{READ_POINT_WAIT, READS_PER_ROUND_MAX};
use crate::tasks;

/// The channel on which a waiting read is answered.
type Waiting = oneshot::Sender<Result<(), ReadError>>;

/// The read points of one group. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reads {
    node: crate::raft::Node,
    waiting: mpsc::Sender<Waiting>,
}

impl Reads {
    /// Starts the task that serves reads, on the thread of the store.
    pub(crate) fn start(client: LeaderClient) -> Reads {
        let node = client.node().clone();
        let (waiting, requests) = mpsc::channel(READS_PER_ROUND_MAX);
        tasks::detached_here("reads", answer(client, requests));
        Reads { node, waiting }
    }

    /// Waits until everything that was acknowledged before this call is applied here.
    pub(crate) async fn barrier(&self) -> Result<(), ReadError> {
        if self.node.roster().leads_alone() {
            return Ok(());
        }
        let (waiting, reached) = oneshot::channel();
        self.waiting.send(waiting).await.map_err(|_| ReadError::Closed)?;
        reached.await.unwrap_or(Err(ReadError::Closed))
    }
}

/// Runs one round after the other. A round serves all reads that arrived before it began.
async fn answer(client: LeaderClient, mut requests: mpsc::Receiver<Waiting>) {
    let mut waiting = Vec::new();
    while requests.recv_many(&mut waiting, READS_PER_ROUND_MAX).await > 0 {
        let reached = match client.read_index().await {
            Ok(_) if seeded!(StaleFollowerRead) => Ok(()),
            Ok(index) => {
                let reached = tokio::time::timeout(READ_POINT_WAIT, client.node().reading().reached(index)).await;
                reached.unwrap_or(Err(ReadError::Unavailable))
            }
            Err(error) => Err(error),
        };
        for waiting in waiting.drain(..) {
            let _ = waiting.send(reached); // fails if the read stopped waiting
        }
    }
}
