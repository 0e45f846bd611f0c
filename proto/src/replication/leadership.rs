//! Who leads a group: votes for a candidate, handing over, and rest under a leader that has nothing to say.

use prost::Message;

use super::{Ballot, LogPlace};

/// Raft's RequestVote, and its rehearsal.
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
    /// Whether the leader itself asked the candidate to take over. In a rehearsal the ballot is then that leader's, and
    /// the question whether the voter knows of none after it.
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
    /// Where the log says who the members are, when the candidate is none of them and does not have that entry.
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
    /// Who is to lead.
    #[prost(uint64, tag = "3")]
    pub to: u64,
    /// What the new leader must have in its log.
    #[prost(message, optional, tag = "4")]
    pub last: Option<LogPlace>,
}

/// The answer to a [`Transfer`].
#[derive(Clone, PartialEq, Message)]
pub struct TransferAnswer {
    /// Set when refused because another ballot was cast meanwhile.
    #[prost(message, optional, tag = "1")]
    pub ballot: Option<Ballot>,
    /// Set when refused because the log is not durable that far: whether it is.
    #[prost(bool, tag = "2")]
    pub unflushed: bool,
    /// Up to where the log is durable, when refused because of that.
    #[prost(message, optional, tag = "3")]
    pub flushed: Option<LogPlace>,
}

/// The wish of a leader that groups rest in which nothing happens.
#[derive(Clone, PartialEq, Message)]
pub struct Rest {
    /// The groups.
    #[prost(message, repeated, tag = "1")]
    pub groups: Vec<Resting>,
}

/// A group that is to rest.
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

/// Which groups rest.
#[derive(Clone, PartialEq, Message)]
pub struct RestAnswer {
    /// Whether each rests, in the order of the question: it does if that is all that the replica knows of it, too.
    #[prost(bool, repeated, tag = "1")]
    pub rests: Vec<bool>,
}
