//! Sends a snapshot to a replica that is too far behind for the log.

use std::sync::Arc;
use std::time::Duration;

use flotilla_proto::replication::{self as message, Method};
use openraft::AnyError;
use openraft::errors::{NetworkError, StreamingError, Unreachable};
use openraft::raft::SnapshotResponse;
use prost::Message;

use super::link::Link;
use super::state_machine::SnapshotFile;
use super::types::{TypeConfig, Vote};
use super::wire;
use crate::limits::{SNAPSHOT_INSTALL_TIMEOUT, SNAPSHOT_PIECE_TIMEOUT};
use crate::peer::{Lane, PeerError};
use crate::snapshot::Outgoing;

type Sent<T> = Result<T, StreamingError<TypeConfig>>;

fn unreadable(error: &(impl std::error::Error + 'static)) -> StreamingError<TypeConfig> {
    StreamingError::Network(NetworkError::new(error))
}

fn unsent(error: &PeerError) -> StreamingError<TypeConfig> {
    StreamingError::Unreachable(Unreachable::new(error))
}

/// Sends a snapshot, starting after the bytes that the other replica has already, and waits until it is installed.
pub(super) async fn send(link: &Link, vote: &Vote, file: &SnapshotFile) -> Sent<SnapshotResponse<TypeConfig>> {
    let source = file.clone();
    let opened = file.aside(move || source.outgoing()).await.flatten();
    let outgoing = Arc::new(opened.map_err(|error| unreadable(&error))?);
    // The same name always stands for the same bytes, whichever transfer sends them.
    let size = outgoing.size();
    let name = format!("{:x}-{}-{size:x}", link.node(), file.name());
    let piece = |offset, bytes: bytes::Bytes| message::SnapshotPiece {
        group: link.group().to_owned(),
        name: name.clone(),
        offset,
        checksum: crc32c::crc32c(&bytes),
        bytes,
        size,
    };
    let mut offset = put(link, &piece(0, bytes::Bytes::new())).await?;
    tracing::info!(group = link.group(), name, size, offset, "sending a snapshot");
    while offset < size {
        let bytes = read(file, &outgoing, offset).await?;
        offset = put(link, &piece(offset, bytes)).await?;
    }
    let install = message::SnapshotInstall {
        group: link.group().to_owned(),
        name: name.clone(),
        size,
        ballot: wire::ballot(vote),
    };
    let answer = ask(link, Method::SnapshotInstall, &install, SNAPSHOT_INSTALL_TIMEOUT).await?;
    let answer = message::SnapshotInstallAnswer::decode(answer).map_err(|error| unreadable(&error))?;
    tracing::info!(group = link.group(), name, "a snapshot was installed");
    Ok(wire::snapshot_answer(&answer))
}

async fn read(file: &SnapshotFile, outgoing: &Arc<Outgoing>, offset: u64) -> Sent<bytes::Bytes> {
    let outgoing = outgoing.clone();
    let bytes = file.aside(move || outgoing.piece(offset)).await.flatten().map_err(|error| unreadable(&error))?;
    if bytes.is_empty() {
        return Err(unreadable(&AnyError::error("the snapshot is shorter than it was")));
    }
    Ok(bytes)
}

/// Sends a piece. Returns the offset of the next one.
async fn put(link: &Link, piece: &message::SnapshotPiece) -> Sent<u64> {
    let answer = ask(link, Method::SnapshotPiece, piece, SNAPSHOT_PIECE_TIMEOUT).await?;
    Ok(message::SnapshotPieceAnswer::decode(answer).map_err(|error| unreadable(&error))?.offset)
}

async fn ask(link: &Link, method: Method, request: &impl Message, timeout: Duration) -> Sent<bytes::Bytes> {
    link.call(Lane::Snapshot, method, request, timeout).await.map_err(|error| unsent(&error))
}
