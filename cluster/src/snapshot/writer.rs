//! Writing a snapshot while the tables go on.

use std::path::Path;

use super::{FORMAT, KIND_CHANGES, KIND_END, KIND_META, KIND_OBJECTS, KIND_SHARD, MAGIC, Meta, SnapshotWriteError};
use crate::chunk;
use crate::codec::{put_blob, put_long, put_object, put_operation, put_text};
use crate::group::{Captured, Operation, ShardId};
use crate::limits::SNAPSHOT_CHUNK_BYTES;
use crate::table::shard::Capture;
use crate::table::stage::StageContent;
use crate::wal::disk::{Disk, DiskFile};
use crate::{Change, Revision};

/// Writes and syncs the whole file.
pub(super) fn write(disk: &dyn Disk, path: &Path, meta: &Meta, captured: &Captured) -> Result<(), SnapshotWriteError> {
    let mut chunks = Chunks { file: disk.create(path)?, offset: 0, chunk: Vec::new(), count: 0 };
    chunks.head()?;
    chunks.begin(KIND_META);
    chunks.chunk.push(u8::from(meta.last.is_some()));
    let last = meta.last.map_or([0; 3], |last| [last.term, last.node, last.index]);
    last.into_iter().for_each(|number| put_long(number, &mut chunks.chunk));
    put_long(captured.base.get(), &mut chunks.chunk);
    put_blob(&meta.membership, &mut chunks.chunk);
    chunks.end()?;
    for (shard, capture) in &captured.shards {
        write_shard(&mut chunks, shard, capture)?;
    }
    let count = chunks.count;
    chunks.begin(KIND_END);
    put_long(count, &mut chunks.chunk);
    chunks.end()?;
    Ok(chunks.file.sync()?)
}

fn write_shard(chunks: &mut Chunks, id: &ShardId, capture: &Capture) -> Result<(), SnapshotWriteError> {
    chunks.begin(KIND_SHARD);
    put_text(id.table.as_str(), &mut chunks.chunk);
    chunks.chunk.extend_from_slice(&id.epoch.to_le_bytes());
    chunks.chunk.extend_from_slice(&id.number.to_le_bytes());
    put_long(capture.floor.get(), &mut chunks.chunk);
    let StageContent { filled, opened, ended } = capture.stage;
    put_long(filled.step, &mut chunks.chunk);
    for revision in [filled.through, opened, ended] {
        put_long(revision.map_or(0, Revision::get), &mut chunks.chunk);
    }
    chunks.end()?;

    let (mut objects, mut after) = (Vec::new(), None);
    chunks.begin(KIND_OBJECTS);
    loop {
        after = capture.objects(after.as_ref(), &mut objects)?;
        for object in objects.drain(..) {
            put_object(&object, &mut chunks.chunk);
            chunks.end_when_full(KIND_OBJECTS)?;
        }
        if after.is_none() {
            break;
        }
    }
    chunks.end()?;

    let (mut changes, mut after) = (Vec::new(), capture.floor);
    chunks.begin(KIND_CHANGES);
    loop {
        capture.changes(after, &mut changes)?;
        let Some(last) = changes.last().map(|change| change.revision()) else { break };
        after = last;
        for change in changes.drain(..) {
            put_change(&change, &mut chunks.chunk);
            chunks.end_when_full(KIND_CHANGES)?;
        }
    }
    Ok(chunks.end()?)
}

fn put_change(change: &Change, out: &mut Vec<u8>) {
    let object = change.object();
    // The last state of what was deleted is that of the change before.
    let operation = if object.is_tombstone() { Operation::Delete } else { Operation::Put(object.clone()) };
    put_operation(object.key(), change.revision(), &operation, out);
}

struct Chunks {
    file: Box<dyn DiskFile>,
    offset: u64,
    chunk: Vec<u8>,
    count: u64,
}

impl Chunks {
    fn head(&mut self) -> std::io::Result<()> {
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&FORMAT.to_le_bytes());
        self.file.write_at(0, &header)?;
        self.offset = header.len() as u64;
        Ok(())
    }

    fn begin(&mut self, kind: u8) {
        chunk::begin(kind, &mut self.chunk);
    }

    fn end(&mut self) -> std::io::Result<()> {
        chunk::seal(&mut self.chunk);
        self.file.write_at(self.offset, &self.chunk)?;
        self.offset += self.chunk.len() as u64;
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
