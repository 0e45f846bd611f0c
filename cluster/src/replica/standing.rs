//! The standing of this replica in its cluster: whether its state may be shown to clients.

use std::rc::Rc;

use futures_util::future::join;
use tokio::sync::watch;
use tokio::time::Instant;

use super::groups::Group;
use super::sharding::mapping;
use super::starter::Starter;
use crate::limits::READY_WARNING_INTERVAL;
use crate::raft::{Node, Votes};
use crate::shard_map::{DEFAULT_GROUP, group_name};
use crate::{OpenError, ReadError};

/// The standing of a replica in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is not a member yet, or does not know the shard map: it has nothing, or only part of the data.
    Waiting,
    /// It is a member, and shows the content of its log. It may lack later writes of others.
    Starting,
    /// It is a member, and has caught up since it started.
    Member,
    /// It is not a member any more, and learns of no changes: its data becomes outdated.
    Removed,
}

impl Standing {
    /// Returns whether it is a member, so that reads may be answered from its state.
    pub fn is_member(self) -> bool {
        matches!(self, Standing::Starting | Standing::Member)
    }
}

/// Keeps the standing of this replica up to date for as long as the store is open. Members are added and removed in one
/// group after the other; the default group comes first.
pub(crate) async fn follow(starter: Rc<Starter>, standing: watch::Sender<Standing>) {
    let default = starter.groups.wait_for(DEFAULT_GROUP).await.leader_client.node().clone();
    let mut votes = default.exclusion().votes();
    loop {
        changes(&default, &mut votes, true).await;
        tokio::select! {
            biased;
            ((), ready) = join(start(&starter, &standing), ready(&starter)) => match ready {
                Ok(()) => {
                    standing.send_replace(Standing::Member);
                    tracing::info!("this replica is a member and has caught up");
                    changes(&default, &mut votes, false).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "this replica does not become a member");
                    return; // the store is being closed, or cannot read its data
                }
            },
            () = changes(&default, &mut votes, false) => {}
        }
        standing.send_replace(Standing::Removed);
        tracing::error!(
            "this replica was removed from its cluster and answers nothing about objects any more: \
             stop it, or admit it again with `flotilla cluster join`"
        );
    }
}

/// Makes the standing [`Standing::Starting`] once this replica has a vote in every group of the shard map and has
/// applied the entry that gave it the vote: before that it may have nothing of a group. Does nothing without a shard
/// map.
async fn start(starter: &Starter, standing: &watch::Sender<Standing>) {
    let default = starter.groups.wait_for(DEFAULT_GROUP).await.leader_client.node().clone();
    default.reading().applied_membership().await;
    if !starter.tables.is_founded() {
        return;
    }
    for group_number in starter.tables.map().group_numbers() {
        let node = starter.groups.wait_for(&group_name(group_number)).await.leader_client.node().clone();
        changes(&node, &mut node.exclusion().votes(), true).await;
        node.reading().applied_membership().await;
    }
    standing.send_replace(Standing::Starting);
}

/// Waits until this replica has a vote in a group (`has`), or has none.
async fn changes(node: &Node, votes: &mut Votes, has: bool) {
    while node.exclusion().has_vote() != has {
        votes.changed().await;
    }
}

/// Waits until reads here are not stale: each group in which tables are kept, now or soon, has a leader, and this
/// replica has applied everything that was acknowledged.
pub(crate) async fn ready(starter: &Starter) -> Result<(), OpenError> {
    let default = starter.groups.wait_for(DEFAULT_GROUP).await;
    ready_in(DEFAULT_GROUP, &default).await?;
    mapping::wait_for_map(starter).await?;
    for group_number in starter.tables.map().needed_groups() {
        let name = group_name(group_number);
        let group = starter.groups.wait_for(&name).await;
        if starter.options.is_survivor
            && starter.tables.map().is_filled(group_number)
            && !group.leader_client.node().formation().is_formed().await
        {
            return Err(OpenError::Group { group: name.to_string(), source: NO_LOG.into() });
        }
        ready_in(&name, &group).await?;
    }
    Ok(())
}

/// The error of a survivor that lacks a group.
const NO_LOG: &str = "the replica has no log of the group, so that it may have a part of the tables only";

async fn ready_in(name: &str, group: &Group) -> Result<(), OpenError> {
    let mut waiting = Instant::now();
    loop {
        match group.reads.barrier().await {
            // A replica that leads alone takes writes only once its proposer knows that it leads.
            Ok(()) if group.leader_client.node().roster().leads_alone() => {
                let _ = group.leads.clone().wait_for(|leads| *leads).await;
                return Ok(());
            }
            Ok(()) => return Ok(()),
            Err(ReadError::Closed) => return Err(OpenError::Ended),
            Err(_) if waiting.elapsed() >= READY_WARNING_INTERVAL => {
                tracing::warn!(group = name, "waiting for a quorum of the members");
                waiting = Instant::now();
            }
            Err(_) => {}
        }
    }
}
