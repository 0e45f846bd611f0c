//! What replicas say to each other: frames, each a message with its length in four bytes, big end first, before it.

use bytes::Bytes;

/// One frame.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Frame {
    /// What it is.
    #[prost(enumeration = "FrameKind", tag = "1")]
    pub kind: i32,
    /// Which request it is, or belongs to: unique on a connection, for each direction by itself.
    #[prost(uint64, tag = "2")]
    pub id: u64,
    /// What a request asks for.
    #[prost(uint32, tag = "3")]
    pub method: u32,
    /// What the request or answer carries.
    #[prost(bytes = "bytes", tag = "4")]
    pub payload: Bytes,
    /// What the clock of its sender showed when it was sent, as a revision: it will assign none up to there any more.
    #[prost(fixed64, tag = "5")]
    pub now: u64,
    /// The largest revision that its sender knew to be assigned, in any group, when that is ahead of its clock.
    #[prost(fixed64, tag = "6")]
    pub latest: u64,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum FrameKind {
    /// Says that its sender is alive.
    Beat = 0,
    /// Carries a [`Hello`]: the first frame of each side, and again when it changes.
    Hello = 1,
    /// Asks for something.
    Request = 2,
    /// Answers a request.
    Answer = 3,
    /// Says in UTF-8 why a request is not done.
    Refusal = 4,
    /// Asks for an empty answer.
    Ping = 5,
}

/// Who a replica says it is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Hello {
    /// Id of the cluster; empty as long as it belongs to none.
    #[prost(string, tag = "1")]
    pub cluster: String,
    /// Id of the member; 0 as long as it has none.
    #[prost(fixed64, tag = "2")]
    pub member: u64,
    /// Name of the member.
    #[prost(string, tag = "3")]
    pub name: String,
    /// What it understands.
    #[prost(uint32, tag = "4")]
    pub version: u32,
    /// What the connection is for, said by who made it.
    #[prost(enumeration = "Lane", tag = "5")]
    pub lane: i32,
    /// Whether it is to lead nothing.
    #[prost(bool, tag = "7")]
    pub drained: bool,
    /// Where others reach it, `HOST:PORT`.
    #[prost(string, tag = "8")]
    pub address: String,
    /// Checksum of who it sees that is to form a cluster with it.
    #[prost(fixed32, tag = "9")]
    pub sees: u32,
    /// The address at which clients reach it.
    #[prost(string, tag = "10")]
    pub serves: String,
    /// Whether its disk has no room for the log to grow.
    #[prost(bool, tag = "11")]
    pub full: bool,
    /// How many members with a vote hear it and are heard by it, itself among them; 0 when it does not say.
    #[prost(uint32, tag = "12")]
    pub hears: u32,
    /// A random number of its process: the clock of a new one may be behind that of the one before.
    #[prost(fixed64, tag = "13")]
    pub life: u64,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Lane {
    /// What is small and must not wait.
    Control = 0,
    /// Log entries and forwarded writes.
    Bulk = 1,
    /// Parts of snapshots.
    Snapshot = 2,
}
