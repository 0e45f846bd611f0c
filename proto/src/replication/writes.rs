//! Writes that a replica asks the leader of a group to make.

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

/// An object to be written.
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
    /// The offset at which the metadata begins.
    #[prost(uint32, tag = "4")]
    pub metadata_start: u32,
    /// The offset at which the metadata ends.
    #[prost(uint32, tag = "5")]
    pub metadata_end: u32,
    /// Labels.
    #[prost(message, repeated, tag = "6")]
    pub labels: Vec<Term>,
    /// Selectable fields.
    #[prost(message, repeated, tag = "7")]
    pub fields: Vec<Term>,
}

/// A write that the sender was asked to make.
#[derive(Clone, PartialEq, Message)]
pub struct Write {
    /// The table.
    #[prost(string, tag = "1")]
    pub table: String,
    /// The key of the object.
    #[prost(string, tag = "2")]
    pub key: String,
    /// The revision that the object must have; zero when it must not exist.
    #[prost(uint64, tag = "3")]
    pub expected: u64,
    /// The new version. `None` to delete the object.
    #[prost(message, optional, tag = "4")]
    pub draft: Option<Draft>,
    /// The group in which the sender places the object's shard.
    #[prost(string, tag = "5")]
    pub group: String,
    /// The division of the table in which the sender places the object.
    #[prost(uint32, tag = "6")]
    pub epoch: u32,
    /// The number of the object's shard in that division.
    #[prost(uint32, tag = "7")]
    pub shard: u32,
    /// The id of the write, the same in every attempt; zero for none.
    #[prost(uint64, tag = "8")]
    pub attempt: u64,
    /// The number of earlier attempts. An earlier attempt that arrives after a later one is not made.
    #[prost(uint32, tag = "9")]
    pub repeated: u32,
    /// The term in which the sender considers the receiver the leader. The write is made only in that term; zero for
    /// any.
    #[prost(uint64, tag = "10")]
    pub term: u64,
}

/// The result of a [`Write`].
#[derive(Clone, PartialEq, Message)]
pub struct WriteOutcome {
    /// One of [`write_result`].
    #[prost(uint32, tag = "1")]
    pub result: u32,
    /// The revision of the write when committed. In a conflict, the revision of the present object, or zero when there
    /// is none.
    #[prost(uint64, tag = "2")]
    pub revision: u64,
    /// The closed revision of the leader's group when it answered: a replica that has reached it sees the result of the
    /// write.
    #[prost(uint64, tag = "3")]
    pub closed: u64,
    /// The id of the leader, as far as known, when the receiver does not lead.
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
