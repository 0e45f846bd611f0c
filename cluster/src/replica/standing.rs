//! What this replica is to its cluster: whether what it shows counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;

use futures_util::future::select_all;
use tokio::sync::watch;

use crate::limits::READY_WARNING_INTERVAL;
use crate::raft::{Node, Votes};
use crate::store::Group;
use crate::{OpenError, ReadError};

/// What a replica is to its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is none of the members yet: what it has is nothing, or a part.
    Waiting,
    /// It is a member, and shows what its log holds; what the others have done since is not all here.
    Starting,
    /// It is a member, and has had everything since it started.
    Member,
    /// It is not a member any more, and learns of no change: what it has only gets older.
    Removed,
}

impl Standing {
    /// Whether it is a member, so that reads may be answered by what is here.
    pub fn is_member(self) -> bool {
        matches!(self, Standing::Starting | Standing::Member)
    }
}

/// Finds out what this replica is to its cluster, for as long as the store is open.
pub(crate) async fn follow(groups: BTreeMap<Arc<str>, Group>, standing: watch::Sender<Standing>) {
    let nodes: Vec<Node> = groups.values().map(|group| group.leader.node().clone()).collect();
    let mut votes: Vec<Votes> = nodes.iter().map(Node::votes).collect();
    loop {
        changes(&nodes, &mut votes, true).await;
        standing.send_replace(Standing::Starting);
        tokio::select! {
            biased;
            ready = ready(&groups) => match ready {
                Ok(()) => {
                    standing.send_replace(Standing::Member);
                    tracing::info!("this replica is a member and has everything that was acknowledged");
                    changes(&nodes, &mut votes, false).await;
                }
                Err(_) => return, // the store is being closed
            },
            () = changes(&nodes, &mut votes, false) => {}
        }
        standing.send_replace(Standing::Removed);
        tracing::error!(
            "this replica was removed from its cluster and answers nothing about objects any more: \
             stop it, or admit it again with `flotilla cluster join`"
        );
    }
}

/// Waits until this replica has a vote in every group, or until it has not.
async fn changes(nodes: &[Node], votes: &mut [Votes], has: bool) {
    while nodes.iter().all(Node::has_vote) != has {
        select_all(votes.iter_mut().map(|votes| Box::pin(votes.changed()))).await;
    }
}

/// Waits until what is read here is not stale: each group has a leader, and this replica everything that was
/// acknowledged.
pub(crate) async fn ready(groups: &BTreeMap<Arc<str>, Group>) -> Result<(), OpenError> {
    for (name, group) in groups {
        let mut waiting = Instant::now();
        loop {
            match group.reads.barrier().await {
                // Whoever leads alone takes writes only once it has told its proposer.
                Ok(()) if group.leader.node().leads_alone() => {
                    let _ = group.leads.clone().wait_for(|leads| *leads).await;
                    break;
                }
                Ok(()) => break,
                Err(ReadError::Closed) => return Err(OpenError::Ended),
                Err(_) if waiting.elapsed() >= READY_WARNING_INTERVAL => {
                    tracing::warn!(group = &**name, "waiting for a quorum of the members");
                    waiting = Instant::now();
                }
                Err(_) => {}
            }
        }
    }
    Ok(())
}
