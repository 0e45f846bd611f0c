//! An index of a shard by one selectable field.

use std::collections::{BTreeMap, HashMap};

use compact_str::CompactString;

use crate::{Key, Object};

/// The keys that have a value of the field in at least one kept version, by that value. So the index serves every
/// readable revision; a reader must still check the version that it sees.
pub(crate) struct Index {
    field: CompactString,
    values: HashMap<CompactString, BTreeMap<Key, u32>>,
}

impl Index {
    pub(crate) fn new(field: CompactString) -> Index {
        Index { field, values: HashMap::new() }
    }

    pub(crate) fn field(&self) -> &str {
        &self.field
    }

    pub(crate) fn keys(&self, value: &str) -> Option<&BTreeMap<Key, u32>> {
        self.values.get(value)
    }

    /// Adds a version that is kept from now on.
    pub(crate) fn add(&mut self, version: &Object) {
        let Some(value) = self.value_of(version) else { return };
        let keys = match self.values.get_mut(value) {
            Some(keys) => keys,
            None => self.values.entry(value.into()).or_default(),
        };
        match keys.get_mut(version.key()) {
            Some(versions) => *versions += 1,
            None => drop(keys.insert(version.key().clone(), 1)),
        }
    }

    /// Removes a version that is no longer kept.
    pub(crate) fn remove(&mut self, version: &Object) {
        let Some(value) = self.value_of(version) else { return };
        let Some(keys) = self.values.get_mut(value) else { return };
        match keys.get_mut(version.key()) {
            Some(versions) if *versions > 1 => *versions -= 1,
            _ => drop(keys.remove(version.key())),
        }
        if keys.is_empty() {
            self.values.remove(value);
        }
    }

    /// Deletions are not indexed: they are in no list.
    fn value_of<'a>(&self, version: &'a Object) -> Option<&'a str> {
        if version.is_tombstone() { None } else { version.terms().field(&self.field) }
    }
}
