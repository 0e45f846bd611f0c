//! Leadership of a group: votes for a candidate, handing over, and rest under an idle leader.

use prost::Message;

use super::{Ballot, LogPlace};

/// Raft's RequestVote, and its pre-vote.
#[derive(Clone, PartialEq, Message)]
pub struct VoteCall {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The candidate.
    #[prost(message, required, tag = "2")]
    pub ballot: Ballot,
    /// The last entry of its log.
    #[prost(message, optional, tag = "3")]
    pub last: Option<LogPlace>,
    /// Whether the leader itself asked the candidate to take over. In a pre-vote the ballot is then that leader's, and
    /// the question is whether the voter knows of no later ballot.
    #[prost(bool, tag = "4")]
    pub transfer: bool,
}

/// The answer to a [`VoteCall`].
#[derive(Clone, PartialEq, Message)]
pub struct VoteAnswer {
    /// The voter's own ballot.
    #[prost(message, required, tag = "1")]
    pub ballot: Ballot,
    /// Whether the vote is granted.
    #[prost(bool, tag = "2")]
    pub granted: bool,
    /// The last entry of the voter's log.
    #[prost(message, optional, tag = "3")]
    pub last: Option<LogPlace>,
    /// The log entry that sets the members, when the candidate is not among them and does not have that entry.
    #[prost(message, optional, tag = "4")]
    pub excluded: Option<LogPlace>,
}

/// Raft's TimeoutNow: the leader hands over.
#[derive(Clone, PartialEq, Message)]
pub struct Transfer {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The leader.
    #[prost(message, required, tag = "2")]
    pub ballot: Ballot,
    /// The id of the new leader.
    #[prost(uint64, tag = "3")]
    pub to: u64,
    /// The last entry that the new leader must have.
    #[prost(message, optional, tag = "4")]
    pub last: Option<LogPlace>,
}

/// The answer to a [`Transfer`].
#[derive(Clone, PartialEq, Message)]
pub struct TransferAnswer {
    /// The later ballot, when refused because of one.
    #[prost(message, optional, tag = "1")]
    pub ballot: Option<Ballot>,
    /// Whether it is refused because the log is not durable far enough.
    #[prost(bool, tag = "2")]
    pub unflushed: bool,
    /// The last durable entry, when refused because of that.
    #[prost(message, optional, tag = "3")]
    pub flushed: Option<LogPlace>,
}

/// A leader's request to let idle groups rest.
#[derive(Clone, PartialEq, Message)]
pub struct Rest {
    /// The groups.
    #[prost(message, repeated, tag = "1")]
    pub groups: Vec<Resting>,
}

/// A group that should rest.
#[derive(Clone, PartialEq, Message)]
pub struct Resting {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The leader.
    #[prost(message, required, tag = "2")]
    pub ballot: Ballot,
    /// The last entry of the log, which is applied everywhere.
    #[prost(message, required, tag = "3")]
    pub last: LogPlace,
}

/// The groups that rest.
#[derive(Clone, PartialEq, Message)]
pub struct RestAnswer {
    /// Whether each group rests, in the order of the request. A group rests if the replica's state equals the leader's.
    #[prost(bool, repeated, tag = "1")]
    pub rests: Vec<bool>,
}
