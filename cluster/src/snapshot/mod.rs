//! Snapshots: the tables of a group with their history at one log position, in one checksummed file.
//!
//! A file is a header and then chunks, `length | checksum | kind | content`. The first chunk has the position in the
//! log, where the log of the group began, and the revision up to which the group is closed there. Each shard follows:
//! its table, division, number, floor and stage, then its objects as of the floor, then the changes since. The last
//! chunk marks the end. The file gets its final name only once it is complete and durable.

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

use crate::disk::magic::SNAPSHOT as MAGIC;
use crate::disk::{Disk, aside};
use crate::entry::ShardId;
use crate::group::Captured;
use crate::limits::{SNAPSHOT_WRITE_BYTES, SNAPSHOT_WRITE_INTERVAL};
use crate::table::shard::Content;
use crate::wal::{LogRef, WalError};
use crate::{Compacted, Revision};

pub(crate) use self::transfer::{Incoming, Outgoing};
use self::writer::Writing;

/// The format of snapshots that this release writes, and the only one that it reads.
const FORMAT: u32 = 4;

const KIND_META: u8 = 1;
const KIND_SHARD: u8 = 2;
const KIND_OBJECTS: u8 = 3;
const KIND_CHANGES: u8 = 4;
const KIND_END: u8 = 5;

/// The position and the membership that a snapshot has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Meta {
    /// The last entry that the snapshot includes.
    pub(crate) last: Option<LogRef>,
    /// The membership as of that entry, encoded by the Raft layer.
    pub(crate) membership: Vec<u8>,
    /// The revision at which the log of the group began. Tables that the snapshot does not mention have been empty
    /// since.
    pub(crate) begun: Revision,
    /// The revision up to which the whole group is closed.
    pub(crate) base: Revision,
}

/// A snapshot that was read.
pub(crate) struct Loaded {
    pub(crate) meta: Meta,
    pub(crate) shards: BTreeMap<ShardId, Content>,
}

/// The reason why a snapshot cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotWriteError {
    #[error("the snapshot cannot be written")]
    Io(#[from] io::Error),
    #[error("the snapshot took so long that a part of its history is gone")]
    Compacted(#[from] Compacted),
}

/// How fast a snapshot is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As fast as possible: a caller waits for it.
    Fast,
    /// Slowly, so that other work is hardly affected; faster the longer it takes, because it holds history meanwhile.
    Gentle,
}

impl Pace {
    /// Returns how long to pause after a piece that took `took`, at the time `elapsed` since the start.
    fn pause(self, elapsed: Duration, took: Duration) -> Duration {
        match self {
            Pace::Fast => Duration::ZERO,
            Pace::Gentle => {
                let period = SNAPSHOT_WRITE_INTERVAL.as_secs_f64();
                let minutes = elapsed.as_secs_f64() / 60.0;
                // A slow disk is left to other work for at least as long as it was used.
                Duration::from_secs_f64(period / minutes.floor().exp2()).saturating_sub(took).max(took)
            }
        }
    }
}

/// Returns whether a file is a complete snapshot.
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
    /// Opens the snapshots in a directory, which is created when missing. Removes unfinished ones.
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

    /// Runs work that waits for the disk on a thread where that blocks nothing else.
    pub(crate) async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        aside(&*self.disk, work).await
    }

    /// Returns the path of the newest snapshot; `None` when there is none.
    pub(crate) fn newest(&self) -> Result<Option<PathBuf>, WalError> {
        let failed = |source| WalError::Io { path: self.directory.clone(), source };
        let paths = self.disk.list(&self.directory).map_err(failed)?;
        Ok(paths.into_iter().filter(|path| is_snapshot(path)).max()) // names sort by position
    }

    /// Brings all snapshots into the form that a new one would have.
    pub(crate) fn renew(&self) -> Result<(), WalError> {
        let failed = |source| WalError::Io { path: self.directory.clone(), source };
        let paths = self.disk.list(&self.directory).map_err(failed)?;
        let renewed =
            |path: &PathBuf| self.disk.renew(path).map_err(|source| WalError::Io { path: path.clone(), source });
        paths.iter().filter(|path| is_snapshot(path)).try_for_each(renewed)
    }

    /// Reads a snapshot.
    pub(crate) fn load(&self, path: &Path) -> Result<Loaded, WalError> {
        reader::load(&*self.disk, path)
    }

    /// Writes a snapshot of a captured state piece by piece, and removes the ones before it once it is durable.
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

    /// Returns the path of a snapshot.
    fn path(&self, meta: &Meta) -> PathBuf {
        let entries = meta.last.map_or(0, |last| last.index + 1);
        self.directory.join(format!("{entries:016x}.snap"))
    }

    /// Makes a snapshot's name durable and removes the ones before it. Leaves unfinished files alone, since another
    /// snapshot may be written or received at the same time; some may also be gone already.
    fn keep_only(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_directory(&self.directory)?;
        for older in self.disk.list(&self.directory)? {
            if is_snapshot(&older) && older.as_path() < path {
                self.remove(&older)?;
            }
        }
        Ok(())
    }

    /// Removes a file, if it exists.
    fn remove(&self, path: &Path) -> io::Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}
