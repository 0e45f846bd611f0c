//! Whether what a leader asked for when it gave up is still to be done.
//!
//! Voters elect whom a leader has asked to take over although they hear of one. A replica whose process stood still may
//! find itself asked long after another took over, of which it knows nothing, and would depose that one. So it asks the
//! others first whether they know of a later ballot. Whoever leads since was elected by a majority, and each majority
//! has one of these: it does not matter who else stood still, nor for how long.

use std::collections::BTreeSet;

use bytes::Bytes;
use flotilla_proto::replication::{self as message, Method};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use prost::Message;
use tokio::time::Instant;

use super::node::Node;
use super::wire;
use crate::limits::MANDATE_TIMEOUT;
use crate::peer::{Lane, Target};

impl Node {
    /// Whether a majority knows of no leader or candidate after the leader with this ballot, which gave up or is gone.
    pub(super) async fn is_last(&self, leader: &message::Ballot) -> bool {
        let began = Instant::now();
        let call = message::VoteCall { group: self.name().to_string(), ballot: *leader, last: None, transfer: true };
        let call = Bytes::from(call.encode_to_vec());
        let others = self.voters().into_iter().filter(|voter| *voter != self.id());
        let mut answers: FuturesUnordered<_> =
            others.map(|voter| self.knows_of_none_after(voter, (leader.term, leader.node), &call)).collect();
        let mut agreeing = BTreeSet::from([self.id()]);
        while !self.is_quorum(|voter| agreeing.contains(&voter)) {
            match answers.next().await {
                Some(voter) => agreeing.extend(voter),
                None => return false,
            }
        }
        began.elapsed() < MANDATE_TIMEOUT // else this process stood still with the answers
    }

    /// Asks a voter; its id if it knows of nobody after that leader.
    fn knows_of_none_after(
        &self,
        voter: u64,
        leader: (u64, u64),
        call: &Bytes,
    ) -> impl Future<Output = Option<u64>> + use<> {
        let target = Target { address: self.address(voter).unwrap_or_default(), member: Some(voter) };
        let (lane, method) = (Lane::Control, Method::PreVote as u32);
        let call = self.peers.as_ref().map(|peers| peers.call(&target, lane, method, call.clone(), MANDATE_TIMEOUT));
        async move {
            // What members of older versions grant is something else: their ballot tells the same.
            let own = message::VoteAnswer::decode(call?.await.ok()?).ok()?.ballot;
            ((own.term, own.node) <= leader).then_some(voter)
        }
    }

    /// The answer to a replica that asks whether this one knows of a later ballot than that of a leader which gave up.
    pub(super) async fn judge_mandate(&self, call: &message::VoteCall) -> std::io::Result<message::VoteAnswer> {
        let own = self.raft.with_raft_state(|state| wire::ballot(state.vote_ref())).await;
        let ballot = own.map_err(std::io::Error::other)?;
        let granted = (ballot.term, ballot.node) <= (call.ballot.term, call.ballot.node);
        Ok(message::VoteAnswer { ballot, granted, last: None, excluded: None })
    }
}
