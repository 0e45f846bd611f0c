//! Proposing batches to a group.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::connections::Connections;
use super::log_store::LogStore;
use super::promises::Promises;
use super::resting::Resting;
use super::roster::Roster;
use super::state_machine::GroupRaft;
use super::types::{LeaderId, Reaction, TypeConfig};
use crate::entry::Batch;
use crate::group::{Log, Replies};
use crate::{Revision, WriteError};

/// The parts of a group that proposals need.
pub(super) struct Proposing {
    pub(super) raft: GroupRaft,
    pub(super) log: LogStore,
    pub(super) roster: Roster,
    pub(super) connections: Connections,
    pub(super) resting: Resting,
    pub(super) promises: Promises,
}

impl Proposing {
    /// Returns whether a majority has room for more entries, as far as other replicas have announced a lack of room.
    /// This replica counts as having room: if it has none, reserving room fails.
    fn can_grow(&self) -> bool {
        self.roster.is_quorum(|voter| voter == self.roster.own() || !self.connections.is_full(voter))
    }
}

/// Proposes batches to a group.
pub(crate) struct Proposals {
    group: Arc<Proposing>,
    /// Resolves once the batch before is proposed. Batches are proposed in the order of their revisions, even if one
    /// must wait for room, and whichever future is polled first.
    before: Option<oneshot::Receiver<()>>,
}

impl Proposals {
    pub(super) fn new(group: Proposing) -> Proposals {
        Proposals { group: Arc::new(group), before: None }
    }
}

impl Log for Proposals {
    fn propose(&mut self, batch: Batch, term: u64, replies: Replies) -> impl Future<Output = ()> + 'static {
        let group = self.group.clone();
        let leader = LeaderId { term, node_id: group.roster.own() };
        let (proposed, next) = oneshot::channel();
        let before = self.before.replace(next);
        async move {
            if let Some(before) = before {
                let _ = before.await; // whether it succeeded or not
            }
            let (done, decided) = oneshot::channel();
            group.resting.wake().await;
            // Members that cannot write the entries that they are sent answer no heartbeats either. Without those,
            // reads would fail too.
            if !batch.commands().is_empty() && !batch.is_of_map() && !group.can_grow() {
                return replies.fail(WriteError::NoSpace);
            }
            let reservation = match group.log.wal().reserve(batch.bytes()).await {
                Ok(reservation) => Some(reservation),
                // The shard map is small, and there is always room for records of the groups themselves.
                Err(_) if batch.is_of_map() => None,
                Err(_) => return replies.fail(WriteError::NoSpace),
            };
            let last = batch.commands().last().map_or(Revision::ZERO, |command| command.revision);
            let promises = group.promises.clone();
            let reaction = Reaction(Box::new(move |result| {
                let mut unpromised = None;
                match result {
                    Ok(response) => {
                        let response: openraft::raft::ClientWriteResponse<TypeConfig> = response;
                        let outcomes = response.data.0;
                        match promises.is_promised(last) {
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
            let _ = group.raft.write(batch).responder(reaction).with_leader(leader).await;
            let _ = proposed.send(()); // fails when no batch follows
            if let Ok(Some((replies, outcomes))) = decided.await {
                group.promises.wait_promised(last).await;
                replies.outcomes(outcomes);
            }
        }
    }
}
