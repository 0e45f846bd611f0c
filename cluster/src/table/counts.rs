//! The number of objects at every revision that can be read.

use std::collections::{HashMap, VecDeque};

use compact_str::CompactString;

use crate::{Key, Revision};

/// One count over time: pairs of a revision and the count from that revision on, oldest first.
#[derive(Default)]
struct Series(VecDeque<(Revision, u64)>);

impl Series {
    fn at(&self, revision: Revision) -> u64 {
        let after = self.0.partition_point(|(since, _)| *since <= revision);
        after.checked_sub(1).and_then(|index| self.0.get(index)).map_or(0, |(_, count)| *count)
    }

    fn add(&mut self, revision: Revision, difference: i64) {
        let before = self.0.back().map_or(0, |(_, count)| *count);
        let count = before.saturating_add_signed(difference);
        match self.0.back_mut() {
            Some((since, last)) if *since == revision => *last = count,
            _ => self.0.push_back((revision, count)),
        }
    }

    /// Drops the counts that only revisions before `floor` can see. Returns whether the whole series can be dropped:
    /// the count has been zero since `floor`.
    fn trim(&mut self, floor: Revision) -> bool {
        while self.0.get(1).is_some_and(|(since, _)| *since <= floor) {
            self.0.pop_front();
        }
        self.0.len() == 1 && self.0.front().is_some_and(|(since, count)| *since <= floor && *count == 0)
    }
}

/// The counts of a shard, as a whole and by namespace.
#[derive(Default)]
pub(crate) struct Counts {
    all: Series,
    namespaces: HashMap<CompactString, Series>,
}

impl Counts {
    pub(crate) fn all_at(&self, revision: Revision) -> u64 {
        self.all.at(revision)
    }

    pub(crate) fn latest(&self) -> u64 {
        self.all.0.back().map_or(0, |(_, count)| *count)
    }

    pub(crate) fn namespace_at(&self, namespace: &str, revision: Revision) -> u64 {
        self.namespaces.get(namespace).map_or(0, |series| series.at(revision))
    }

    /// Records that an object appeared (1) or disappeared (-1).
    pub(crate) fn add(&mut self, key: &Key, revision: Revision, difference: i64) {
        self.all.add(revision, difference);
        let Some(namespace) = key.namespace() else { return };
        match self.namespaces.get_mut(namespace) {
            Some(series) => series.add(revision, difference),
            None => self.namespaces.entry(namespace.into()).or_default().add(revision, difference),
        }
    }

    /// Drops the counts that only revisions before `floor` can see, for the namespace of `key` and for the whole shard.
    pub(crate) fn trim(&mut self, key: &Key, floor: Revision) {
        self.all.trim(floor);
        let Some(namespace) = key.namespace() else { return };
        if self.namespaces.get_mut(namespace).is_some_and(|series| series.trim(floor)) {
            self.namespaces.remove(namespace);
        }
    }
}
