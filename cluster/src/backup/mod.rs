//! Backups: all objects of all tables as of one revision, in one checksummed stream of bytes, and stores made of them.
//!
//! A stream begins with eight bytes that tell what it is and four with its format. Then come chunks (see
//! [`crate::chunk`]): first a header, then objects, each chunk with the table that they are of, and last an end that
//! counts what came before, so that a part of a backup is told from all of it. There is no history in it.
//!
//! [`taking`] makes the stream while the store goes on, [`reading`] checks it, [`restoring`] makes a store of it;
//! [`salvaging`] opens what one of several replicas has, to take a backup when too many others are gone.

#[cfg(test)]
mod backup_tests;
mod reading;
mod restoring;
mod salvaging;
mod taking;

use std::collections::BTreeMap;

pub use self::reading::{BackupReadError, BackupReader, BackupSummary};
pub(crate) use self::restoring::check_finished;
pub use self::restoring::{Drafts, RestoreError, Restored, Unfinished, found, restore};
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

/// What a backup is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupHeader {
    /// When it was begun, by the clock of the replica that made it, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Id of the cluster; empty for a replica that has never been one of several.
    pub cluster: String,
    /// The revision as of which the objects of all tables are.
    pub revision: Revision,
    /// How many data groups the store has.
    pub groups: u8,
    /// How many shards its tables have, as far as that was said.
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
