//! Lets a replica go on with a group alone, whatever other members its log has.
//!
//! This breaks the guarantees of Raft: others might go on as well, and what this replica lacks is lost. It is therefore
//! only done to a copy of a member's data, when a majority of the members is gone for good.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use openraft::entry::RaftEntry;
use openraft::{EntryPayload, Membership};

use super::log_store::LogStore;
use super::state_machine::StateMachine;
use super::types::{Entry, LeaderId, log_ref};
use crate::roster::Replica;
use crate::wal::{Ballot, LogRef};

/// Makes a replica the only member of a group. Everything in its log then counts as committed, also what no quorum is
/// known to have, since it may have been acknowledged.
///
/// # Errors
/// Fails when the replica has no vote, so that it may have only part of the data, or when the log cannot be read or
/// written.
pub(super) async fn be_alone(log: &LogStore, machine: &StateMachine, node: u64) -> io::Result<()> {
    let (state, applied) = (log.state(), machine.last().map(|last| log_ref(&last)));
    if state.last.is_none() && applied.is_none() {
        return Ok(()); // it was never formed here, and starts as a new group does
    }
    let membership = membership(log, machine)?;
    let name_and_address = membership.get_node(&node).filter(|_| membership.voter_ids().any(|voter| voter == node));
    let Some(replica) = name_and_address.cloned() else {
        return Err(io::Error::other("the replica had no vote in it, so that it may have a part of it only"));
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
