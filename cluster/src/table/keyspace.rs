//! The multi-versioned state of one shard: a data structure without I/O that decides writes and answers reads.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use compact_str::CompactString;

use super::counts::Counts;
use super::index::Index;
use super::versions::Versions;
use crate::entry::{Command, Operation};
use crate::{Change, ChangeKind, Compacted, Expectation, Key, Object, Outcome, Revision, Scope, TermFilter};

/// Objects by key, with the versions that the history window keeps.
pub(crate) struct Keyspace {
    keys: BTreeMap<Key, Versions>,
    counts: Counts,
    indexes: Vec<Index>,
    /// Every revision from this one on can be read.
    floor: Revision,
    /// The largest revision that was assigned to a write of this shard, whether the write succeeded or conflicted.
    last: Revision,
    /// Memory of the latest versions, in bytes.
    live_bytes: usize,
}

impl Keyspace {
    pub(crate) fn new(floor: Revision, indexed: impl IntoIterator<Item = CompactString>) -> Keyspace {
        let indexes = indexed.into_iter().map(Index::new).collect();
        let (keys, counts) = (BTreeMap::new(), Counts::default());
        Keyspace { keys, counts, indexes, floor, last: floor, live_bytes: 0 }
    }

    /// Decides a write. The result depends only on the writes before it, so that it is the same on every replica.
    pub(crate) fn apply(&mut self, command: &Command) -> (Outcome, Option<Change>) {
        let current = self.live(command.key.as_str()).cloned();
        let expected = match command.expectation {
            Expectation::Absent => current.is_none() && matches!(command.operation, Operation::Put(_)),
            Expectation::Revision(_) if seeded!(StaleExpectation) => current.is_some(),
            Expectation::Revision(revision) => current.as_ref().is_some_and(|object| object.revision() == revision),
        };
        // Leaders assign revisions in increasing order. A write that arrives out of order must not change history.
        if !expected || command.revision <= self.last {
            self.last = self.last.max(command.revision);
            return (Outcome::Conflict { current }, None);
        }
        let object = match (&command.operation, &current) {
            (Operation::Put(object), _) => object.clone(),
            (Operation::Delete(write_id), Some(current)) => Arc::new(current.buried(command.revision, *write_id)),
            (Operation::Delete(_), None) => return (Outcome::Conflict { current }, None),
        };
        let change = self.record(object.clone(), current.clone());
        (Outcome::Committed { object, previous: current }, Some(change))
    }

    /// Makes `object` the latest version of its key and returns the change. `previous` is the version that existed
    /// before.
    pub(crate) fn record(&mut self, object: Arc<Object>, previous: Option<Arc<Object>>) -> Change {
        let revision = object.revision();
        self.last = self.last.max(revision);
        let kind = match (&previous, object.is_tombstone()) {
            (_, true) => ChangeKind::Deleted,
            (None, false) => ChangeKind::Added,
            (Some(_), false) => ChangeKind::Modified,
        };
        match kind {
            ChangeKind::Added => self.counts.add(object.key(), revision, 1),
            ChangeKind::Deleted => self.counts.add(object.key(), revision, -1),
            ChangeKind::Modified => {}
        }
        self.live_bytes -= previous.as_ref().map_or(0, |previous| previous.memory()).min(self.live_bytes);
        self.live_bytes += if object.is_tombstone() { 0 } else { object.memory() };
        self.indexes.iter_mut().for_each(|index| index.add(&object));
        match self.keys.get_mut(object.key()) {
            Some(versions) => versions.push(object.clone()),
            None => drop(self.keys.insert(object.key().clone(), Versions::new(object.clone()))),
        }
        Change::new(kind, object, previous)
    }

    /// Replaces the whole state by objects sorted by key, none newer than `floor`.
    pub(crate) fn restore(&mut self, floor: Revision, objects: Vec<Arc<Object>>) {
        let indexes = self.indexes.iter().map(|index| index.field().into()).collect::<Vec<CompactString>>();
        *self = Keyspace::new(floor, indexes);
        for object in &objects {
            self.counts.add(object.key(), floor, 1);
            self.live_bytes += object.memory();
            self.indexes.iter_mut().for_each(|index| index.add(object));
        }
        self.keys = objects.into_iter().map(|object| (object.key().clone(), Versions::new(object))).collect();
    }

    /// Makes `object` the only version of its key, with the revision that it has, as if it had always existed.
    pub(crate) fn take_over(&mut self, object: Arc<Object>) {
        self.give_up(object.key());
        self.counts.add(object.key(), Revision::ZERO, 1);
        self.live_bytes += object.memory();
        self.indexes.iter_mut().for_each(|index| index.add(&object));
        self.keys.insert(object.key().clone(), Versions::new(object));
    }

    /// Removes a key that was taken over.
    pub(crate) fn give_up(&mut self, key: &Key) {
        let Some(versions) = self.keys.remove(key) else { return };
        versions.each(|version| self.indexes.iter_mut().for_each(|index| index.remove(version)));
        self.live_bytes -= versions.live().map_or(0, |object| object.memory()).min(self.live_bytes);
        self.counts.add(key, Revision::ZERO, -1);
        self.counts.trim(key, Revision::ZERO);
    }

    /// Declares that the objects that were taken over are the state as of `floor`, after which the history begins.
    pub(crate) fn begin(&mut self, floor: Revision) {
        self.floor = floor;
        self.last = self.last.max(floor);
    }

    /// Returns the fields by which there is an index.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.indexes.iter().map(Index::field)
    }

    /// Returns the latest kept version of an object, which may be its deletion.
    pub(crate) fn latest(&self, key: &str) -> Option<&Arc<Object>> {
        self.keys.get(key).map(Versions::latest)
    }

    /// Returns the object as it is now.
    pub(crate) fn live(&self, key: &str) -> Option<&Arc<Object>> {
        self.keys.get(key)?.live()
    }

    /// Returns the object as it was at a revision.
    pub(crate) fn at(&self, key: &str, revision: Revision) -> Result<Option<&Arc<Object>>, Compacted> {
        self.check(revision)?;
        Ok(self.keys.get(key).and_then(|versions| versions.at(revision)))
    }

    /// Returns the number of objects in a scope at a revision.
    pub(crate) fn count(&self, scope: &Scope, revision: Revision) -> Result<u64, Compacted> {
        self.check(revision)?;
        Ok(match scope {
            Scope::All => self.counts.all_at(revision),
            Scope::Namespace(namespace) => self.counts.namespace_at(namespace, revision),
        })
    }

    /// Appends up to `max` objects of the scan as of a revision, in key order, and examines up to `examined_max` keys.
    /// Returns the last key examined when there may be more; `None` at the end.
    pub(crate) fn scan(
        &self,
        scan: &Scan<'_>,
        revision: Revision,
        max: usize,
        examined_max: usize,
        out: &mut Vec<Arc<Object>>,
    ) -> Result<Option<Key>, Compacted> {
        self.check(revision)?;
        let (prefix, end) = (scan.scope.prefix(), scan.scope.end());
        let start = match scan.after {
            Some(after) if end.as_ref().is_some_and(|end| after.as_str() >= end.as_str()) => return Ok(None),
            Some(after) if after.as_str() >= prefix.as_str() => Bound::Excluded(after.as_str()),
            _ => Bound::Included(prefix.as_str()),
        };
        // With both bounds given, the keys themselves need not be read: their texts lie elsewhere in memory.
        let range = (start, end.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
        let Some((field, value)) = scan.field else {
            let versions = self.keys.range::<str, _>(range).map(|(key, versions)| (key, Some(versions)));
            return Ok(take(versions, scan, (revision, max, examined_max), |_| true, out));
        };
        let selected = |object: &Object| object.terms().field(field) == Some(value);
        if let Some(index) = self.indexes.iter().find(|index| index.field() == field) {
            let Some(keys) = index.keys(value) else { return Ok(None) };
            let versions = keys.range::<str, _>(range).map(|(key, _)| (key, self.keys.get(key)));
            return Ok(take(versions, scan, (revision, max, examined_max), selected, out));
        }
        let versions = self.keys.range::<str, _>(range).map(|(key, versions)| (key, Some(versions)));
        Ok(take(versions, scan, (revision, max, examined_max), selected, out))
    }

    /// Starts an index by a field, unless there is one.
    pub(crate) fn index(&mut self, field: &str) {
        if self.is_indexed(field) {
            return;
        }
        let mut index = Index::new(field.into());
        self.keys.values().for_each(|versions| versions.each(|version| index.add(version)));
        self.indexes.push(index);
    }

    pub(crate) fn is_indexed(&self, field: &str) -> bool {
        self.indexes.iter().any(|index| index.field() == field)
    }

    /// Forbids reads before `floor`.
    pub(crate) fn raise_floor(&mut self, floor: Revision) {
        self.floor = self.floor.max(floor);
    }

    /// Drops versions of one key that cannot be read any more.
    pub(crate) fn trim(&mut self, change: &Change) {
        let key = change.object().key();
        let indexes = &mut self.indexes;
        let dropped = |version: &Object| indexes.iter_mut().for_each(|index| index.remove(version));
        if self.keys.get_mut(key).is_some_and(|versions| versions.trim(self.floor, dropped)) {
            self.keys.remove(key);
        }
        if change.kind() != ChangeKind::Modified {
            self.counts.trim(key, self.floor);
        }
    }

    /// Returns the present number of objects.
    pub(crate) fn len(&self) -> u64 {
        self.counts.latest()
    }

    /// Returns the memory of the present objects, in bytes.
    pub(crate) fn live_bytes(&self) -> usize {
        self.live_bytes
    }

    fn check(&self, revision: Revision) -> Result<(), Compacted> {
        if revision < self.floor { Err(Compacted { floor: self.floor }) } else { Ok(()) }
    }
}

/// Which objects a scan selects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan<'a> {
    pub(crate) scope: &'a Scope,
    /// Only keys after this one.
    pub(crate) after: Option<&'a Key>,
    /// Only objects with this value of this selectable field.
    pub(crate) field: Option<(&'a str, &'a str)>,
    /// Only objects whose filter may contain at least one term of each of these lists.
    pub(crate) required: &'a [Vec<TermFilter>],
}

fn take<'a>(
    keys: impl Iterator<Item = (&'a Key, Option<&'a Versions>)>,
    scan: &Scan<'_>,
    (revision, max, examined_max): (Revision, usize, usize),
    selected: impl Fn(&Object) -> bool,
    out: &mut Vec<Arc<Object>>,
) -> Option<Key> {
    let (mut taken, mut examined) = (0, 0);
    for (key, versions) in keys {
        examined += 1;
        let versions = versions.filter(|versions| versions.may_have(scan.required));
        if let Some(object) = versions.and_then(|versions| versions.at(revision)).filter(|object| selected(object)) {
            out.push(object.clone());
            taken += 1;
        }
        if taken >= max || examined >= examined_max {
            return Some(key.clone());
        }
    }
    None
}
