//! The versions of one key.

use std::sync::Arc;

use crate::{Marks, Object, Revision};

/// All kept versions of one key, never empty. The latest is inline, because most keys have no other.
pub(crate) struct Versions {
    latest: Arc<Object>,
    /// Versions before the latest, oldest first.
    #[expect(clippy::box_collection, reason = "one word instead of three for the many keys without history")]
    older: Option<Box<Vec<Arc<Object>>>>,
    /// The terms of all of them.
    marks: Marks,
}

impl Versions {
    pub(crate) fn new(first: Arc<Object>) -> Versions {
        Versions { marks: Marks::of(first.terms()), latest: first, older: None }
    }

    /// The latest version, which may be a deletion.
    pub(crate) fn latest(&self) -> &Arc<Object> {
        &self.latest
    }

    /// The object, unless deleted.
    pub(crate) fn live(&self) -> Option<&Arc<Object>> {
        (!self.latest.is_tombstone()).then_some(&self.latest)
    }

    /// The object as of a revision: the newest version that is not newer, unless that is a deletion.
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

    /// Whether a version may have, for each of these, one of the terms. The versions are not looked at.
    pub(crate) fn may_have(&self, required: &[Vec<Marks>]) -> bool {
        required.iter().all(|terms| terms.iter().any(|term| self.marks.may_have(*term)))
    }

    /// Shows every kept version.
    pub(crate) fn each(&self, mut show: impl FnMut(&Object)) {
        self.older.iter().flat_map(|older| older.iter()).for_each(|version| show(version));
        show(&self.latest);
    }

    /// Makes `version` the latest.
    pub(crate) fn push(&mut self, version: Arc<Object>) {
        self.marks = self.marks.with(Marks::of(version.terms()));
        let before = std::mem::replace(&mut self.latest, version);
        self.older.get_or_insert_default().push(before);
    }

    /// Drops what nobody can see at `floor` or later, giving each dropped version to `dropped`; true when nothing is
    /// left of the key.
    pub(crate) fn trim(&mut self, floor: Revision, mut dropped: impl FnMut(&Object)) -> bool {
        if let Some(older) = self.older.as_deref_mut() {
            // The version seen at the floor stays, unless it is a deletion: then there is nothing to see.
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
                self.marks = Marks::of(self.latest.terms());
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
