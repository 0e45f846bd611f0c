//! Transfers of a snapshot from one replica to another: pieces of the file, in order, each with a checksum.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::appending::Appending;
use super::{Meta, Snapshots};
use crate::disk::DiskFile;
use crate::limits::SNAPSHOT_PIECE_BYTES;

/// A snapshot that is being sent. It stays readable when a newer one replaces it meanwhile.
pub(crate) struct Outgoing {
    file: Arc<dyn DiskFile>,
    size: u64,
}

impl Outgoing {
    /// Returns the size of the file, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Reads the piece at an offset from the disk.
    pub(crate) fn piece(&self, offset: u64) -> io::Result<Bytes> {
        let length = self.size.saturating_sub(offset).min(SNAPSHOT_PIECE_BYTES as u64) as usize;
        let mut bytes = vec![0; length];
        let read = self.file.read_at(offset, &mut bytes)?;
        bytes.truncate(read);
        Ok(Bytes::from(bytes))
    }
}

/// A snapshot that is being received. The received bytes survive a broken connection, but not a restart.
pub(crate) struct Incoming {
    name: String,
    path: PathBuf,
    file: Appending,
}

impl Incoming {
    /// Returns the name that the sender gave it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns how many bytes were received.
    pub(crate) fn received(&self) -> u64 {
        self.file.len()
    }

    /// Appends the next piece. Ignores one that was received already, or that does not follow the received bytes.
    pub(crate) fn take(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if offset != self.received() {
            return Ok(());
        }
        self.file.extend(bytes)
    }

    /// Makes the received file durable. Returns its path.
    pub(crate) fn finish(self) -> io::Result<PathBuf> {
        self.file.finish()?;
        Ok(self.path)
    }
}

impl Snapshots {
    /// Opens a snapshot for sending.
    pub(crate) fn outgoing(&self, path: &Path) -> io::Result<Outgoing> {
        let file: Arc<dyn DiskFile> = self.disk.open(path)?.into();
        Ok(Outgoing { size: file.size()?, file })
    }

    /// Starts to receive a snapshot of this size, and drops the bytes that were received before. Fails when the disk
    /// would be left with less than `spared` bytes of room.
    pub(crate) fn incoming(&self, name: &str, size: u64, spared: u64) -> io::Result<Incoming> {
        self.discard_received()?;
        if size > 0 && self.disk.room(&self.directory)? < size.saturating_add(spared) {
            let what = format!("the disk has no room for a snapshot of {size} bytes besides the log");
            return Err(io::Error::new(io::ErrorKind::StorageFull, what));
        }
        let path = self.received();
        let file = Appending::new(self.disk.create(&path)?);
        Ok(Incoming { name: name.to_owned(), path, file })
    }

    /// Returns the path at which a snapshot is received.
    fn received(&self) -> PathBuf {
        self.directory.join("received.tmp")
    }

    /// Removes the received file, unless it was adopted meanwhile: it takes space that is needed.
    pub(crate) fn discard_received(&self) -> io::Result<()> {
        self.remove(&self.received())
    }

    /// Gives a received snapshot its final name, and removes the ones before it.
    pub(crate) fn adopt(&self, received: &Path, meta: &Meta) -> io::Result<PathBuf> {
        let path = self.path(meta);
        self.disk.rename(received, &path)?;
        self.keep_only(&path)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::SimulatedDisk;

    #[test]
    fn pieces_are_taken_once_and_in_order() {
        let snapshots = Snapshots::open(Arc::new(SimulatedDisk::default()), "/snapshots".into()).unwrap();
        let mut incoming = snapshots.incoming("a", 6, 0).unwrap();
        incoming.take(0, b"one").unwrap();
        incoming.take(0, b"one").unwrap();
        incoming.take(7, b"gap").unwrap();
        assert_eq!(incoming.received(), 3);
        incoming.take(3, b"two").unwrap();
        let received = incoming.finish().unwrap();
        let path = snapshots.adopt(&received, &Meta::default()).unwrap();
        assert_eq!(snapshots.newest().unwrap(), Some(path.clone()));
        let outgoing = snapshots.outgoing(&path).unwrap();
        assert_eq!((outgoing.size(), &*outgoing.piece(1).unwrap()), (6, &b"netwo"[..]));
        assert!(outgoing.piece(6).unwrap().is_empty());
    }
}
