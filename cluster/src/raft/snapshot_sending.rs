//! Sends a snapshot to a replica that is too far behind for the log, and receives one.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use flotilla_proto::replication::{self as message, Method};
use openraft::AnyError;
use openraft::errors::{NetworkError, StreamingError, Unreachable};
use openraft::raft::SnapshotResponse;
use prost::Message;
use tokio::sync::Mutex;

use super::network::Link;
use super::node::GroupRaft;
use super::state_machine::SnapshotFile;
use super::types::{TypeConfig, Vote};
use super::wire;
use crate::limits::{SNAPSHOT_INSTALL_TIMEOUT, SNAPSHOT_PIECE_BYTES, SNAPSHOT_PIECE_TIMEOUT};
use crate::peer::{Lane, PeerError};
use crate::snapshot::{Incoming, Outgoing, Snapshots};

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

/// Receives the snapshots of one group.
#[derive(Clone)]
pub(super) struct Receiver {
    snapshots: Snapshots,
    incoming: Arc<Mutex<Option<Incoming>>>,
    /// Bytes of the disk that must be left free for the log.
    spared: u64,
}

impl Receiver {
    pub(super) fn new(snapshots: Snapshots, spared: u64) -> Receiver {
        Receiver { snapshots, incoming: Arc::default(), spared }
    }

    /// Receives a piece. Returns the offset of the next one.
    pub(super) async fn piece(&self, piece: message::SnapshotPiece) -> io::Result<message::SnapshotPieceAnswer> {
        if crc32c::crc32c(&piece.bytes) != piece.checksum || piece.bytes.len() > SNAPSHOT_PIECE_BYTES {
            return Err(io::Error::other("a piece of a snapshot does not match its checksum"));
        }
        let mut incoming = self.incoming.clone().lock_owned().await;
        let (snapshots, spared) = (self.snapshots.clone(), self.spared);
        let taken = self.snapshots.aside(move || {
            let mut current = match incoming.take().filter(|current| current.name() == piece.name) {
                Some(current) => current,
                None => snapshots.incoming(&piece.name, piece.size, spared)?,
            };
            if let Err(error) = current.take(piece.offset, &piece.bytes) {
                drop(current);
                snapshots.discard_received()?;
                return Err(error);
            }
            let offset = current.received();
            *incoming = Some(current);
            Ok(offset)
        });
        Ok(message::SnapshotPieceAnswer { offset: taken.await?? })
    }

    /// Installs the snapshot that was received.
    pub(super) async fn install(
        &self,
        raft: &GroupRaft,
        install: message::SnapshotInstall,
    ) -> io::Result<message::SnapshotInstallAnswer> {
        let mut incoming = self.incoming.clone().lock_owned().await;
        let installed = self.install_received(raft, incoming.take(), install).await;
        let snapshots = self.snapshots.clone();
        self.snapshots.aside(move || snapshots.discard_received()).await??;
        installed
    }

    async fn install_received(
        &self,
        raft: &GroupRaft,
        received: Option<Incoming>,
        install: message::SnapshotInstall,
    ) -> io::Result<message::SnapshotInstallAnswer> {
        let is_whole = |received: &Incoming| received.name() == install.name && received.received() == install.size;
        let incomplete = || io::Error::other("the snapshot was not received completely");
        let received = received.filter(is_whole).ok_or_else(incomplete)?;
        let snapshots = self.snapshots.clone();
        let received = self.snapshots.aside(move || SnapshotFile::receive(&snapshots, &received.finish()?));
        let snapshot = received.await??;
        let response = raft.install_full_snapshot(wire::vote(&install.ballot), snapshot).await;
        let response = response.map_err(io::Error::other)?;
        Ok(message::SnapshotInstallAnswer { ballot: wire::ballot(&response.vote) })
    }
}
