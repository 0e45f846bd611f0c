//! Receives the snapshots that the leader sends to this replica, when it is too far behind for the log.

use std::io;
use std::sync::Arc;

use flotilla_proto::replication as message;
use tokio::sync::Mutex;

use super::state_machine::{GroupRaft, SnapshotFile};
use super::wire;
use crate::limits::SNAPSHOT_PIECE_BYTES;
use crate::snapshot::{Incoming, Snapshots};

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
