//! The frames that replicas exchange. Each is a message, preceded by its length in four bytes, big-endian.

use bytes::Bytes;

/// One frame.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Frame {
    /// The kind of the frame.
    #[prost(enumeration = "FrameKind", tag = "1")]
    pub kind: i32,
    /// The id of the request, or of the request that is answered. Unique within one direction of a connection.
    #[prost(uint64, tag = "2")]
    pub id: u64,
    /// The number of the method that a request calls.
    #[prost(uint32, tag = "3")]
    pub method: u32,
    /// The payload of the request or the answer.
    #[prost(bytes = "bytes", tag = "4")]
    pub payload: Bytes,
    /// The reading of the sender's clock when it sent the frame, as a revision. The sender will assign no revision up
    /// to this one any more.
    #[prost(fixed64, tag = "5")]
    pub now: u64,
    /// The largest revision that the sender knew to be assigned, in any group, if that is ahead of its clock; 0
    /// otherwise.
    #[prost(fixed64, tag = "6")]
    pub latest: u64,
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum FrameKind {
    /// Shows that the sender is alive.
    Beat = 0,
    /// Carries a [`Hello`]. The first frame of each side; sent again when the hello changes.
    Hello = 1,
    /// A request.
    Request = 2,
    /// The answer to a request.
    Answer = 3,
    /// The refusal of a request, with the reason in UTF-8.
    Refusal = 4,
    /// A request for an empty answer.
    Ping = 5,
}

/// The identity and state that a replica announces.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Hello {
    /// The id of the cluster; empty while the replica belongs to none.
    #[prost(string, tag = "1")]
    pub cluster: String,
    /// The id of the member; 0 while it has none.
    #[prost(fixed64, tag = "2")]
    pub member: u64,
    /// The name of the member.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The version of the peer protocol that it speaks.
    #[prost(uint32, tag = "4")]
    pub version: u32,
    /// The lane of the connection, stated by the side that made it.
    #[prost(enumeration = "Lane", tag = "5")]
    pub lane: i32,
    /// Whether the replica should lead nothing.
    #[prost(bool, tag = "7")]
    pub drained: bool,
    /// The address at which others reach it, `HOST:PORT`.
    #[prost(string, tag = "8")]
    pub address: String,
    /// A checksum of the replicas that it sees for forming a cluster.
    #[prost(fixed32, tag = "9")]
    pub sees: u32,
    /// The address at which clients reach it.
    #[prost(string, tag = "10")]
    pub serves: String,
    /// Whether its disk has no room for the log to grow.
    #[prost(bool, tag = "11")]
    pub full: bool,
    /// The number of voting members that hear it and are heard by it, itself included; 0 when it states none.
    #[prost(uint32, tag = "12")]
    pub hears: u32,
    /// A random number of its process: the clock of a new process may be behind that of the former.
    #[prost(fixed64, tag = "13")]
    pub life: u64,
}

/// The lane of a connection: the kind of calls that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Lane {
    /// Small messages that must not wait.
    Control = 0,
    /// Log entries and forwarded writes.
    Bulk = 1,
    /// Pieces of snapshots.
    Snapshot = 2,
}
