//! Snapshots that are sent in place of a log that is gone.

use bytes::Bytes;
use prost::Message;

use super::Ballot;

/// A piece of a snapshot, or with no bytes the question how much of it is there already.
#[derive(Clone, PartialEq, Message)]
pub struct SnapshotPiece {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// Which snapshot: the same name stands for the same bytes.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Where in the file the bytes belong.
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    /// CRC-32C of the bytes.
    #[prost(fixed32, tag = "4")]
    pub checksum: u32,
    /// The bytes.
    #[prost(bytes = "bytes", tag = "5")]
    pub bytes: Bytes,
    /// Size of the file; zero from a sender that does not tell.
    #[prost(uint64, tag = "6")]
    pub size: u64,
}

/// How much of a snapshot is there.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct SnapshotPieceAnswer {
    /// Where the next piece begins.
    #[prost(uint64, tag = "1")]
    pub offset: u64,
}

/// The snapshot is complete.
#[derive(Clone, PartialEq, Message)]
pub struct SnapshotInstall {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// Which snapshot.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Its size in bytes.
    #[prost(uint64, tag = "3")]
    pub size: u64,
    /// The leader.
    #[prost(message, required, tag = "4")]
    pub ballot: Ballot,
}

/// What became of a [`SnapshotInstall`].
#[derive(Clone, PartialEq, Message)]
pub struct SnapshotInstallAnswer {
    /// The replica's ballot.
    #[prost(message, required, tag = "1")]
    pub ballot: Ballot,
}
