//! Reading a snapshot.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{FORMAT, KIND_CHANGES, KIND_END, KIND_META, KIND_OBJECTS, KIND_SHARD, Loaded, MAGIC, Meta};
use crate::TableId;
use crate::chunk;
use crate::codec::Decoder;
use crate::entry::ShardId;
use crate::limits::OPENING_PROGRESS_INTERVAL;
use crate::progress;
use crate::table::shard::Content;
use crate::table::stage::{Progress, StageContent};
use crate::wal::disk::{Disk, DiskFile};
use crate::wal::{LogRef, WalError};

/// Reads the whole file, from front to back.
pub(super) fn load(disk: &dyn Disk, path: &Path) -> Result<Loaded, WalError> {
    let failed = |source| WalError::Io { path: path.to_path_buf(), source };
    let file = disk.open(path).map_err(failed)?;
    let mut header = [0; 12];
    let read = file.read_at(0, &mut header).map_err(failed)?;
    let damaged = |offset, what| WalError::Damaged { path: path.to_path_buf(), offset, what };
    if read < header.len() || &header[..8] != MAGIC {
        return Err(damaged(0, "it does not begin as a snapshot does"));
    }
    let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if version > FORMAT {
        return Err(WalError::Newer { path: path.to_path_buf(), version, supported: FORMAT });
    }
    if version < FORMAT {
        return Err(damaged(8, "its format is of a release before the first"));
    }
    let mut loading =
        Loading { loaded: Loaded { meta: Meta::default(), shards: BTreeMap::new() }, shard: None, count: 0 };
    let (mut offset, mut chunk) = (header.len() as u64, Vec::new());
    let size = file.size().map_err(failed)?;
    let mut progress = progress::Progress::of("reading the bytes of a snapshot", size, OPENING_PROGRESS_INTERVAL);
    loop {
        progress.at(offset);
        let content = read_chunk(&*file, offset, &mut chunk).map_err(failed)?;
        let content = content.ok_or_else(|| damaged(offset, "a chunk does not match its checksum"))?;
        match loading.take(content) {
            Some(true) => return Ok(loading.loaded),
            Some(false) => {}
            None => return Err(damaged(offset, "a chunk cannot be read")),
        }
        offset += 8 + content.len() as u64;
    }
}

/// The content of the chunk at an offset; none when it does not match its checksum.
fn read_chunk<'a>(file: &dyn DiskFile, offset: u64, buffer: &'a mut Vec<u8>) -> std::io::Result<Option<&'a [u8]>> {
    let mut head = [0; chunk::HEAD_BYTES];
    if file.read_at(offset, &mut head)? < head.len() {
        return Ok(None);
    }
    let (length, checksum) = chunk::head(head);
    if length as u64 > file.size()? {
        return Ok(None); // the length itself is damaged
    }
    buffer.resize(length, 0);
    let read = file.read_at(offset + 8, buffer)?;
    Ok((read == length && crc32c::crc32c(buffer) == checksum).then_some(buffer))
}

struct Loading {
    loaded: Loaded,
    shard: Option<ShardId>,
    count: u64,
}

impl Loading {
    /// Takes in a chunk; whether it was the last. None when it cannot be read.
    fn take(&mut self, chunk: &[u8]) -> Option<bool> {
        let mut decoder = Decoder::new(chunk);
        match decoder.byte()? {
            KIND_META => {
                let known = decoder.byte()? != 0;
                let last = LogRef { term: decoder.long()?, node: decoder.long()?, index: decoder.long()? };
                let (begun, base, membership) = (decoder.revision()?, decoder.revision()?, decoder.blob()?.to_vec());
                self.loaded.meta = Meta { last: known.then_some(last), membership, begun, base };
            }
            KIND_SHARD => {
                let shard =
                    ShardId { table: TableId::new(decoder.text()?), epoch: decoder.word()?, number: decoder.short()? };
                let floor = decoder.revision()?;
                let filled = Progress { step: decoder.long()?, through: decoder.optional_revision()? };
                let (opened, ended) = (decoder.optional_revision()?, decoder.optional_revision()?);
                let stage = StageContent { filled, opened, ended };
                self.loaded.shards.insert(shard.clone(), Content { floor, stage, ..Content::default() });
                self.shard = Some(shard);
            }
            KIND_OBJECTS => {
                let content = self.loaded.shards.get_mut(self.shard.as_ref()?)?;
                while !decoder.is_empty() {
                    content.objects.push(Arc::new(decoder.object()?));
                }
            }
            KIND_CHANGES => {
                let content = self.loaded.shards.get_mut(self.shard.as_ref()?)?;
                while !decoder.is_empty() {
                    content.changes.push(decoder.operation()?);
                }
            }
            KIND_END => return (decoder.long()? == self.count).then_some(true),
            _ => return None,
        }
        self.count += 1;
        Some(false)
    }
}
