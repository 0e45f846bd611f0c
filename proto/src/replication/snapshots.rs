//! Snapshots, which are sent when the log does not reach back far enough.

use bytes::Bytes;
use prost::Message;

use super::Ballot;

/// A piece of a snapshot. Without bytes it asks how many bytes were received already.
#[derive(Clone, PartialEq, Message)]
pub struct SnapshotPiece {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The name of the snapshot. The same name always stands for the same bytes.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The offset of the bytes in the file.
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    /// The CRC-32C of the bytes.
    #[prost(fixed32, tag = "4")]
    pub checksum: u32,
    /// The bytes.
    #[prost(bytes = "bytes", tag = "5")]
    pub bytes: Bytes,
    /// The size of the file; zero from a sender that does not state it.
    #[prost(uint64, tag = "6")]
    pub size: u64,
}

/// How much of a snapshot was received.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct SnapshotPieceAnswer {
    /// The offset of the next piece.
    #[prost(uint64, tag = "1")]
    pub offset: u64,
}

/// The request to install a snapshot that was sent completely.
#[derive(Clone, PartialEq, Message)]
pub struct SnapshotInstall {
    /// The group.
    #[prost(string, tag = "1")]
    pub group: String,
    /// The name of the snapshot.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Its size in bytes.
    #[prost(uint64, tag = "3")]
    pub size: u64,
    /// The leader.
    #[prost(message, required, tag = "4")]
    pub ballot: Ballot,
}

/// The answer to a [`SnapshotInstall`].
#[derive(Clone, PartialEq, Message)]
pub struct SnapshotInstallAnswer {
    /// The ballot of the replica.
    #[prost(message, required, tag = "1")]
    pub ballot: Ballot,
}
