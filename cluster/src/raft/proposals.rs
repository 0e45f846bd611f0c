//! Proposing batches to a group.

use tokio::sync::oneshot;

use super::node::Node;
use super::resting::wake;
use super::types::{LeaderId, Reaction, TypeConfig};
use crate::entry::Batch;
use crate::group::{Log, Replies};
use crate::{Revision, WriteError};

/// Proposes batches to a group.
pub(crate) struct Proposals {
    node: Node,
    /// Resolves once the batch before is proposed. Batches are proposed in the order of their revisions, even if one
    /// must wait for room, and whichever future is polled first.
    before: Option<oneshot::Receiver<()>>,
}

impl Proposals {
    pub(super) fn new(node: Node) -> Proposals {
        Proposals { node, before: None }
    }
}

impl Log for Proposals {
    fn propose(&mut self, batch: Batch, term: u64, replies: Replies) -> impl Future<Output = ()> + 'static {
        let node = self.node.clone();
        let leader = LeaderId { term, node_id: node.id() };
        let (proposed, next) = oneshot::channel();
        let before = self.before.replace(next);
        async move {
            if let Some(before) = before {
                let _ = before.await; // whether it succeeded or not
            }
            let (done, decided) = oneshot::channel();
            wake(&node.raft, node.rest()).await;
            // Members that cannot write the entries that they are sent answer no heartbeats either. Without those,
            // reads would fail too.
            if !batch.commands().is_empty() && !batch.is_of_map() && !node.can_grow() {
                return replies.fail(WriteError::NoSpace);
            }
            let reservation = match node.log.wal().reserve(batch.bytes()).await {
                Ok(reservation) => Some(reservation),
                // The shard map is small, and there is always room for records of the groups themselves.
                Err(_) if batch.is_of_map() => None,
                Err(_) => return replies.fail(WriteError::NoSpace),
            };
            let last = batch.commands().last().map_or(Revision::ZERO, |command| command.revision);
            let here = node.clone();
            let reaction = Reaction(Box::new(move |result| {
                let mut unpromised = None;
                match result {
                    Ok(response) => {
                        let response: openraft::raft::ClientWriteResponse<TypeConfig> = response;
                        let outcomes = response.data.0;
                        match here.is_promised(last) {
                            true => replies.outcomes(outcomes),
                            false => unpromised = Some((replies, outcomes)),
                        }
                    }
                    // The batch is in the log of this replica, and perhaps of others, and a later leader may commit it.
                    // That also holds for an entry that openraft has discarded: it was replaced by an entry of another
                    // leader, which need not be committed yet, or by a snapshot, which may include it; and the removal
                    // is not durable here yet.
                    Err(_) => replies.fail(WriteError::Unknown),
                }
                drop(reservation);
                let _ = done.send(unpromised);
            }));
            // When the group is shut down the reaction is dropped with its replies: the outcome is unknown.
            let _ = node.raft.write(batch).responder(reaction).with_leader(leader).await;
            let _ = proposed.send(()); // fails when no batch follows
            if let Ok(Some((replies, outcomes))) = decided.await {
                node.wait_promised(last).await;
                replies.outcomes(outcomes);
            }
        }
    }
}
