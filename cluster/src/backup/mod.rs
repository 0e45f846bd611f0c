//! Backups: all objects of all tables at one revision, in one checksummed stream of bytes; and stores made from them.
//!
//! A stream begins with eight bytes that identify it and four with its format. Chunks follow (see [`crate::chunk`]):
//! first a header, then objects, each chunk with the table that they belong to, and at the end a chunk that counts the
//! ones before it, so that an incomplete backup is recognized. A backup contains no history.
//!
//! [`taking`] makes the stream while the store is in use, [`reading`] reads and checks it, [`restoring`] makes a store
//! from it. [`salvaging`] opens the data of a single replica, for a backup when too many of the others are gone.

#[cfg(test)]
mod backup_tests;
mod reading;
mod restoring;
#[cfg(test)]
mod salvage_tests;
mod salvaging;
mod taking;

use std::collections::BTreeMap;

pub use self::reading::{BackupReadError, BackupReader, BackupSummary};
pub(crate) use self::restoring::check_finished;
pub use self::restoring::{Drafts, RestoreError, Restored, Unfinished, create, restore};
pub use self::salvaging::{SalvageError, salvage};
pub use self::taking::{Backup, BackupError};
use crate::codec::{Decoder, put_long, put_text};
use crate::{Revision, TableId};

const MAGIC: &[u8; 8] = b"FLOTBAK\n";
/// The format of backups that this release writes, and the only one that it reads.
const FORMAT: u32 = 1;

const KIND_HEADER: u8 = 1;
const KIND_OBJECTS: u8 = 2;
const KIND_END: u8 = 3;

/// The header of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupHeader {
    /// When the backup was started, by the clock of the replica that made it, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The id of the cluster; empty for a replica that has never been one of several.
    pub cluster: String,
    /// The revision at which all objects were read.
    pub revision: Revision,
    /// The number of data groups of the store.
    pub groups: u8,
    /// The number of shards of each table that the shard map has.
    pub shards: BTreeMap<TableId, u16>,
}

impl BackupHeader {
    fn write(&self, out: &mut Vec<u8>) {
        put_long(self.unix_ms, out);
        put_long(self.revision.get(), out);
        put_text(&self.cluster, out);
        out.push(self.groups);
        for (table, shards) in &self.shards {
            put_text(table.as_str(), out);
            out.extend_from_slice(&shards.to_le_bytes());
        }
    }

    fn read(decoder: &mut Decoder<'_>) -> Option<BackupHeader> {
        let (unix_ms, revision) = (decoder.long()?, decoder.revision()?);
        let (cluster, groups) = (decoder.text()?.to_owned(), decoder.byte()?);
        let mut shards = BTreeMap::new();
        while !decoder.is_empty() {
            shards.insert(TableId::new(decoder.text()?), decoder.short()?);
        }
        Some(BackupHeader { unix_ms, cluster, revision, groups, shards })
    }
}
