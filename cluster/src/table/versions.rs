//! The versions of one key.

use std::sync::Arc;

use crate::{Object, Revision, TermFilter};

/// All kept versions of one key; never empty. The latest is stored inline, because most keys have no other.
pub(crate) struct Versions {
    latest: Arc<Object>,
    /// Versions before the latest, oldest first.
    #[expect(clippy::box_collection, reason = "one word instead of three for the many keys without history")]
    older: Option<Box<Vec<Arc<Object>>>>,
    /// The terms of all versions together.
    filter: TermFilter,
}

impl Versions {
    pub(crate) fn new(first: Arc<Object>) -> Versions {
        Versions { filter: TermFilter::of(first.terms()), latest: first, older: None }
    }

    /// Returns the latest version, which may be a deletion.
    pub(crate) fn latest(&self) -> &Arc<Object> {
        &self.latest
    }

    /// Returns the object. Returns `None` when it is deleted.
    pub(crate) fn live(&self) -> Option<&Arc<Object>> {
        (!self.latest.is_tombstone()).then_some(&self.latest)
    }

    /// Returns the object as of a revision: its newest version up to that revision. Returns `None` when that is a
    /// deletion or there is none.
    pub(crate) fn at(&self, revision: Revision) -> Option<&Arc<Object>> {
        let version = if self.latest.revision() <= revision {
            &self.latest
        } else {
            let older = self.older.as_deref()?;
            let after = older.partition_point(|version| version.revision() <= revision);
            older.get(after.checked_sub(1)?)?
        };
        (!version.is_tombstone()).then_some(version)
    }

    /// Returns whether the versions may have at least one term of each of these lists. Looks at the filter alone, not
    /// at the versions.
    pub(crate) fn may_have(&self, required: &[Vec<TermFilter>]) -> bool {
        required.iter().all(|terms| terms.iter().any(|term| self.filter.may_have(*term)))
    }

    /// Calls `show` with every kept version.
    pub(crate) fn each(&self, mut show: impl FnMut(&Object)) {
        self.older.iter().flat_map(|older| older.iter()).for_each(|version| show(version));
        show(&self.latest);
    }

    /// Makes `version` the latest.
    pub(crate) fn push(&mut self, version: Arc<Object>) {
        self.filter = self.filter.with(TermFilter::of(version.terms()));
        let before = std::mem::replace(&mut self.latest, version);
        self.older.get_or_insert_default().push(before);
    }

    /// Drops the versions that nobody can see at `floor` or later, and passes each to `dropped`. Returns true when
    /// nothing is left of the key.
    pub(crate) fn trim(&mut self, floor: Revision, mut dropped: impl FnMut(&Object)) -> bool {
        if let Some(older) = self.older.as_deref_mut() {
            // The version visible at the floor stays, unless it is a deletion: then nothing is visible there.
            let unseen = if self.latest.revision() <= floor {
                older.len()
            } else {
                let not_newer = older.partition_point(|version| version.revision() <= floor);
                match not_newer.checked_sub(1).and_then(|seen| older.get(seen)) {
                    Some(seen) if seen.is_tombstone() => not_newer,
                    _ => not_newer.saturating_sub(1),
                }
            };
            older.drain(..unseen).for_each(|version| dropped(&version));
            if older.is_empty() {
                self.older = None;
                self.filter = TermFilter::of(self.latest.terms());
            } else if older.capacity() > 4 * older.len() {
                older.shrink_to_fit();
            }
        }
        let gone = self.older.is_none() && self.latest.is_tombstone() && self.latest.revision() <= floor;
        if gone {
            dropped(&self.latest);
        }
        gone
    }
}
