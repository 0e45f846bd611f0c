//! Snapshots: the tables of a group with their history as of one log position, in one checksummed file.
//!
//! A file is a header and then chunks, `length | checksum | kind | content`. It first says the position, where the log
//! of the group began and up to where the group is closed there, then of each shard its table, division, number and
//! floor and whether it takes writes, its objects as of the floor, and what changed since; last it says that it is
//! complete. It has its name only once it is whole and durable.

mod appending;
mod reader;
#[cfg(test)]
mod snapshot_tests;
mod transfer;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::entry::ShardId;
use crate::group::Captured;
use crate::limits::{SNAPSHOT_WRITE_BYTES, SNAPSHOT_WRITE_INTERVAL};
use crate::table::shard::Content;
use crate::wal::disk::{Disk, aside};
use crate::wal::{LogRef, WalError};
use crate::{Compacted, Revision};

pub(crate) use self::transfer::{Incoming, Outgoing};
use self::writer::Writing;

const MAGIC: &[u8; 8] = b"FLOTSNP\n";
/// The format of snapshots that this release writes, and the only one that it reads.
const FORMAT: u32 = 4;

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
    /// Where the log of the group began: tables of which the snapshot has nothing were empty then and ever since.
    pub(crate) begun: Revision,
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

/// How fast a snapshot is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As fast as can be: somebody waits for it.
    Fast,
    /// So that others hardly notice; faster the longer it takes, because it holds what it is of.
    Gentle,
}

impl Pace {
    /// How long to pause after a piece that took this long, so long after the beginning.
    fn pause(self, elapsed: Duration, took: Duration) -> Duration {
        match self {
            Pace::Fast => Duration::ZERO,
            Pace::Gentle => {
                let period = SNAPSHOT_WRITE_INTERVAL.as_secs_f64();
                let minutes = elapsed.as_secs_f64() / 60.0;
                // A slow disk is left to others for at least as long as it was used.
                Duration::from_secs_f64(period / minutes.floor().exp2()).saturating_sub(took).max(took)
            }
        }
    }
}

/// Whether a file is a snapshot that is whole.
fn is_snapshot(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "snap")
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
        Ok(paths.into_iter().filter(|path| is_snapshot(path)).max()) // names sort by position
    }

    /// Reads a snapshot.
    pub(crate) fn load(&self, path: &Path) -> Result<Loaded, WalError> {
        reader::load(&*self.disk, path)
    }

    /// Writes a snapshot of what was captured, aside and piece by piece, and removes those before it once it is
    /// durable.
    pub(crate) async fn write(
        &self,
        meta: Meta,
        captured: Captured,
        pace: Pace,
    ) -> Result<PathBuf, SnapshotWriteError> {
        let (snapshots, began) = (self.clone(), Instant::now());
        let mut writing = self.aside(move || Writing::begin(&snapshots, &meta, captured)).await??;
        loop {
            let piece_began = Instant::now();
            let (rest, written) = self
                .aside(move || {
                    let written = writing.write(SNAPSHOT_WRITE_BYTES);
                    (writing, written)
                })
                .await?;
            if let Some(path) = written? {
                return Ok(path);
            }
            writing = rest;
            tokio::time::sleep(pace.pause(began.elapsed(), piece_began.elapsed())).await;
        }
    }

    /// Where a snapshot has its place.
    fn path(&self, meta: &Meta) -> PathBuf {
        let entries = meta.last.map_or(0, |last| last.index + 1);
        self.directory.join(format!("{entries:016x}.snap"))
    }

    /// Makes a snapshot's name durable and removes those before it. One may be written while another is received, so
    /// that what is not whole yet is left alone, and some may be gone already.
    fn keep_only(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_directory(&self.directory)?;
        for older in self.disk.list(&self.directory)? {
            if is_snapshot(&older) && older.as_path() < path {
                self.remove(&older)?;
            }
        }
        Ok(())
    }

    /// Removes a file, if it is there.
    fn remove(&self, path: &Path) -> io::Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}
