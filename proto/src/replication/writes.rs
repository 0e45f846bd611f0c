//! Writes that the leader of a group is asked to make.

use bytes::Bytes;
use prost::Message;

/// A label or a selectable field.
#[derive(Clone, PartialEq, Message)]
pub struct Term {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// An object that is to be written.
#[derive(Clone, PartialEq, Message)]
pub struct Draft {
    /// The encoded object, with placeholders for the revision.
    #[prost(bytes = "bytes", tag = "1")]
    pub bytes: Bytes,
    /// Offset of the placeholders.
    #[prost(uint32, tag = "2")]
    pub revision_at: u32,
    /// Offset at which the type meta ends.
    #[prost(uint32, tag = "3")]
    pub head: u32,
    /// Where the metadata begins.
    #[prost(uint32, tag = "4")]
    pub metadata_start: u32,
    /// Where the metadata ends.
    #[prost(uint32, tag = "5")]
    pub metadata_end: u32,
    /// Labels.
    #[prost(message, repeated, tag = "6")]
    pub labels: Vec<Term>,
    /// Selectable fields.
    #[prost(message, repeated, tag = "7")]
    pub fields: Vec<Term>,
}

/// A write that another replica was asked to make.
#[derive(Clone, PartialEq, Message)]
pub struct Write {
    /// The table.
    #[prost(string, tag = "1")]
    pub table: String,
    /// The object.
    #[prost(string, tag = "2")]
    pub key: String,
    /// The revision that the object must have; zero when there must be none.
    #[prost(uint64, tag = "3")]
    pub expected: u64,
    /// The new version; none to delete.
    #[prost(message, optional, tag = "4")]
    pub draft: Option<Draft>,
    /// The group that the sender takes the object's shard to be in.
    #[prost(string, tag = "5")]
    pub group: String,
    /// The division of the table that the sender takes it to have.
    #[prost(uint32, tag = "6")]
    pub epoch: u32,
    /// The object's shard there.
    #[prost(uint32, tag = "7")]
    pub shard: u32,
    /// The name of the write, by which it is known when it is asked for again; zero for none.
    #[prost(uint64, tag = "8")]
    pub attempt: u64,
    /// How often it was asked for before. What was asked for earlier and comes later is not made.
    #[prost(uint32, tag = "9")]
    pub repeated: u32,
    /// The term in which the sender takes the receiver to lead: only in that it is made. Zero for any.
    #[prost(uint64, tag = "10")]
    pub term: u64,
}

/// What became of a [`Write`].
#[derive(Clone, PartialEq, Message)]
pub struct WriteOutcome {
    /// One of [`write_result`].
    #[prost(uint32, tag = "1")]
    pub result: u32,
    /// The revision of the write when committed; of the present object, or zero, when in conflict.
    #[prost(uint64, tag = "2")]
    pub revision: u64,
    /// Up to where the leader's group was closed when it answered: who has that much sees what the write came to.
    #[prost(uint64, tag = "3")]
    pub closed: u64,
    /// Who leads, as far as known, when this replica does not.
    #[prost(uint64, tag = "4")]
    pub leader: u64,
}

/// Values of [`WriteOutcome::result`].
pub mod write_result {
    /// The write happened.
    pub const COMMITTED: u32 = 0;
    /// The expectation did not hold.
    pub const CONFLICT: u32 = 1;
    /// The replica does not lead; the write did not happen.
    pub const NOT_LEADER: u32 = 2;
    /// There is no leader; the write did not happen.
    pub const UNAVAILABLE: u32 = 3;
    /// The leader's disk is full; the write did not happen.
    pub const NO_SPACE: u32 = 4;
    /// Too many writes wait; the write did not happen.
    pub const QUEUE_FULL: u32 = 5;
    /// The write cannot be made.
    pub const MALFORMED: u32 = 6;
    /// The leader is stopping; the write did not happen.
    pub const CLOSED: u32 = 7;
    /// The write may have happened.
    pub const UNKNOWN: u32 = 8;
    /// The shard takes no writes any more; the write did not happen.
    pub const MOVED: u32 = 9;
}
