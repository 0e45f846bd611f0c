//! Reads a snapshot.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use super::{FORMAT, KIND_CHANGES, KIND_END, KIND_META, KIND_OBJECTS, KIND_SHARD, Loaded, MAGIC, Meta};
use crate::chunk;
use crate::codec::Decoder;
use crate::disk::{Disk, DiskFile};
use crate::entry::{Operation, ShardId};
use crate::limits::{OPENING_PROGRESS_INTERVAL, SNAPSHOT_DECODERS};
use crate::progress;
use crate::table::shard::Content;
use crate::table::stage::{Progress, StageContent};
use crate::wal::{LogRef, WalError};
use crate::{Key, Object, Revision, TableId};

/// Reads the whole file, from front to back.
pub(super) fn load(disk: &dyn Disk, path: &Path) -> Result<Loaded, WalError> {
    let failed = |source| WalError::Io { path: path.to_path_buf(), source };
    let file = disk.open(path).map_err(failed)?;
    let mut header = [0; 12];
    let read = file.read_at(0, &mut header).map_err(failed)?;
    let damaged = |offset, what| WalError::Damaged { path: path.to_path_buf(), offset, what };
    if read < header.len() || &header[..8] != MAGIC {
        return Err(damaged(0, "it does not begin like a snapshot"));
    }
    let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if version > FORMAT {
        return Err(WalError::Newer { path: path.to_path_buf(), version, supported: FORMAT });
    }
    if version < FORMAT {
        return Err(damaged(8, "its format is older than that of the first release"));
    }
    let size = file.size().map_err(failed)?;
    let mut progress = progress::Progress::of("reading the bytes of a snapshot", size, OPENING_PROGRESS_INTERVAL);
    let (mut loading, mut offset) = (Loading::default(), header.len() as u64);
    let read = decoding(|decoders| {
        loop {
            progress.at(offset);
            let chunk = read_chunk(&*file, offset, size).map_err(failed)?;
            let chunk = chunk.ok_or_else(|| damaged(offset, CHECKSUM))?;
            let next = offset + (chunk::HEAD_BYTES + chunk.content.len()) as u64;
            match loading.take(offset, chunk, decoders) {
                Ok(true) => return Ok(()),
                Ok(false) => offset = next,
                Err(what) => return Err(damaged(offset, what)),
            }
        }
    });
    let (read, parts) = read;
    // The first error is reported: later ones may follow from it.
    if let Some((offset, what)) = parts.iter().find_map(|(offset, part)| Some((*offset, part.as_ref().err()?))) {
        return Err(damaged(offset, what));
    }
    read?;
    Ok(loading.finish(parts.into_values().filter_map(Result::ok)))
}

const CHECKSUM: &str = "a chunk does not match its checksum";
const UNREADABLE: &str = "a chunk cannot be read";

/// A chunk that was read, before its checksum is verified.
struct Chunk {
    checksum: u32,
    content: Vec<u8>,
}

impl Chunk {
    fn checked(&self) -> Result<Decoder<'_>, &'static str> {
        match crc32c::crc32c(&self.content) == self.checksum {
            true => Ok(Decoder::new(&self.content)),
            false => Err(CHECKSUM),
        }
    }
}

/// The content of one chunk of a shard.
enum ChunkContent {
    Objects(usize, Vec<Arc<Object>>),
    Changes(usize, Vec<(Key, Revision, Operation)>),
}

/// The decoded chunks by their offsets in the file.
type ChunkContents = BTreeMap<u64, Result<ChunkContent, &'static str>>;

/// Threads that decode chunks, in turn.
struct Decoders {
    threads: Vec<SyncSender<(u64, usize, Chunk)>>,
    given: usize,
}

impl Decoders {
    /// Hands a chunk of a shard to a decoder.
    fn give(&mut self, offset: u64, shard: usize, chunk: Chunk) {
        self.given += 1;
        let thread = &self.threads[self.given % SNAPSHOT_DECODERS];
        let _ = thread.send((offset, shard, chunk)); // if the thread has panicked, joining it panics as well
    }
}

/// Runs `read` with threads that decode. Returns its result, and the decoded chunks.
fn decoding<T>(read: impl FnOnce(&mut Decoders) -> T) -> (T, ChunkContents) {
    thread::scope(|scope| {
        let decoder = |_| {
            let (give, given) = mpsc::sync_channel(1);
            let decode =
                move || given.into_iter().map(|(offset, shard, chunk)| (offset, part(shard, &chunk))).collect();
            (give, scope.spawn::<_, Vec<_>>(decode))
        };
        let (threads, running): (Vec<_>, Vec<_>) = (0..SNAPSHOT_DECODERS).map(decoder).unzip();
        let mut decoders = Decoders { threads, given: 0 };
        let result = read(&mut decoders);
        drop(decoders);
        // A panic must not be swallowed: the snapshot would seem complete while a part is missing.
        let made = running.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (result, made.collect())
    })
}

/// Verifies and decodes a chunk of objects or changes.
fn part(shard: usize, chunk: &Chunk) -> Result<ChunkContent, &'static str> {
    let mut decoder = chunk.checked()?;
    let kind = decoder.byte();
    let mut decode = || {
        if kind == Some(KIND_OBJECTS) {
            let mut objects = Vec::new();
            while !decoder.is_empty() {
                objects.push(Arc::new(decoder.object()?));
            }
            return Some(ChunkContent::Objects(shard, objects));
        }
        let mut changes = Vec::new();
        while !decoder.is_empty() {
            changes.push(decoder.operation()?);
        }
        Some(ChunkContent::Changes(shard, changes))
    };
    decode().ok_or(UNREADABLE)
}

/// Reads the chunk at an offset. `None` when it would reach beyond the end of the file.
fn read_chunk(file: &dyn DiskFile, offset: u64, size: u64) -> std::io::Result<Option<Chunk>> {
    let mut head = [0; chunk::HEAD_BYTES];
    if file.read_at(offset, &mut head)? < head.len() {
        return Ok(None);
    }
    let (length, checksum) = chunk::head(head);
    if length as u64 > size {
        return Ok(None); // the length itself is damaged
    }
    let mut content = vec![0; length];
    let read = file.read_at(offset + chunk::HEAD_BYTES as u64, &mut content)?;
    Ok((read == length).then_some(Chunk { checksum, content }))
}

#[derive(Default)]
struct Loading {
    meta: Meta,
    shards: Vec<(ShardId, Content)>,
    count: u64,
}

impl Loading {
    /// Takes a chunk. Returns whether it was the last one.
    fn take(&mut self, offset: u64, chunk: Chunk, decoders: &mut Decoders) -> Result<bool, &'static str> {
        match (chunk.content.first(), self.shards.len().checked_sub(1)) {
            (Some(&(KIND_OBJECTS | KIND_CHANGES)), Some(shard)) => decoders.give(offset, shard, chunk),
            _ => {
                if let Some(count) = self.note(&mut chunk.checked()?).ok_or(UNREADABLE)? {
                    return if count == self.count { Ok(true) } else { Err(UNREADABLE) };
                }
            }
        }
        self.count += 1;
        Ok(false)
    }

    /// Decodes a chunk that is not part of a shard's content. Returns the number of chunks before it if it marks the
    /// end.
    fn note(&mut self, decoder: &mut Decoder<'_>) -> Option<Option<u64>> {
        match decoder.byte()? {
            KIND_META => {
                let known = decoder.byte()? != 0;
                let last = LogRef { term: decoder.long()?, node: decoder.long()?, index: decoder.long()? };
                let (begun, base, membership) = (decoder.revision()?, decoder.revision()?, decoder.blob()?.to_vec());
                self.meta = Meta { last: known.then_some(last), membership, begun, base };
            }
            KIND_SHARD => {
                let shard =
                    ShardId { table: TableId::new(decoder.text()?), epoch: decoder.word()?, number: decoder.short()? };
                let floor = decoder.revision()?;
                let filled = Progress { step: decoder.long()?, through: decoder.optional_revision()? };
                let (opened, ended) = (decoder.optional_revision()?, decoder.optional_revision()?);
                let stage = StageContent { filled, opened, ended };
                self.shards.push((shard, Content { floor, stage, ..Content::default() }));
            }
            KIND_END => return Some(Some(decoder.long()?)),
            _ => return None,
        }
        Some(None)
    }

    /// Returns the snapshot, whose parts are given in order.
    fn finish(self, parts: impl Iterator<Item = ChunkContent>) -> Loaded {
        let Loading { meta, mut shards, .. } = self;
        for part in parts {
            match part {
                ChunkContent::Objects(shard, objects) => shards[shard].1.objects.extend(objects),
                ChunkContent::Changes(shard, changes) => shards[shard].1.changes.extend(changes),
            }
        }
        Loaded { meta, shards: shards.into_iter().collect() }
    }
}
