//! What a replica asks before it shows what it has.

use prost::Message;

/// The question for a read point.
#[derive(Clone, PartialEq, Message)]
pub struct ReadIndex {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
}

/// A read point.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ReadIndexAnswer {
    /// Up to which index a replica must have applied; zero when the one asked does not lead.
    #[prost(uint64, tag = "1")]
    pub index: u64,
    /// Who leads, as far as known.
    #[prost(uint64, tag = "2")]
    pub leader: u64,
}

/// The wish for a promise that a group gives no revision up to this one any more.
#[derive(Clone, PartialEq, Message)]
pub struct Close {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The revision.
    #[prost(uint64, tag = "2")]
    pub revision: u64,
}

/// Whether the promise stands in the log.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct CloseAnswer {
    /// Whether it is given; else the one asked does not lead.
    #[prost(bool, tag = "1")]
    pub closed: bool,
    /// Who leads, as far as known.
    #[prost(uint64, tag = "2")]
    pub leader: u64,
}
