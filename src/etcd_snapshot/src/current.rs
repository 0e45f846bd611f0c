//! The keys that exist at the last revision of the database, in their last version.

use std::collections::HashMap;

use crate::keyvalue::{Borrowed, revision};
use crate::{Error, FileLocation, Snapshot};

/// A key that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// The key.
    pub key: Box<[u8]>,
    /// The revision that made this version.
    pub mod_revision: i64,
    /// The position among the writes of the same revision.
    sub: i64,
    /// The lease that it is attached to; 0 for none.
    pub lease: i64,
    /// The location of its value.
    pub value: FileLocation,
}

/// All existing keys with a prefix, in the order in which they were last written.
#[derive(Clone, Debug, Default)]
pub struct Current {
    /// The keys.
    pub keys: Vec<Live>,
    /// Number of existing keys without the prefix.
    pub others: u64,
    /// The last revision of the database.
    pub revision: i64,
    /// Number of versions that the database keeps, including deletions.
    pub versions: u64,
}

struct KeyVersion {
    mod_revision: i64,
    sub: i64,
    lease: i64,
    value: FileLocation,
}

impl Current {
    /// Reads all versions, and returns the last one of each key with the prefix.
    ///
    /// # Errors
    /// If a page is damaged, or an entry is not as etcd writes it.
    pub fn read(snapshot: &Snapshot, prefix: &[u8]) -> Result<Current, Error> {
        let (mut current, mut known) = (Current::default(), HashMap::<Box<[u8]>, Option<KeyVersion>>::new());
        let mut others = HashMap::<Box<[u8]>, bool>::new();
        snapshot.walk("key", |key, value, location| {
            let wrong = |what| Error::Entry { page: location.page, what };
            let at = revision(key).ok_or_else(|| wrong("its key is no revision"))?;
            let read = Borrowed::read(value).ok_or_else(|| wrong("its value is no message of a key"))?;
            if !at.is_tombstone && read.mod_revision != at.main {
                return Err(wrong("its revision is not that of its key"));
            }
            (current.revision, current.versions) = (at.main, current.versions + 1);
            if !read.key.starts_with(prefix) {
                others.insert(read.key.into(), !at.is_tombstone);
                return Ok(());
            }
            let length = read.value.len() as u32;
            let value = FileLocation { offset: location.offset + read.value_at as u64, length, ..location };
            let version = KeyVersion { mod_revision: at.main, sub: at.sub, lease: read.lease, value };
            let version = (!at.is_tombstone).then_some(version);
            match known.get_mut(read.key) {
                Some(before) => *before = version,
                None => drop(known.insert(read.key.into(), version)),
            }
            Ok(())
        })?;
        let live = known.into_iter().filter_map(|(key, version)| {
            let KeyVersion { mod_revision, sub, lease, value } = version?;
            Some(Live { key, mod_revision, sub, lease, value })
        });
        current.keys = live.collect();
        current.keys.sort_unstable_by_key(|live| (live.mod_revision, live.sub));
        current.others = others.values().filter(|is_there| **is_there).count() as u64;
        Ok(current)
    }
}
