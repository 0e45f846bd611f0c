//! Checks whether a request of a leader to take over is still valid.
//!
//! Voters elect a replica that the leader has asked to take over even while they hear from a leader. A process that
//! stood still may see the request long after another replica took over without its knowledge, and would depose the new
//! leader. It therefore first asks the others whether they know of a later vote. Any later leader was elected by a
//! majority, and every majority includes one of those that answer, no matter which others stood still or for how long.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use flotilla_proto::replication::{self as message, Method};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use prost::Message;
use tokio::time::Instant;

use super::connections::Connections;
use super::roster::Roster;
use super::state_machine::GroupRaft;
use super::wire;
use crate::limits::MANDATE_TIMEOUT;
use crate::peer::{Callee, Lane};

/// Checks requests to take over the leadership of a group. Cheap to clone.
#[derive(Clone)]
pub(super) struct Mandates {
    name: Arc<str>,
    raft: GroupRaft,
    roster: Roster,
    connections: Connections,
}

impl Mandates {
    pub(super) fn new(name: Arc<str>, raft: GroupRaft, roster: Roster, connections: Connections) -> Mandates {
        Mandates { name, raft, roster, connections }
    }

    /// Returns whether a majority knows of no leader or candidate after the leader with this ballot, which gave up or
    /// is gone.
    pub(super) async fn is_last(&self, leader: &message::Ballot) -> bool {
        let began = Instant::now();
        let call = message::VoteCall { group: self.name.to_string(), ballot: *leader, last: None, transfer: true };
        let call = Bytes::from(call.encode_to_vec());
        let others = self.roster.voters().into_iter().filter(|voter| *voter != self.roster.own());
        let mut answers: FuturesUnordered<_> =
            others.map(|voter| self.knows_of_none_after(voter, (leader.term, leader.node), &call)).collect();
        let mut agreeing = BTreeSet::from([self.roster.own()]);
        while !self.roster.is_quorum(|voter| agreeing.contains(&voter)) {
            match answers.next().await {
                Some(voter) => agreeing.extend(voter),
                None => return false,
            }
        }
        began.elapsed() < MANDATE_TIMEOUT // otherwise this process stood still before it read the answers
    }

    /// Asks a voter. Returns its id if it knows of no ballot after that leader's.
    fn knows_of_none_after(
        &self,
        voter: u64,
        leader: (u64, u64),
        call: &Bytes,
    ) -> impl Future<Output = Option<u64>> + use<> {
        let callee = Callee { address: self.roster.address(voter).unwrap_or_default(), member: Some(voter) };
        let call = self.connections.call(&callee, Lane::Control, Method::PreVote, call.clone(), MANDATE_TIMEOUT);
        async move {
            // In answers of older versions, `granted` means something else, but `ballot` means the same.
            let own = message::VoteAnswer::decode(call?.await.ok()?).ok()?.ballot;
            ((own.term, own.node) <= leader).then_some(voter)
        }
    }

    /// Answers whether this replica knows of a later ballot than the one of a leader that gave up.
    pub(super) async fn judge(&self, call: &message::VoteCall) -> std::io::Result<message::VoteAnswer> {
        let own = self.raft.with_raft_state(|state| wire::ballot(state.vote_ref())).await;
        let ballot = own.map_err(std::io::Error::other)?;
        let granted = (ballot.term, ballot.node) <= (call.ballot.term, call.ballot.node);
        Ok(message::VoteAnswer { ballot, granted, last: None, excluded: None })
    }
}
