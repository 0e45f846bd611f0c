//! Lets a replica continue a group alone, whatever other members the log of the group names.
//!
//! This breaks the guarantees of Raft: other replicas might continue the group as well, and entries that this replica
//! lacks are lost. Therefore it is done only to a copy of a member's data, when a majority of the members is gone for
//! good.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use openraft::entry::RaftEntry;
use openraft::{EntryPayload, Membership};

use super::log_store::LogStore;
use super::state_machine::StateMachine;
use super::types::{Entry, LeaderId, log_ref};
use crate::roster::Replica;
use crate::wal::{Ballot, LogRef};

/// Makes a replica the only member of a group. Every entry of its log then counts as committed, even one that no quorum
/// is known to have, since the store may have acknowledged it.
///
/// # Errors
/// Fails when the replica has no vote, so that it may have only part of the data, or when the log cannot be read or
/// written.
pub(super) async fn be_alone(log: &LogStore, machine: &StateMachine, node: u64) -> io::Result<()> {
    let (state, applied) = (log.state(), machine.last().map(|last| log_ref(&last)));
    if state.last.is_none() && applied.is_none() {
        return Ok(()); // the group was never formed here, and starts as a new one does
    }
    let membership = membership(log, machine)?;
    let name_and_address = membership.get_node(&node).filter(|_| membership.voter_ids().any(|voter| voter == node));
    let Some(replica) = name_and_address.cloned() else {
        return Err(io::Error::other("the replica had no vote in the group, so it may have only a part of its data"));
    };
    let last = state.last.unwrap_or(LogRef { term: 0, node, index: 0 });
    let term = state.vote.map_or(0, |vote| vote.term).max(last.term) + 1;
    let alone = Membership::new(vec![BTreeSet::from([node])], BTreeMap::from([(node, replica)]));
    let payload = EntryPayload::Membership(alone.map_err(io::Error::other)?);
    let entry = Entry::new(openraft::LogId::new(LeaderId { term, node_id: node }, last.index + 1), payload);
    log.add(entry, Ballot { term, node, committed: false }).await
}

/// Returns the membership at the end of the log.
fn membership(log: &LogStore, machine: &StateMachine) -> io::Result<Membership<u64, Replica>> {
    let mut newest = machine.membership().clone();
    for entry in log.read(log.present(..)) {
        if let EntryPayload::Membership(membership) = entry?.payload {
            newest = membership;
        }
    }
    Ok(newest)
}
