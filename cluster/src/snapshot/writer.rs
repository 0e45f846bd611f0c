//! Writes a snapshot while its tables are in use.

use std::io;
use std::path::{Path, PathBuf};

use super::appending::Appending;
use super::{
    FORMAT, KIND_CHANGES, KIND_END, KIND_META, KIND_OBJECTS, KIND_SHARD, MAGIC, Meta, SnapshotWriteError, Snapshots,
};
use crate::chunk;
use crate::codec::{put_blob, put_long, put_object, put_operation, put_text};
use crate::entry::{Operation, ShardId};
use crate::group::Captured;
use crate::limits::SNAPSHOT_CHUNK_BYTES;
use crate::table::shard::Capture;
use crate::table::stage::StageContent;
use crate::{Change, Key, Revision};

/// A snapshot that is being written, piece by piece. The captured state is released shard by shard.
pub(crate) struct Writing {
    snapshots: Snapshots,
    /// Its path once it is complete.
    path: PathBuf,
    chunks: Chunks,
    current: Option<(ShardId, Capture)>,
    shards: std::vec::IntoIter<(ShardId, Capture)>,
    position: WritePosition,
}

/// The position in a shard at which the next piece begins.
enum WritePosition {
    /// In its objects, after this key.
    Objects(Option<Key>),
    /// In its changes, after this revision.
    Changes(Revision),
}

impl Writing {
    /// Creates the file, and writes its first chunk.
    pub(super) fn begin(snapshots: &Snapshots, meta: &Meta, captured: Captured) -> io::Result<Writing> {
        let path = snapshots.path(meta);
        let file = Appending::new(snapshots.disk.create(&unfinished(&path))?);
        let mut chunks = Chunks { file, chunk: Vec::new(), count: 0 };
        chunks.head()?;
        chunks.begin(KIND_META);
        chunks.chunk.push(u8::from(meta.last.is_some()));
        let last = meta.last.map_or([0; 3], |last| [last.term, last.node, last.index]);
        last.into_iter().for_each(|number| put_long(number, &mut chunks.chunk));
        put_long(captured.begun.get(), &mut chunks.chunk);
        put_long(captured.base.get(), &mut chunks.chunk);
        put_blob(&meta.membership, &mut chunks.chunk);
        chunks.end()?;
        let (snapshots, shards) = (snapshots.clone(), captured.shards.into_iter());
        Ok(Writing { snapshots, path, chunks, current: None, shards, position: WritePosition::Objects(None) })
    }

    /// Writes about `bytes` more bytes and makes them durable, so that never much waits for the disk at once. Returns
    /// the path when the snapshot is complete; the ones before it have then been removed. Returns `None` when there is
    /// more to write.
    pub(crate) fn write(&mut self, bytes: usize) -> Result<Option<PathBuf>, SnapshotWriteError> {
        let written = self.write_on(bytes);
        if written.is_err() {
            let _ = self.snapshots.disk.remove(&unfinished(&self.path)); // the file takes space that is needed
        }
        written
    }

    fn write_on(&mut self, bytes: usize) -> Result<Option<PathBuf>, SnapshotWriteError> {
        let end = self.chunks.file.len() + bytes as u64;
        while self.chunks.file.len() < end {
            if self.current.is_none() && !self.next_shard()? {
                return self.finish().map(Some);
            }
            self.write_some()?;
        }
        self.chunks.file.sync()?;
        Ok(None)
    }

    /// Starts the next shard. Returns false when there is none.
    fn next_shard(&mut self) -> io::Result<bool> {
        let Some((shard, capture)) = self.shards.next() else { return Ok(false) };
        self.chunks.begin(KIND_SHARD);
        put_shard(&shard, &capture, &mut self.chunks.chunk);
        self.chunks.end()?;
        self.chunks.begin(KIND_OBJECTS);
        self.current = Some((shard, capture));
        self.position = WritePosition::Objects(None);
        Ok(true)
    }

    /// Writes as much of the shard as one read of it returns.
    fn write_some(&mut self) -> Result<(), SnapshotWriteError> {
        let Some((_, capture)) = &self.current else { return Ok(()) };
        let chunks = &mut self.chunks;
        match &self.position {
            WritePosition::Objects(after) => {
                let mut objects = Vec::new();
                let after = capture.objects(after.as_ref(), &mut objects)?;
                for object in objects {
                    put_object(&object, &mut chunks.chunk);
                    chunks.end_when_full(KIND_OBJECTS)?;
                }
                self.position = match after {
                    Some(key) => WritePosition::Objects(Some(key)),
                    None => {
                        chunks.end()?;
                        chunks.begin(KIND_CHANGES);
                        WritePosition::Changes(capture.floor)
                    }
                };
            }
            WritePosition::Changes(after) => {
                let mut changes = Vec::new();
                capture.changes(*after, &mut changes)?;
                let Some(last) = changes.last().map(|change| change.revision()) else {
                    self.current = None;
                    return Ok(chunks.end()?);
                };
                for change in changes {
                    put_change(&change, &mut chunks.chunk);
                    chunks.end_when_full(KIND_CHANGES)?;
                }
                self.position = WritePosition::Changes(last);
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<PathBuf, SnapshotWriteError> {
        let count = self.chunks.count;
        self.chunks.begin(KIND_END);
        put_long(count, &mut self.chunks.chunk);
        self.chunks.end()?;
        self.chunks.file.finish()?;
        self.snapshots.disk.rename(&unfinished(&self.path), &self.path)?;
        self.snapshots.keep_only(&self.path)?;
        Ok(self.path.clone())
    }
}

/// Returns the path of a snapshot while it is incomplete.
fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("tmp")
}

fn put_shard(shard: &ShardId, capture: &Capture, out: &mut Vec<u8>) {
    put_text(shard.table.as_str(), out);
    out.extend_from_slice(&shard.epoch.to_le_bytes());
    out.extend_from_slice(&shard.number.to_le_bytes());
    put_long(capture.floor.get(), out);
    let StageContent { filled, opened, ended } = capture.stage;
    put_long(filled.step, out);
    for revision in [filled.through, opened, ended] {
        put_long(revision.map_or(0, Revision::get), out);
    }
}

fn put_change(change: &Change, out: &mut Vec<u8>) {
    let object = change.object();
    // For a deletion, the last state is the object of the change before it, so only the key is written.
    let operation = Operation::of(object);
    put_operation(object.key(), change.revision(), &operation, out);
}

struct Chunks {
    file: Appending,
    chunk: Vec<u8>,
    count: u64,
}

impl Chunks {
    fn head(&mut self) -> std::io::Result<()> {
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&FORMAT.to_le_bytes());
        self.file.extend(&header)
    }

    fn begin(&mut self, kind: u8) {
        chunk::begin(kind, &mut self.chunk);
    }

    fn end(&mut self) -> std::io::Result<()> {
        chunk::seal(&mut self.chunk);
        self.file.extend(&self.chunk)?;
        self.count += 1;
        Ok(())
    }

    fn end_when_full(&mut self, kind: u8) -> std::io::Result<()> {
        if self.chunk.len() >= SNAPSHOT_CHUNK_BYTES {
            self.end()?;
            self.begin(kind);
        }
        Ok(())
    }
}
