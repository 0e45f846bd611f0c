//! Calls that a replica makes before it answers a read.

use prost::Message;

/// The request for a read point.
#[derive(Clone, PartialEq, Message)]
pub struct ReadIndex {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
}

/// A read point.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ReadIndexAnswer {
    /// The index up to which a replica must have applied; zero when the receiver does not lead.
    #[prost(uint64, tag = "1")]
    pub index: u64,
    /// The id of the leader, as far as the receiver knows.
    #[prost(uint64, tag = "2")]
    pub leader: u64,
}

/// The request for a promise that a group assigns no revision up to this one any more.
#[derive(Clone, PartialEq, Message)]
pub struct Close {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The revision.
    #[prost(uint64, tag = "2")]
    pub revision: u64,
}

/// The answer to a [`Close`].
#[derive(Clone, Copy, PartialEq, Message)]
pub struct CloseAnswer {
    /// Whether the promise is committed. If not, the receiver does not lead.
    #[prost(bool, tag = "1")]
    pub closed: bool,
    /// The id of the leader, as far as the receiver knows.
    #[prost(uint64, tag = "2")]
    pub leader: u64,
}
