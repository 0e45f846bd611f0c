//! Snapshots: the tables of a group with their history as of one log position, in one checksummed file.
//!
//! A file is a header and then chunks, `length | checksum | kind | content`. It first says the position and up to where
//! the group is closed there, then of each shard its table, division, number and floor and whether it takes writes, its
//! objects as of the floor, and what changed since; last it says that it is complete. It has its name only once it is whole and durable.

mod reader;
#[cfg(test)]
mod snapshot_tests;
mod transfer;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::group::{Captured, ShardId};
use crate::table::shard::Content;
use crate::wal::disk::{Disk, aside};
use crate::wal::{LogRef, WalError};
use crate::{Compacted, Revision};

pub(crate) use self::transfer::{Incoming, Outgoing};

const MAGIC: &[u8; 8] = b"FLOTSNP\n";
/// The format of snapshots that this release writes, and the only one that it reads.
const FORMAT: u32 = 3;

const KIND_META: u8 = 1;
const KIND_SHARD: u8 = 2;
const KIND_OBJECTS: u8 = 3;
const KIND_CHANGES: u8 = 4;
const KIND_END: u8 = 5;

/// What a snapshot is of.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Meta {
    /// The last entry that it includes.
    pub(crate) last: Option<LogRef>,
    /// The membership as of that entry, encoded by the Raft layer.
    pub(crate) membership: Vec<u8>,
    /// The revision up to which the group is closed as a whole.
    pub(crate) base: Revision,
}

/// A snapshot as read.
pub(crate) struct Loaded {
    pub(crate) meta: Meta,
    pub(crate) shards: BTreeMap<ShardId, Content>,
}

/// Why a snapshot cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotWriteError {
    #[error("the snapshot cannot be written")]
    Io(#[from] io::Error),
    #[error("the snapshot took so long that the history it is of is gone")]
    Compacted(#[from] Compacted),
}

/// The snapshots of one group.
#[derive(Clone)]
pub(crate) struct Snapshots {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
}

impl Snapshots {
    /// The snapshots in a directory, which is created when missing. Leftovers of unfinished ones are removed.
    pub(crate) fn open(disk: Arc<dyn Disk>, directory: PathBuf) -> Result<Snapshots, WalError> {
        let failed = |source| WalError::Io { path: directory.clone(), source };
        disk.create_directory(&directory).map_err(failed)?;
        for path in disk.list(&directory).map_err(failed)? {
            if path.extension().is_some_and(|extension| extension == "tmp") {
                disk.remove(&path).map_err(failed)?;
            }
        }
        Ok(Snapshots { disk, directory })
    }

    /// Does work that waits for the disk, where it holds nobody up.
    pub(crate) async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        aside(&*self.disk, work).await
    }

    /// The newest snapshot, if any.
    pub(crate) fn newest(&self) -> Result<Option<PathBuf>, WalError> {
        let failed = |source| WalError::Io { path: self.directory.clone(), source };
        let paths = self.disk.list(&self.directory).map_err(failed)?;
        let snapshots = paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "snap"));
        Ok(snapshots.max()) // names sort by position
    }

    /// Reads a snapshot.
    pub(crate) fn load(&self, path: &Path) -> Result<Loaded, WalError> {
        reader::load(&*self.disk, path)
    }

    /// Writes a snapshot of what was captured, and removes those before it once it is durable.
    pub(crate) fn write(&self, meta: &Meta, captured: &Captured) -> Result<PathBuf, SnapshotWriteError> {
        let path = self.path(meta);
        let unfinished = path.with_extension("tmp");
        let written = writer::write(&*self.disk, &unfinished, meta, captured);
        if let Err(error) = written {
            let _ = self.disk.remove(&unfinished); // what there is of it takes space that others need
            return Err(error);
        }
        self.disk.rename(&unfinished, &path)?;
        self.keep_only(&path)?;
        Ok(path)
    }

    /// Where a snapshot has its place.
    fn path(&self, meta: &Meta) -> PathBuf {
        let entries = meta.last.map_or(0, |last| last.index + 1);
        self.directory.join(format!("{entries:016x}.snap"))
    }

    /// Makes a snapshot's name durable and removes those before it.
    fn keep_only(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_directory(&self.directory)?;
        for older in self.disk.list(&self.directory)? {
            if older.as_path() < path {
                self.disk.remove(&older)?;
            }
        }
        Ok(())
    }
}
