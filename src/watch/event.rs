//! What a change means to one watcher.

use std::sync::Arc;

use bytes::Bytes;
use flotilla_cluster::{Change, ChangeKind, Object};

use crate::registry::selects;
use crate::selector::Selection;

/// The types of watch events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// The object is new, or newly selected.
    Added,
    /// The object changed.
    Modified,
    /// The object is gone, or no longer selected.
    Deleted,
    /// Nothing happened up to the revision.
    Bookmark,
    /// The stream ends with a `Status`.
    Error,
}

impl EventType {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// An object as an event shows it.
#[derive(Debug, Clone)]
pub enum Shown {
    /// As it is stored.
    Object(Arc<Object>),
    /// As it was before it left the selection, with the revision of the change: its bytes, otherwise as the object.
    Left(Arc<Object>, Bytes),
}

impl Shown {
    /// The object, in its last state.
    pub fn object(&self) -> &Arc<Object> {
        match self {
            Self::Object(object) | Self::Left(object, _) => object,
        }
    }
}

/// What a change means to a watcher with this selection; `None` if it means nothing.
pub fn judge(change: &Change, selection: &Selection) -> Option<(EventType, Shown)> {
    let object = change.object();
    if selection.is_everything() {
        let kind = match change.kind() {
            ChangeKind::Added => EventType::Added,
            ChangeKind::Modified => EventType::Modified,
            ChangeKind::Deleted => EventType::Deleted,
        };
        return Some((kind, Shown::Object(Arc::clone(object))));
    }
    let before = change.previous().is_some_and(|previous| selects(selection, previous));
    let after = change.kind() != ChangeKind::Deleted && selects(selection, object);
    match (before, after) {
        (false, false) => None,
        (false, true) => Some((EventType::Added, Shown::Object(Arc::clone(object)))),
        (true, true) => Some((EventType::Modified, Shown::Object(Arc::clone(object)))),
        (true, false) if change.kind() == ChangeKind::Deleted => {
            Some((EventType::Deleted, Shown::Object(Arc::clone(object))))
        }
        (true, false) => {
            let previous = change.previous()?;
            let mut bytes = previous.bytes().to_vec();
            let at = previous.layout().revision_at as usize;
            if let Some(digits) = bytes.get_mut(at..) {
                change.revision().write_digits(digits);
            }
            Some((EventType::Deleted, Shown::Left(Arc::clone(previous), bytes.into())))
        }
    }
}
